"""
Answers that go on when their reader leaves.

What ``stream()`` gives ends its turn when it is closed, and a server closes it
when a page is left. Here a thread, or a task of the server's event loop, reads
it to its end, and the page reads from that. A process that ends takes its
answers with it; to have them survive that too, ask in a task queue.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue

from django.db import connections

from agent_memory.exceptions import ConversationConflict
from agent_memory.responses import Event, Response
from agent_memory.stores import get_store
from agent_memory.stores.database import DatabaseConversationStore
from agent_memory.streams import AgentStream, AsyncAgentStream

Item = Event | Exception | None
"""An event, the error that the answer ended with, or its end."""

_running: dict[str, Callable[[], object]] = {}
"""What stops the answer that this process gives in a conversation, by its id."""

_tasks: set[asyncio.Task[None]] = set()
"""Tasks that run: the event loop itself does not keep them."""


def is_running(conversation_id: str) -> bool:
    """Tell whether a turn runs in a conversation, in whatever process."""
    return any(held.state == "running" for held in _database().held_reservations(conversation_id))


def stop(conversation_id: str) -> None:
    """
    End the turn that runs in a conversation, in whatever process.

    The conversation is free at once. Of the turn only what its tools did is kept,
    as a failed turn. Where another process gives the answer, that goes on unseen to
    its end, and is not stored then.
    """
    store = _database()
    held = store.held_reservations(conversation_id)
    if end := _running.get(conversation_id):
        end()
    for each in held:
        store.end_reservation(each, although_running=True)


def _database() -> DatabaseConversationStore:
    store = get_store()
    assert isinstance(store, DatabaseConversationStore)  # no other tells what other processes do
    return store


def detached(stream: AgentStream, conversation_id: str) -> AgentStream:
    """Return a stream of the same events; closing it does not end the turn."""
    return AgentStream(_follow(stream, conversation_id))


def adetached(stream: AsyncAgentStream, conversation_id: str) -> AsyncAgentStream:
    """See detached()."""
    return AsyncAgentStream(_afollow(stream, conversation_id))


def _follow(stream: AgentStream, conversation_id: str) -> Generator[Event, None, Response]:
    items: SimpleQueue[Item] = SimpleQueue()
    stopped = threading.Event()

    def run() -> None:
        last: Item = None
        try:
            with stream, _stoppable(conversation_id, stopped.set):
                for event in stream:
                    if stopped.is_set():
                        raise _stopped(conversation_id)
                    items.put(event)
        except Exception as error:  # raised again where the events are read
            last = error
        finally:
            connections.close_all()
            items.put(last)

    threading.Thread(target=run, daemon=True).start()
    while (item := items.get()) is not None:
        if isinstance(item, Exception):
            raise item
        yield item
    assert stream.response is not None
    return stream.response


async def _afollow(stream: AsyncAgentStream, conversation_id: str) -> AsyncGenerator[Event, None]:
    items: asyncio.Queue[Item] = asyncio.Queue()

    async def run() -> None:
        last: Item = None
        try:
            async with stream:
                with _stoppable(conversation_id, partial(loop.call_soon_threadsafe, task.cancel)):
                    async for event in stream:
                        items.put_nowait(event)
        except asyncio.CancelledError:
            last = _stopped(conversation_id)
        except Exception as error:  # raised again where the events are read
            last = error
        items.put_nowait(last)

    loop = asyncio.get_running_loop()
    task = loop.create_task(run())
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
    while (item := await items.get()) is not None:
        if isinstance(item, Exception):
            raise item
        yield item


@contextmanager
def _stoppable(conversation_id: str, end: Callable[[], object]) -> Iterator[None]:
    """Let ``stop()`` end a turn that has begun, and so is the only one of its conversation."""
    _running[conversation_id] = end
    try:
        yield
    finally:
        if _running.get(conversation_id) is end:
            del _running[conversation_id]


def _stopped(conversation_id: str) -> ConversationConflict:
    return ConversationConflict(conversation_id, message="The turn was stopped.")
