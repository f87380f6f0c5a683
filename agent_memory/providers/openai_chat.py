"""The Chat Completions API through the official ``openai`` client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agent_memory.exceptions import ProviderUnavailable
from agent_memory.messages import (
    DocumentPart,
    FinishReason,
    ImagePart,
    Message,
    Part,
    Reasoning,
    RefusalPart,
    Role,
    Step,
    StepItem,
    TextPart,
    ToolCall,
    Usage,
)
from agent_memory.providers.base import ProviderRequest, ToolSpec
from agent_memory.providers.openai_calls import CallReader, echoed, sent_arguments, sent_name
from agent_memory.providers.openai_chunks import ECHOED, READ, REASONING, ChatAssembly
from agent_memory.providers.openai_errors import BROKEN_OFF, error_word
from agent_memory.providers.openai_files import address, file_name, merged, source
from agent_memory.providers.openai_provider import OpenAIProvider, spoken, tokens

TAKES = {"image": ("data", "url"), "document": ("data", "file_id")}

# Any other reason is a failed answer: it may not pass for a normal end.
FINISH_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "length": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
}


class OpenAIChatProvider(OpenAIProvider):
    """
    The Chat Completions API, which many servers speak.

    The limit of an answer is sent as ``max_tokens``, which most of them know; as
    ``max_completion_tokens`` if ``request`` holds that, and to a model that has
    refused the other. Reasoning and other extras of a step with tool calls are
    echoed within the turn. See ``OpenAIProvider`` for the options.
    """

    name = "openai_chat"
    endpoint = "chat.completions"
    reserved = frozenset(
        {
            "audio",
            "function_call",
            "functions",
            "messages",
            "modalities",
            "model",
            "n",
            "stream",
        }
    )
    history = "messages"
    ours = {"stream_options": {"include_usage": True}}
    takes = TAKES

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._without_max_tokens: set[str] = set()

    def shape(self, request: ProviderRequest, arguments: dict[str, Any]) -> None:
        """See OpenAIProvider.shape()."""
        arguments["messages"] = list(self._messages(request))
        if not arguments["stream"]:
            arguments["stream_options"] = None
        if request.max_output_tokens is not None:
            renamed = (
                request.model in self._without_max_tokens or "max_completion_tokens" in arguments
            )
            name = "max_completion_tokens" if renamed else "max_tokens"
            arguments[name] = request.max_output_tokens

    def tool(self, tool: ToolSpec) -> dict[str, Any]:
        """See OpenAIProvider.tool()."""
        function = {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
            "strict": False,
        }
        return {"type": "function", "function": function}

    def amend(self, arguments: dict[str, Any], error: Any) -> bool:
        """See OpenAIProvider.amend()."""
        if error.param != "max_tokens" or "max_tokens" not in arguments:
            return False
        self._without_max_tokens.add(arguments["model"])
        arguments["max_completion_tokens"] = arguments.pop("max_tokens")
        return True

    def _messages(self, request: ProviderRequest) -> Iterator[dict[str, Any]]:
        if request.instructions:
            yield {"role": "system", "content": request.instructions}
        for told in self.told(request):
            if isinstance(told, dict):
                yield told
            elif told.role == "assistant":
                yield from self._spoken(told)
            elif told.role == "tool":
                content = self.content(told.content, told.role)
                yield {"role": "tool", "tool_call_id": told.tool_call_id, "content": content}
            else:
                yield {"role": told.role, "content": self.content(told.content, told.role)}

    def _spoken(self, message: Message) -> Iterator[dict[str, Any]]:
        content = self.content(tuple(map(_as_text, spoken(message))), message.role) or None
        if message.tool_calls:
            calls = [_sent_call(call) for call in message.tool_calls]
            yield {"role": "assistant", "content": content, "tool_calls": calls}
        elif content is not None:
            yield {"role": "assistant", "content": content}

    def form(self, part: Part, role: Role) -> dict[str, Any] | None:
        """See OpenAIProvider.form()."""
        match part:
            case TextPart():
                return merged({"type": "text", "text": part.text}, part.provider_options)
            case ImagePart() if role == "user":
                return _image(part)
            case DocumentPart() if role == "user":
                return _document(part)
        return None

    def assembly(self) -> ChatAssembly:
        """See OpenAIProvider.assembly()."""
        return ChatAssembly()

    def read(self, answer: Any, request: ProviderRequest) -> Step:
        """See OpenAIProvider.read()."""
        if not answer.get("choices") and (error := answer.get("error")):
            word = error_word(error.get("code"), error.get("type"))
            raise ProviderUnavailable(f"The provider failed to answer{word}.")
        choice = answer["choices"][0]
        message = choice["message"]
        reader = CallReader(request)
        raw_calls = message.get("tool_calls") or []
        calls = [_read_call(reader, raw) for raw in raw_calls]
        return Step(
            items=(*_read_message(message), *calls),
            finish_reason=_finish_reason(choice.get("finish_reason"), message, calls),
            usage=_usage(answer.get("usage")),
            provider=self.name,
            model=answer.get("model") or request.model,
            replay=self.replay(request, [block])
            if (block := _block(message, raw_calls, calls))
            else None,
        )


def _image(part: ImagePart) -> dict[str, Any]:
    options = dict(part.provider_options)
    image: dict[str, Any] = {"url": address(part, source(part, TAKES))}
    if "detail" in options:
        image["detail"] = options.pop("detail")
    return merged({"type": "image_url", "image_url": image}, options)


def _document(part: DocumentPart) -> dict[str, Any]:
    if source(part, TAKES) == "data":
        file = {"filename": file_name(part), "file_data": address(part, "data")}
    else:
        file = {"file_id": part.file_id}
    return merged({"type": "file", "file": file}, part.provider_options)


def _as_text(part: Part) -> Part:
    """Return a refusal as text: many servers know no other form of it."""
    return TextPart(text=part.text) if isinstance(part, RefusalPart) else part


def _sent_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": sent_name(call), "arguments": sent_arguments(call)}
    return {"id": call.id, "type": "function", "function": function}


def _echoed_call(raw: dict[str, Any], call: ToolCall) -> dict[str, Any]:
    """Return a call as it came, but with an id and arguments that can be sent back."""
    raw = {key: value for key, value in raw.items() if key != "index"}
    return {**raw, "id": call.id, "type": "function", "function": echoed(raw["function"], call)}


def _read_call(reader: CallReader, raw: dict[str, Any]) -> ToolCall:
    function = raw["function"]
    return reader.read(raw.get("id"), function.get("name"), function.get("arguments"))


def _read_message(message: dict[str, Any]) -> Iterator[StepItem]:
    if reasoning := message.get(REASONING[0]) or message.get(REASONING[1]):
        yield Reasoning(text=reasoning)
    metadata = {key: value for key, value in message.items() if value and key not in READ}
    if message.get("content") or metadata:
        yield TextPart(text=message.get("content") or "", provider_metadata=metadata)
    if refusal := message.get("refusal"):
        yield RefusalPart(text=refusal)


def _block(
    message: dict[str, Any], raw_calls: list[dict[str, Any]], calls: list[ToolCall]
) -> dict[str, Any] | None:
    """
    Return the message to echo within the turn, if it holds more than neutral messages do.

    Reasoning models of some servers refuse the results of tools without it.
    """
    extras = {key: message[key] for key in ECHOED if message.get(key)}
    plain = all(raw.keys() <= {"id", "type", "function", "index"} for raw in raw_calls)
    if not calls or (plain and not extras):
        return None
    sent = [_echoed_call(raw, call) for raw, call in zip(raw_calls, calls, strict=True)]
    return {"role": "assistant", "content": message.get("content"), "tool_calls": sent} | extras


def _finish_reason(
    told: str | None, message: dict[str, Any], calls: list[ToolCall]
) -> FinishReason:
    if told is None:
        raise ProviderUnavailable(BROKEN_OFF)
    reason = FINISH_REASONS.get(told)
    if reason is None or (reason == "tool_calls" and not calls):
        word = error_word(told)
        raise ProviderUnavailable(f"The provider's answer ended in an unknown way{word}.")
    if reason in ("length", "content_filter"):
        return reason
    if message.get("refusal"):
        return "refusal"
    return "tool_calls" if calls else "stop"


def _usage(usage: Any) -> Usage:
    return Usage(
        input_tokens=tokens(usage, "prompt_tokens"),
        output_tokens=tokens(usage, "completion_tokens"),
        cached_tokens=tokens(usage, "prompt_tokens_details", "cached_tokens"),
        reasoning_tokens=tokens(usage, "completion_tokens_details", "reasoning_tokens"),
    )
