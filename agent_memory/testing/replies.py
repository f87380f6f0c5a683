"""The script of a model that is played: what it may answer, and how that streams."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

from agent_memory.messages import (
    FinishReason,
    ProviderToolCall,
    Reasoning,
    RefusalPart,
    Step,
    StepItem,
    TextPart,
    ToolCall,
    Usage,
)
from agent_memory.providers.base import ProviderReply, ProviderRequest
from agent_memory.responses import Event, ReasoningDelta, RefusalDelta, TextDelta

ITEMS = (TextPart, RefusalPart, Reasoning, ToolCall, ProviderToolCall)


class Answer:
    """
    An answer in the pieces in which it streams: ``Answer("Sto", "red: blue.")``.

    Pieces are texts, of which neighbours are one text, and what else a step may
    hold: ``Reasoning``, ``RefusalPart``, tool calls. An error as the last one
    breaks the answer off. ``finish_reason`` and ``usage`` are what the provider
    tells of it.
    """

    def __init__(
        self,
        *pieces: str | StepItem | BaseException,
        finish_reason: FinishReason | None = None,
        usage: Usage | None = None,
    ) -> None:
        if finish_reason is not None and finish_reason not in get_args(FinishReason):
            raise ValueError(
                f"A finish reason is one of {', '.join(get_args(FinishReason))}, "
                f"not {finish_reason!r:.80}."
            )
        self.error = pieces[-1] if pieces and isinstance(pieces[-1], BaseException) else None
        self.pieces: tuple[str | StepItem, ...] = tuple(
            _checked(piece) for piece in pieces[: len(pieces) - (self.error is not None)]
        )
        self.finish_reason = finish_reason
        self.usage = usage

    def __repr__(self) -> str:
        told = [*self.pieces] if self.error is None else [*self.pieces, self.error]
        return f"Answer({', '.join(map(repr, told))})"


@dataclass(frozen=True, slots=True)
class Title:
    """What a model answers when it is to draft the title of a conversation: any reply."""

    reply: Reply


Reply: TypeAlias = (
    str
    | Step
    | StepItem
    | Sequence[str | StepItem]
    | Answer
    | BaseException
    | type[BaseException]
    | Callable[[ProviderRequest], "Reply"]
)


def calls(*asked: str | tuple[str, dict[str, Any] | str] | ToolCall) -> tuple[ToolCall, ...]:
    """
    Return the calls that a model makes in one step: ``calls(("lookup", {"order": 1}))``.

    A name alone is a call without arguments; arguments that are text are what the
    model wrote, be it JSON or not. Calls get the ids ``call-1``, ``call-2``... in the
    order of the script. Raises ``TypeError``.
    """
    if not asked:
        raise TypeError('calls() takes calls: calls(("lookup", {"order": 1})).')
    return tuple(map(_call, asked))


def _call(asked: object) -> ToolCall:
    match asked:
        case ToolCall():
            return asked
        case str(name):
            return ToolCall(id="", name=name)
        case (str(name), str(text)):
            return ToolCall(id="", name=name, raw_arguments=text)
        case (str(name), dict(arguments)):
            return ToolCall(id="", name=name, arguments=arguments)
    raise TypeError(f'A call is ("name", {{arguments}}), a name or a ToolCall, not {asked!r:.80}.')


def check(replies: Iterable[Reply | Title]) -> list[Reply | Title]:
    """Return the replies of a script as a list; raises ``TypeError`` for what is none."""
    if isinstance(replies, str):
        raise TypeError("A script is a list of replies: wrap a single text in a list.")
    found = list(replies)
    for reply in found:
        _check(reply.reply if isinstance(reply, Title) else reply)
    return found


def _check(reply: object) -> None:
    if isinstance(reply, Step | Answer | BaseException):
        return
    if isinstance(reply, type):
        if not issubclass(reply, BaseException):
            raise _no_reply(reply)
    elif not callable(reply):
        for item in _items(reply):
            _checked(item)


def _items(reply: Any) -> Sequence[Any]:
    return reply if isinstance(reply, Sequence) and not isinstance(reply, str) else [reply]


def _checked(item: Any) -> Any:
    if not isinstance(item, (str, *ITEMS)):
        raise _no_reply(item)
    return item


def _no_reply(reply: object) -> TypeError:
    return TypeError(
        "A reply is text, calls(...), a list of such, an Answer, a Step, an error or a function "
        f"of the request, not {reply!r:.80}."
    )


@dataclass(frozen=True, slots=True)
class Played:
    """A reply as a provider gives it: the events of a stream, then a step or an error."""

    events: tuple[Event, ...]
    outcome: Step | BaseException

    def whole(self) -> ProviderReply:
        """Return the step, or raise the error."""
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return ProviderReply(self.outcome)


def play(
    reply: Reply, request: ProviderRequest, *, name: str, usage: Usage, new_id: Callable[[], str]
) -> Played:
    """Return what a provider of this name makes of a reply; ``new_id`` names its calls."""
    while not isinstance(reply, type) and callable(reply):
        reply = reply(request)
        _check(reply)
    if isinstance(reply, type):
        reply = reply()
    if isinstance(reply, BaseException):
        return Played((), reply)
    if isinstance(reply, Step):
        return Played(tuple(_events(reply.items)), reply)
    if isinstance(reply, Answer):
        items, events = tuple(_joined(reply.pieces)), tuple(_pieces_told(reply.pieces))
        if reply.error is not None:
            return Played(events, reply.error)
        reason, usage = reply.finish_reason, reply.usage or usage
    else:
        items = tuple(
            TextPart(text=item) if isinstance(item, str) else item for item in _items(reply)
        )
        events, reason = tuple(_events(items)), None
    step = Step(
        items=tuple(
            item.model_copy(update={"id": new_id()})
            if isinstance(item, ToolCall) and not item.id
            else item
            for item in items
        ),
        finish_reason=reason or _finish_reason(items),
        usage=usage,
        provider=name,
        model=request.model,
    )
    return Played(events, step)


def _finish_reason(items: Iterable[StepItem]) -> FinishReason:
    kinds = set(map(type, items))
    if RefusalPart in kinds:
        return "refusal"
    return "tool_calls" if ToolCall in kinds else "stop"


def _joined(pieces: Iterable[str | StepItem]) -> Iterator[StepItem]:
    text: str | None = None
    for piece in pieces:
        if isinstance(piece, str):
            text = (text or "") + piece
            continue
        if text is not None:
            yield TextPart(text=text)
            text = None
        yield piece
    if text is not None:
        yield TextPart(text=text)


def _pieces_told(pieces: Iterable[str | StepItem]) -> Generator[Event, None, None]:
    for piece in pieces:
        if isinstance(piece, str):
            yield TextDelta(piece)
        else:
            yield from _events((piece,))


def _events(items: Iterable[StepItem]) -> Generator[Event, None, None]:
    for item in items:
        if isinstance(item, TextPart):
            yield from map(TextDelta, _words(item.text))
        elif isinstance(item, RefusalPart):
            yield from map(RefusalDelta, _words(item.text))
        elif isinstance(item, Reasoning):
            yield from map(ReasoningDelta, _words(item.text))


def _words(text: str) -> list[str]:
    return re.findall(r"\S+\s*|\s+", text)
