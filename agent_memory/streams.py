"""A running answer as an iterator of events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterator
from types import TracebackType
from typing import Self

from agent_memory.responses import Event, Finished, Response, Started


class _StreamState:
    """What a stream tells while it runs."""

    conversation_id: str | None = None
    """Known from the first event on."""

    response: Response | None = None
    """The response, once the stream has ended."""

    _begun = False

    def _note(self, event: Event) -> Event:
        self._begun = True
        if isinstance(event, Started):
            self.conversation_id = event.conversation_id
        elif isinstance(event, Finished):
            self.response = event.response
        return event


class AgentStream(_StreamState, Iterator[Event]):
    """
    The events of one answer, from ``Started`` to ``Finished``.

    Closing it early, or leaving its ``with`` block, ends the turn.
    """

    def __init__(self, events: Generator[Event, None, Response]) -> None:
        self._events = events
        self._ahead: list[Event] = []

    def __next__(self) -> Event:
        return self._ahead.pop() if self._ahead else self._note(next(self._events))

    def __enter__(self) -> Self:
        if not self._begun:
            self._ahead.append(next(self))
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the turn, if it is still running."""
        self._ahead.clear()
        self._events.close()


class AsyncAgentStream(_StreamState):
    """See AgentStream."""

    def __init__(self, events: AsyncGenerator[Event, None]) -> None:
        self._events = events
        self._ahead: list[Event] = []

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        return self._ahead.pop() if self._ahead else self._note(await anext(self._events))

    async def __aenter__(self) -> Self:
        if not self._begun:
            self._ahead.append(await anext(self))
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """See AgentStream.close()."""
        self._ahead.clear()
        await self._events.aclose()
