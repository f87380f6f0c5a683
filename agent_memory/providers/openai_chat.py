"""The Chat Completions API through the official ``openai`` client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agent_memory.exceptions import ProviderUnavailable
from agent_memory.messages import (
    FinishReason,
    Message,
    Part,
    Reasoning,
    RefusalPart,
    Step,
    StepItem,
    TextPart,
    ToolCall,
    Usage,
)
from agent_memory.providers.base import ProviderRequest, ToolSpec
from agent_memory.providers.openai_errors import BROKEN_OFF, error_word
from agent_memory.providers.openai_provider import (
    CallReader,
    OpenAIProvider,
    echoed_arguments,
    sent_arguments,
    spoken,
)
from agent_memory.responses import Event, ReasoningDelta, RefusalDelta, TextDelta

REASONING = ("reasoning_content", "reasoning")
"""Where servers put readable reasoning; no part of OpenAI's own API."""

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
    reserved = frozenset({"function_call", "functions", "messages", "model", "n", "stream"})
    ours = {"stream_options": {"include_usage": True}}

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
                content = self.content(told.content, _form)
                yield {"role": "tool", "tool_call_id": told.tool_call_id, "content": content}
            else:
                yield {"role": told.role, "content": self.content(told.content, _form)}

    def _spoken(self, message: Message) -> Iterator[dict[str, Any]]:
        content = self.content(tuple(map(_as_text, spoken(message))), _form) or None
        if message.tool_calls:
            calls = [_sent_call(call) for call in message.tool_calls]
            yield {"role": "assistant", "content": content, "tool_calls": calls}
        elif content is not None:
            yield {"role": "assistant", "content": content}

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
        reader = CallReader()
        raw_calls = message.get("tool_calls") or []
        calls = [_read_call(reader, raw) for raw in raw_calls]
        return Step(
            items=(*_read_message(message), *calls),
            finish_reason=_finish_reason(choice.get("finish_reason"), message, calls),
            usage=_usage(answer.get("usage") or {}),
            provider=self.name,
            model=answer.get("model") or request.model,
            replay=self.replay(request, [block])
            if (block := _block(message, raw_calls, calls))
            else None,
        )


class ChatAssembly:
    """The chunks of a streamed completion."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {"role": "assistant", "content": None}
        self._calls: list[dict[str, Any]] = []
        self._by_index: dict[Any, dict[str, Any]] = {}
        self._rest: dict[str, Any] = {}
        self._finish_reason: str | None = None

    def take(self, piece: Any) -> Iterator[Event]:
        """See Assembly.take()."""
        self._rest |= {key: piece[key] for key in ("usage", "model") if piece.get(key)}
        for choice in piece.get("choices") or ():
            self._finish_reason = choice.get("finish_reason") or self._finish_reason
            delta = choice.get("delta") or {}
            yield from self._texts(delta)
            for fragment in delta.get("tool_calls") or ():
                self._join(fragment)

    def whole(self) -> Any:
        """See Assembly.whole()."""
        message = self._message | {"tool_calls": self._calls}
        choice = {"message": message, "finish_reason": self._finish_reason}
        return self._rest | {"choices": [choice]}

    def _texts(self, delta: dict[str, Any]) -> Iterator[Event]:
        for key in ("content", "refusal", *REASONING):
            if delta.get(key):
                self._message[key] = (self._message.get(key) or "") + delta[key]
        if reasoning := delta.get(REASONING[0]) or delta.get(REASONING[1]):
            yield ReasoningDelta(reasoning)
        if delta.get("content"):
            yield TextDelta(delta["content"])
        if delta.get("refusal"):
            yield RefusalDelta(delta["refusal"])

    def _join(self, fragment: dict[str, Any]) -> None:
        function = fragment.get("function") or {}
        call = self._call_of(fragment, function)
        joined = call["function"]
        call |= {
            key: value
            for key, value in fragment.items()
            if key not in ("index", "function") and not call.get(key)
        }
        if (name := function.get("name")) and name != joined["name"]:
            joined["name"] += name
        joined["arguments"] += function.get("arguments") or ""

    def _call_of(self, fragment: dict[str, Any], function: dict[str, Any]) -> dict[str, Any]:
        """Return the call that a fragment goes on with, or a new one."""
        index = fragment.get("index")
        last = self._calls[-1] if self._calls else None
        call = last if index is None else self._by_index.get(index)
        # Some servers give every parallel call the index 0, or none: then a named
        # function under another id begins a new call.
        other = (
            call and fragment.get("id") and function.get("name") and fragment["id"] != call["id"]
        )
        if call is None or other:
            call = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
            self._calls.append(call)
            self._by_index[index] = call
        return call


def _form(part: Part) -> dict[str, Any] | None:
    return {"type": "text", "text": part.text} if isinstance(part, TextPart) else None


def _as_text(part: Part) -> Part:
    """Return a refusal as text: many servers know no other form of it."""
    return TextPart(text=part.text) if isinstance(part, RefusalPart) else part


def _sent_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": sent_arguments(call)}
    return {"id": call.id, "type": "function", "function": function}


def _echoed_call(raw: dict[str, Any], call: ToolCall) -> dict[str, Any]:
    """Return a call as it came, but with an id and arguments that can be sent back."""
    function = raw["function"]
    function = {**function, "arguments": echoed_arguments(function.get("arguments"), call)}
    raw = {key: value for key, value in raw.items() if key != "index"}
    return {**raw, "id": call.id, "type": "function", "function": function}


def _read_call(reader: CallReader, raw: dict[str, Any]) -> ToolCall:
    function = raw["function"]
    return reader.read(raw.get("id"), function["name"], function.get("arguments"))


def _read_message(message: dict[str, Any]) -> Iterator[StepItem]:
    if reasoning := message.get(REASONING[0]) or message.get(REASONING[1]):
        yield Reasoning(text=reasoning)
    if text := message.get("content"):
        yield TextPart(text=text)
    if refusal := message.get("refusal"):
        yield RefusalPart(text=refusal)


def _block(
    message: dict[str, Any], raw_calls: list[dict[str, Any]], calls: list[ToolCall]
) -> dict[str, Any] | None:
    """
    Return the message to echo within the turn, if it holds more than neutral messages do.

    Reasoning models of some servers refuse the results of tools without it.
    """
    extras = {key: message[key] for key in REASONING if message.get(key)}
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


def _usage(usage: dict[str, Any]) -> Usage:
    return Usage(
        input_tokens=usage.get("prompt_tokens") or 0,
        output_tokens=usage.get("completion_tokens") or 0,
        cached_tokens=(usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0,
        reasoning_tokens=(usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
        or 0,
    )
