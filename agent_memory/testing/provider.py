"""A provider that answers from a script, for tests without a model."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence
from typing import Any, TypeAlias

from agent_memory import titles
from agent_memory.exceptions import ProviderUnavailable
from agent_memory.messages import (
    Reasoning,
    RefusalPart,
    Step,
    StepItem,
    TextPart,
    ToolCall,
    Usage,
)
from agent_memory.providers.base import Provider, ProviderReply, ProviderRequest
from agent_memory.responses import Event, ReasoningDelta, RefusalDelta, TextDelta

Reply: TypeAlias = (
    str
    | Step
    | StepItem
    | Sequence[str | StepItem]
    | BaseException
    | type[BaseException]
    | Callable[[ProviderRequest], "Reply"]
)

GATE_SECONDS = 30


class ScriptExhausted(AssertionError):
    """The provider was asked once more than its script has replies."""


class ScriptedProvider(Provider):
    """
    Answers each request with the next reply of a script.

    A reply is text, a tool call or a list of such, a whole ``Step``, an error
    to raise, or a function of the request that returns one of these. Texts and
    calls become a step with ``usage``. ``requests`` is what was asked so far.

    Titles are drafted beside the answer, in no certain order: their requests go
    to ``title_requests`` and get ``title``, or ``ProviderUnavailable`` where
    there is none.

    Each request sets the event ``asked``, then waits for ``gate`` if one is
    given, so a test can look at a turn that is running.
    """

    name = "scripted"

    def __init__(
        self,
        replies: Iterable[Reply] = (),
        *,
        title: Reply | None = None,
        usage: Usage | None = None,
        gate: threading.Event | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.replies: list[Reply] = []
        self.requests: list[ProviderRequest] = []
        self.title_requests: list[ProviderRequest] = []
        self.title = title
        self.usage = usage or Usage()
        self.asked = threading.Event()
        self.gate = gate
        self._lock = threading.Lock()
        self.extend(replies)

    def extend(self, replies: Iterable[Reply]) -> None:
        """Add replies to the end of the script."""
        if isinstance(replies, str):
            raise TypeError("A script is a list of replies: wrap a single text in a list.")
        self.replies.extend(replies)

    def assert_exhausted(self) -> None:
        """Raise ``AssertionError`` when replies are left that nobody asked for."""
        used, there = len(self.requests), len(self.replies)
        if used < there:
            raise AssertionError(
                f"{there - used} of {there} scripted replies were not used; the next is "
                f"{self.replies[used]!r:.200}."
            )

    def complete(self, request: ProviderRequest) -> ProviderReply:
        """Return the next reply of the script, or raise it."""
        reply = self._next(request)
        if self.gate is not None and not self.gate.wait(GATE_SECONDS):
            raise _shut()
        return self._answer(reply, request)

    async def acomplete(self, request: ProviderRequest) -> ProviderReply:
        """See complete()."""
        reply = self._next(request)
        until = time.monotonic() + GATE_SECONDS
        while self.gate is not None and not self.gate.is_set():
            if time.monotonic() > until:
                raise _shut()
            await asyncio.sleep(0.001)
        return self._answer(reply, request)

    def stream(self, request: ProviderRequest) -> Generator[Event | ProviderReply, None, None]:
        """Yield the next reply word by word, then whole."""
        reply = self.complete(request)
        yield from _events(reply.step)
        yield reply

    async def astream(
        self, request: ProviderRequest
    ) -> AsyncGenerator[Event | ProviderReply, None]:
        """See stream()."""
        reply = await self.acomplete(request)
        for event in _events(reply.step):
            yield event
        yield reply

    def _next(self, request: ProviderRequest) -> Reply:
        with self._lock:
            if request.instructions == titles.INSTRUCTIONS:
                self.title_requests.append(request)
                return ProviderUnavailable("No title.") if self.title is None else self.title
            used = len(self.requests)
            if used == len(self.replies):
                raise ScriptExhausted(
                    f"The provider was asked for reply {used + 1}, and its script has {used}: "
                    f"{request.messages[-1:]!r:.200}."
                )
            self.requests.append(request)
        self.asked.set()
        return self.replies[used]

    def _answer(self, reply: Reply, request: ProviderRequest) -> ProviderReply:
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(reply, type):
            raise reply()
        if callable(reply):
            return self._answer(reply(request), request)
        if isinstance(reply, Step):
            return ProviderReply(reply)
        parts = reply if isinstance(reply, Sequence) and not isinstance(reply, str) else [reply]
        items = tuple(TextPart(text=part) if isinstance(part, str) else part for part in parts)
        calls = any(isinstance(item, ToolCall) for item in items)
        return ProviderReply(
            Step(
                items=items,
                finish_reason="tool_calls" if calls else "stop",
                usage=self.usage,
                provider=self.name,
                model=request.model,
            )
        )


def _shut() -> AssertionError:
    return AssertionError(f"Nobody opened the provider's gate within {GATE_SECONDS} seconds.")


def _events(step: Step) -> Generator[Event, None, None]:
    for item in step.items:
        if isinstance(item, TextPart):
            yield from map(TextDelta, _pieces(item.text))
        elif isinstance(item, RefusalPart):
            yield from map(RefusalDelta, _pieces(item.text))
        elif isinstance(item, Reasoning):
            yield from map(ReasoningDelta, _pieces(item.text))


def _pieces(text: str) -> list[str]:
    return re.findall(r"\S+\s*|\s+", text)
