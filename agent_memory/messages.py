"""
Messages are values: no id, no time, no place in a table.

A *turn* is what one user message led to: the message and its *steps*. A *step*
is one round trip to a provider and keeps what came back in the order in which
it came; a tool call carries its own result, so the two can never be parted.
Equality of values is the test of every round trip.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, field_validator

from agent_memory.parts import (
    DocumentPart,
    FilePart,
    ImagePart,
    Part,
    RefusalPart,
    TextPart,
    Value,
    plain_text,
    trusting,
)

__all__ = [
    "INTERRUPTED",
    "UNDECIDED",
    "DocumentPart",
    "FilePart",
    "FinishReason",
    "ImagePart",
    "Message",
    "Part",
    "ProviderToolCall",
    "Reasoning",
    "RefusalPart",
    "Replay",
    "Role",
    "Status",
    "Step",
    "StepItem",
    "TextPart",
    "ToolCall",
    "ToolResult",
    "Turn",
    "TurnError",
    "Usage",
    "Value",
]

Role = Literal["system", "developer", "user", "assistant", "tool"]
Status = Literal["completed", "paused", "failed"]
FinishReason = Literal["stop", "tool_calls", "length", "content_filter", "refusal"]

INTERRUPTED = "This call was interrupted: it may or may not have run."
UNDECIDED = "This call was not run: it needed an approval that it did not get."


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)


class ToolResult(Value):
    """
    What a tool returned: any JSON value.

    ``failed``: it raised, and ``value`` is a text that a model may read.
    ``denied``: a person did not allow the call.
    """

    value: JsonValue = None
    failed: bool = False
    denied: bool = False

    @property
    def text(self) -> str:
        """The result as a model is told it: text as it is, the rest as JSON."""
        return self.value if isinstance(self.value, str) else _json(self.value)


class ToolCall(Value):
    """
    A call that a model asked for, with its result once there is one.

    ``raw_arguments`` holds what the model wrote where that was no JSON object;
    ``arguments`` is empty then. ``approval_reason`` says why a person must allow the
    call, ``edited`` with which other arguments one did.
    """

    type: Literal["tool_call"] = "tool_call"
    id: str
    name: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    raw_arguments: str | None = None
    approval_reason: str | None = None
    edited: dict[str, JsonValue] | None = None
    result: ToolResult | None = None
    provider_metadata: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def arguments_text(self) -> str:
        """The arguments as JSON text, or as the model wrote them where they were none."""
        return self.raw_arguments if self.raw_arguments is not None else _json(self.arguments)

    @property
    def unanswered(self) -> ToolResult:
        """The result that stands for a missing one in a failed turn."""
        text = INTERRUPTED if self.approval_reason is None else UNDECIDED
        return ToolResult(value=text, failed=True)

    @property
    def told(self) -> str:
        """The result as a model is told it, with what a person changed."""
        result = self.result
        assert result is not None
        if self.edited is None:
            return result.text
        return f"A person changed the arguments to {_json(self.edited)}.\n{result.text}"


class ProviderToolCall(Value):
    """A call that the provider ran itself (web search, code interpreter), as it came."""

    type: Literal["provider_tool_call"] = "provider_tool_call"
    name: str
    data: dict[str, JsonValue] = Field(default_factory=dict)


class Reasoning(Value):
    """A readable summary of how a model came to its answer; never sent back."""

    type: Literal["reasoning"] = "reasoning"
    text: str = ""


StepItem = Annotated[
    TextPart | RefusalPart | Reasoning | ToolCall | ProviderToolCall, Field(discriminator="type")
]


class Usage(Value):
    """Tokens, as the provider counted them; ``cached`` is part of input, ``reasoning`` of output."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return _together((self, other))


def _together(usages: Collection[Usage]) -> Usage:
    return Usage(
        input_tokens=sum(each.input_tokens for each in usages),
        output_tokens=sum(each.output_tokens for each in usages),
        cached_tokens=sum(each.cached_tokens for each in usages),
        reasoning_tokens=sum(each.reasoning_tokens for each in usages),
    )


class Replay(Value):
    """Opaque blocks that one provider and model want back as they were, within a turn."""

    provider: str
    model: str
    blocks: tuple[dict[str, JsonValue], ...] = ()


class Step(Value):
    """
    One round trip to a provider: what came back, in the order in which it came.

    With the ``finish_reason`` ``tool_calls`` its calls are run, and another step
    follows. ``replay`` is kept while the turn is paused.
    """

    items: tuple[StepItem, ...] = ()
    finish_reason: FinishReason = "stop"
    usage: Usage = Usage()
    provider: str = ""
    model: str = ""
    replay: Replay | None = None

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join([item.text for item in self.items if item.type == "text"])

    def tool_calls(self) -> tuple[ToolCall, ...]:
        """Return the calls of the project's tools, in order."""
        return tuple([item for item in self.items if item.type == "tool_call"])

    def provider_tool_calls(self) -> tuple[ProviderToolCall, ...]:
        """Return the calls that the provider ran itself, in order."""
        return tuple([item for item in self.items if item.type == "provider_tool_call"])

    def with_results(self, results: dict[int, ToolResult]) -> Step:
        """Return a copy with results on the calls, by their index among the calls."""
        calls = self.tool_calls()
        return self.with_calls(
            {
                index: calls[index].model_copy(update={"result": result})
                for index, result in results.items()
                if index < len(calls)
            }
        )

    def with_calls(self, calls: dict[int, ToolCall]) -> Step:
        """Return a copy with other calls, by their index among the calls."""
        items: list[StepItem] = []
        index = -1
        for item in self.items:
            if item.type == "tool_call":
                index += 1
                item = calls.get(index, item)
            items.append(item)
        return self.model_copy(update={"items": tuple(items)})


class Message(Value):
    """
    One message, as a provider is sent it or a person wrote it.

    ``Message("user", "Hello")`` or ``Message(content=[TextPart(text="Hello")])``:
    ``content`` is text or parts. Only assistant messages carry ``tool_calls``,
    only tool messages a ``tool_call_id``.
    """

    role: Role = "user"
    content: tuple[Part, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None

    def __init__(self, role: Role = "user", content: Any = (), **fields: Any) -> None:
        super().__init__(**{"role": role, "content": content, **fields})

    # Else pydantic would validate stored messages by calling __init__, which forbids new fields.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # a mark of pydantic's

    @field_validator("content", mode="before")
    @classmethod
    def _text_is_a_part(cls, content: Any) -> Any:
        return (TextPart(text=content),) if isinstance(content, str) else content

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join([part.text for part in self.content if part.type == "text"])

    @property
    def size(self) -> int:
        """The bytes of its texts, in UTF-8, and of its files."""
        return sum(part.size for part in self.content)


class TurnError(Value):
    """What a failed turn died of: never the text of an exception, which may hold secrets."""

    code: str
    status: int | None = None
    request_id: str | None = None


class Turn(Value):
    """
    A user message and the steps that answered it.

    ``title_usage`` is what drafting the conversation's title took beside it.
    """

    user: Message
    steps: tuple[Step, ...] = ()
    status: Status = "completed"
    error: TurnError | None = None
    title_usage: Usage = Usage()

    @property
    def usage(self) -> Usage:
        """The tokens of all steps together."""
        return _together([step.usage for step in self.steps])

    @property
    def text(self) -> str:
        """The text of the last step."""
        return self.steps[-1].text if self.steps else ""

    @property
    def messages(self) -> tuple[Message, ...]:
        """The turn as a provider is sent it: user, assistant, tool, assistant..."""
        rounds = [step.items for step in self.steps]
        return (self.user, *answers(rounds, interrupted=self.status == "failed"))

    def tool_calls(self) -> tuple[ToolCall, ...]:
        """Return the calls of all steps, in order."""
        return tuple(call for step in self.steps for call in step.tool_calls())

    def provider_tool_calls(self) -> tuple[ProviderToolCall, ...]:
        """Return the calls that the provider ran itself, of all steps, in order."""
        return tuple(call for step in self.steps for call in step.provider_tool_calls())

    def tool_results(self) -> tuple[ToolResult, ...]:
        """Return the results that there are, in the order of their calls."""
        return tuple(call.result for call in self.tool_calls() if call.result is not None)


trusted_message = trusting(Message)
"""Make a message of its four fields, which are valid already."""


def answers(rounds: Iterable[Iterable[StepItem]], *, interrupted: bool) -> list[Message]:
    """
    Return the items of steps as an assistant message and one tool message a result.

    A call without a result is left out of a completed turn; in an interrupted
    one it is told as such, since it may have run.
    """
    messages: list[Message] = []
    for items in rounds:
        content: list[Part] = []
        calls: list[ToolCall] = []
        for item in items:
            if item.type == "tool_call":
                if item.result is not None:
                    calls.append(item)
                elif interrupted:
                    calls.append(item.model_copy(update={"result": item.unanswered}))
            elif item.type == "text" or item.type == "refusal":
                content.append(item)
        if content or calls:
            messages.append(
                trusted_message(
                    role="assistant",
                    content=tuple(content),
                    tool_calls=tuple(calls),
                    tool_call_id=None,
                )
            )
        messages += [
            trusted_message(
                role="tool", content=(plain_text(call.told),), tool_calls=(), tool_call_id=call.id
            )
            for call in calls
        ]
    return messages
