"""The Responses API through the official ``openai`` client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agent_memory.exceptions import ProviderRefused, ProviderUnavailable
from agent_memory.messages import (
    DocumentPart,
    FinishReason,
    ImagePart,
    Message,
    Part,
    ProviderToolCall,
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
from agent_memory.providers.openai_errors import BROKEN_OFF, error_word
from agent_memory.providers.openai_files import address, file_name, merged, source
from agent_memory.providers.openai_provider import OpenAIProvider, spoken, tokens
from agent_memory.responses import Event, ReasoningDelta, RefusalDelta, TextDelta

ENCRYPTED_REASONING = "reasoning.encrypted_content"
PARAGRAPH = "\n\n"
"""What stands between the parts of a summary."""

INCOMPLETE: dict[Any, FinishReason] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
}
TAKES = {"image": ("data", "url", "file_id"), "document": ("data", "url", "file_id")}
PASSING_FAILURES = ("server_error", "rate_limit_exceeded", "vector_store_timeout")
WAITING = (
    "mcp_approval_request",
    "apply_patch_call",
    "computer_call",
    "custom_tool_call",
    "local_shell_call",
    "shell_call",
)
"""Output items that wait for an answer, which we have none for, unless it follows them."""


class OpenAIResponsesProvider(OpenAIProvider):
    """
    The Responses API, stateless: nothing is stored at the provider.

    Encrypted reasoning is asked for, and echoed within the turn. A model that
    refuses to give it is asked without, from then on. See ``OpenAIProvider``
    for the options; hosted tools go into ``request["tools"]``.
    """

    name = "openai_responses"
    endpoint = "responses"
    reserved = frozenset(
        {"background", "conversation", "input", "model", "previous_response_id", "stream"}
    )
    history = "input"
    ours = {"store": False, "include": []}
    takes = TAKES

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._without_encrypted: set[str] = set()

    def shape(self, request: ProviderRequest, arguments: dict[str, Any]) -> None:
        """See OpenAIProvider.shape()."""
        arguments["input"] = list(self._input(request))
        if request.instructions:
            arguments["instructions"] = request.instructions
        if request.max_output_tokens is not None:
            arguments["max_output_tokens"] = request.max_output_tokens
        if (include := arguments["include"]) is not None:
            include = [item for item in include if item != ENCRYPTED_REASONING]
            if request.model not in self._without_encrypted:
                include.append(ENCRYPTED_REASONING)
            arguments["include"] = include or None

    def tool(self, tool: ToolSpec) -> dict[str, Any]:
        """See OpenAIProvider.tool()."""
        return {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
            "strict": False,
        }

    def amend(self, arguments: dict[str, Any], error: Any) -> bool:
        """See OpenAIProvider.amend()."""
        include = arguments.get("include") or []
        if error.param != "include" or ENCRYPTED_REASONING not in include:
            return False
        self._without_encrypted.add(arguments["model"])
        include.remove(ENCRYPTED_REASONING)
        if not include:
            del arguments["include"]
        return True

    def _input(self, request: ProviderRequest) -> Iterator[dict[str, Any]]:
        for told in self.told(request):
            if isinstance(told, dict):
                yield told
            elif told.role == "tool":
                yield {
                    "type": "function_call_output",
                    "call_id": told.tool_call_id,
                    "output": self.content(told.content, told.role),
                }
            elif told.role == "assistant":
                yield from self._spoken(told)
            else:
                content = self.content(told.content, told.role)
                yield {"type": "message", "role": told.role, "content": content}

    def _spoken(self, message: Message) -> Iterator[dict[str, Any]]:
        if parts := spoken(message):
            content = self.content(parts, message.role)
            yield {"type": "message", "role": "assistant", "content": content}
        for call in message.tool_calls:
            yield {
                "type": "function_call",
                "call_id": call.id,
                "name": sent_name(call),
                "arguments": sent_arguments(call),
            }

    def form(self, part: Part, role: Role) -> dict[str, Any] | None:
        """See OpenAIProvider.form()."""
        match part:
            case TextPart():
                kind = "output_text" if role == "assistant" else "input_text"
                return merged({"type": kind, "text": part.text}, part.provider_options)
            case RefusalPart() if role == "assistant":
                return {"type": "refusal", "refusal": part.text}
            case ImagePart() if role == "user":
                return _image(part)
            case DocumentPart() if role == "user":
                return _document(part)
        return None

    def assembly(self) -> ResponseAssembly:
        """See OpenAIProvider.assembly()."""
        return ResponseAssembly()

    def read(self, answer: Any, request: ProviderRequest) -> Step:
        """See OpenAIProvider.read()."""
        status = answer.get("status")
        if status == "failed":
            raise _failed(answer.get("error") or {})
        if status not in ("completed", "incomplete"):
            raise ProviderUnavailable(BROKEN_OFF)
        output = answer["output"]
        _refuse_waiting(output)
        items: list[StepItem] = []
        blocks: list[dict[str, Any]] = []
        calls = CallReader(request)
        for block in output:
            if block["type"] == "function_call":
                call = calls.read(block.get("call_id"), block.get("name"), block.get("arguments"))
                items.append(call)
                block = {**echoed(block, call), "call_id": call.id}
            else:
                items.extend(_read_item(block))
            blocks.append(block)
        replayed = any(isinstance(item, Reasoning | ToolCall) for item in items)
        usage = _usage(answer.get("usage"))
        finish_reason = _finish_reason(answer, items)
        limit = request.max_output_tokens or self.default("max_output_tokens")
        if finish_reason in ("stop", "tool_calls") and limit and usage.output_tokens >= limit:
            finish_reason = "length"  # llama.cpp calls an answer completed that it has cut
        return Step(
            items=tuple(items),
            finish_reason=finish_reason,
            usage=usage,
            provider=self.name,
            model=answer.get("model") or request.model,
            replay=self.replay(request, blocks) if replayed else None,
        )


class ResponseAssembly:
    """The events of a streamed response."""

    def __init__(self) -> None:
        self._done: list[dict[str, Any]] = []
        self._response: dict[str, Any] | None = None

    def take(self, piece: Any) -> Iterator[Event]:
        """See Assembly.take()."""
        match piece["type"]:
            case "response.output_text.delta":
                yield TextDelta(piece["delta"])
            case "response.refusal.delta":
                yield RefusalDelta(piece["delta"])
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                yield ReasoningDelta(piece["delta"])
            case "response.reasoning_summary_part.added" if piece.get("summary_index"):
                yield ReasoningDelta(PARAGRAPH)
            case "response.output_item.done":
                self._done.append(piece)
            case "response.completed" | "response.incomplete" | "response.failed" as kind:
                self._response = {"status": kind.removeprefix("response."), **piece["response"]}
            case "error":
                word = error_word(piece.get("code"))
                raise ProviderUnavailable(f"The provider's answer broke off{word}.")

    def whole(self) -> Any:
        """See Assembly.whole()."""
        if self._response is None:
            raise ProviderUnavailable(BROKEN_OFF)
        # llama.cpp gives no output_index, and then the order of arrival stands.
        done = sorted(self._done, key=lambda piece: piece.get("output_index") or 0)
        output = self._response.get("output") or [piece["item"] for piece in done]
        return {**self._response, "output": output}


def _image(part: ImagePart) -> dict[str, Any]:
    way = source(part, TAKES)
    where = {"file_id": part.file_id} if way == "file_id" else {"image_url": address(part, way)}
    # The detail is the API's own default; servers that follow its schema want it told.
    return {"detail": "auto"} | merged({"type": "input_image", **where}, part.provider_options)


def _document(part: DocumentPart) -> dict[str, Any]:
    match source(part, TAKES):
        case "data":
            where = {"filename": file_name(part), "file_data": address(part, "data")}
        case "url":
            where = {"file_url": part.url}
        case _:
            where = {"file_id": part.file_id}
    return merged({"type": "input_file", **where}, part.provider_options)


def _refuse_waiting(output: list[dict[str, Any]]) -> None:
    answered = {block.get("call_id") for block in output if block["type"].endswith("_output")}
    for block in output:
        waits = block["type"] in WAITING or block.get("execution") == "client"
        if waits and block.get("call_id") not in answered:
            raise ProviderRefused(
                f"The model answered with {block['type']!r}, which waits for an answer that "
                "agent_memory cannot give: let the hosted tool run without approval, or leave it "
                "out of the tools."
            )


def _read_item(block: dict[str, Any]) -> Iterator[StepItem]:
    match block["type"]:
        case "message":
            for part in block.get("content") or ():
                yield from _read_part(part)
        case "reasoning":
            texts = block.get("summary") or block.get("content") or ()
            yield Reasoning(text=PARAGRAPH.join(text["text"] for text in texts))
        case name:
            yield ProviderToolCall(name=name, data=block)


def _read_part(part: dict[str, Any]) -> Iterator[TextPart | RefusalPart]:
    match part["type"]:
        case "output_text":
            metadata = {key: part[key] for key in ("annotations", "logprobs") if part.get(key)}
            if part["text"] or metadata:
                yield TextPart(text=part["text"], provider_metadata=metadata)
        case "refusal":
            yield RefusalPart(text=part["refusal"])
        case _:
            raise ValueError("a content part of an unknown type")


def _finish_reason(answer: dict[str, Any], items: list[StepItem]) -> FinishReason:
    if answer["status"] == "incomplete":
        details = answer.get("incomplete_details") or {}
        if (reason := INCOMPLETE.get(details.get("reason"))) is None:
            word = error_word(details.get("reason"))
            raise ProviderUnavailable(f"The provider's answer is incomplete{word}.")
        return reason
    if any(isinstance(item, RefusalPart) for item in items):
        return "refusal"
    return "tool_calls" if any(isinstance(item, ToolCall) for item in items) else "stop"


def _failed(error: dict[str, Any]) -> ProviderUnavailable | ProviderRefused:
    code = error.get("code")
    text = f"The provider failed to answer{error_word(code)}."
    passing = code is None or code in PASSING_FAILURES
    return ProviderUnavailable(text) if passing else ProviderRefused(text)


def _usage(usage: Any) -> Usage:
    return Usage(
        input_tokens=tokens(usage, "input_tokens"),
        output_tokens=tokens(usage, "output_tokens"),
        cached_tokens=tokens(usage, "input_tokens_details", "cached_tokens"),
        reasoning_tokens=tokens(usage, "output_tokens_details", "reasoning_tokens"),
    )
