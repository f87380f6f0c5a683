"""A provider that answers from a script, for tests without a model."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Generator, Iterable
from typing import Any

from agent_memory import titles
from agent_memory.exceptions import ProviderUnavailable
from agent_memory.messages import Usage
from agent_memory.providers.base import Provider, ProviderReply, ProviderRequest
from agent_memory.responses import Event
from agent_memory.testing.descriptions import brief, request_lines
from agent_memory.testing.replies import Played, Reply, Title, check, play

GATE_SECONDS = 30


class ScriptExhausted(AssertionError):
    """The provider was asked once more than its script has replies."""


class ScriptedProvider(Provider):
    """
    Answers each request with the next reply of a script.

    A reply is text, ``calls(...)`` or a list of such, an ``Answer``, a whole ``Step``,
    an error to raise, or a function of the request that returns one of these. Texts
    and calls become a step with ``usage``. ``requests`` is what was answered so far,
    ``unexpected`` what was asked beyond the script.

    Titles are drafted beside the answer, in no certain order: their requests go
    to ``title_requests`` and get the next ``Title`` of the script, or else ``title``,
    or ``ProviderUnavailable`` where there is none.

    Each request sets the event ``asked``, then waits for ``gate`` if one is
    given, so a test can look at a turn that is running.
    """

    name = "scripted"

    who = "The provider"
    """Who is scripted, in the messages of failed tests."""

    def __init__(
        self,
        replies: Iterable[Reply | Title] = (),
        *,
        title: Reply | None = None,
        usage: Usage | None = None,
        gate: threading.Event | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.replies: list[Reply] = []
        self.titles: list[Reply] = []
        self.requests: list[ProviderRequest] = []
        self.title_requests: list[ProviderRequest] = []
        self.unexpected: list[ProviderRequest] = []
        self.title = title
        self.usage = usage or Usage()
        self.asked = threading.Event()
        self.gate = gate
        self._calls = 0
        self._lock = threading.Lock()
        self.extend(replies)

    def extend(self, replies: Iterable[Reply | Title]) -> None:
        """Add replies to the end of the script; raises ``TypeError`` for what is none."""
        for reply in check(replies):
            if isinstance(reply, Title):
                self.titles.append(reply.reply)
            else:
                self.replies.append(reply)

    def assert_exhausted(self) -> None:
        """Raise ``AssertionError`` when replies are left that nobody asked for."""
        used, there = len(self.requests), len(self.replies)
        if used < there:
            raise AssertionError(
                f"{there - used} of {there} scripted replies were not used; the next is "
                f"{self.replies[used]!r:.200}. {self.who} was asked: {self._asked()}"
            )

    def exhausted(self, request: ProviderRequest) -> ScriptExhausted:
        """Return the error of a request beyond the script."""
        there = len(self.replies)
        return ScriptExhausted(
            "\n".join(
                [
                    f"{self.who} was asked for reply {there + 1}, and its script has {there}:",
                    *request_lines(request),
                    f"Before it was asked: {self._asked()}",
                ]
            )
        )

    def complete(self, request: ProviderRequest) -> ProviderReply:
        """Return the next reply of the script, or raise it."""
        return self._played(request).whole()

    async def acomplete(self, request: ProviderRequest) -> ProviderReply:
        """See complete()."""
        return (await self._aplayed(request)).whole()

    def stream(self, request: ProviderRequest) -> Generator[Event | ProviderReply, None, None]:
        """Yield the next reply in its pieces, or word by word, then whole."""
        played = self._played(request)
        yield from played.events
        yield played.whole()

    async def astream(
        self, request: ProviderRequest
    ) -> AsyncGenerator[Event | ProviderReply, None]:
        """See stream()."""
        played = await self._aplayed(request)
        for event in played.events:
            yield event
        yield played.whole()

    def _played(self, request: ProviderRequest) -> Played:
        reply = self._next(request)
        if self.gate is not None and not self.gate.wait(GATE_SECONDS):
            raise _shut()
        return self._play(reply, request)

    async def _aplayed(self, request: ProviderRequest) -> Played:
        reply = self._next(request)
        until = time.monotonic() + GATE_SECONDS
        while self.gate is not None and not self.gate.is_set():
            if time.monotonic() > until:
                raise _shut()
            await asyncio.sleep(0.001)
        return self._play(reply, request)

    def _play(self, reply: Reply, request: ProviderRequest) -> Played:
        return play(reply, request, name=self.name, usage=self.usage, new_id=self._new_id)

    def _next(self, request: ProviderRequest) -> Reply:
        with self._lock:
            if request.instructions == titles.INSTRUCTIONS:
                self.title_requests.append(request)
                if self.titles:
                    return self.titles.pop(0)
                return ProviderUnavailable("No title.") if self.title is None else self.title
            used = len(self.requests)
            if used == len(self.replies):
                self.unexpected.append(request)
                raise self.exhausted(request)
            self.requests.append(request)
        self.asked.set()
        return self.replies[used]

    def _new_id(self) -> str:
        with self._lock:
            self._calls += 1
            return f"call-{self._calls}"

    def _asked(self) -> str:
        asked = [brief(request.messages[-1].text) for request in self.requests]
        return ", ".join(map(repr, asked)) if asked else "nothing"


def _shut() -> AssertionError:
    return AssertionError(f"Nobody opened the provider's gate within {GATE_SECONDS} seconds.")
