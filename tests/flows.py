"""Flows for tests: effects in both colours, gates, and the four drivers."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

import pytest

from agent_memory import flow
from agent_memory.flow import Do, Emit, Flow, Start
from agent_memory.responses import Event, TextDelta

PATIENCE = 30
"""Seconds after which a test that waits in vain fails."""


class Gate:
    """Where work stands still, in a thread or a task, until the test opens it."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    def open(self) -> None:
        self.opened.set()

    def wait(self) -> None:
        self.reached.set()
        assert self.opened.wait(PATIENCE)

    async def await_(self) -> None:
        self.reached.set()
        await until(self.opened)

    def do(self) -> Do:
        return Do(self.wait, self.await_)

    def start(self) -> Start:
        return Start(self.wait, self.await_)


async def until(event: threading.Event) -> None:
    """Wait for an event that a thread or a task sets."""
    async with asyncio.timeout(PATIENCE):
        while not event.is_set():  # noqa: ASYNC110  threads set it too
            await asyncio.sleep(0.001)


async def until_alone() -> None:
    """Wait until no other task runs."""
    async with asyncio.timeout(PATIENCE):
        while len(asyncio.all_tasks()) > 1:  # noqa: ASYNC110  any task may be the last
            await asyncio.sleep(0.001)


async def cancel_while(gate: Gate, task: asyncio.Task[Any]) -> None:
    """Cancel a task that stands at a gate, see that it stays there, and open the gate."""
    await until(gate.reached)
    task.cancel()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not task.done()
    gate.open()


def do(work: Callable[..., Any], *args: Any, **kwargs: Any) -> Do:
    """Return the effect of doing work that does not block."""

    async def awork(*args: Any, **kwargs: Any) -> Any:
        return work(*args, **kwargs)

    return Do(work, awork, args, kwargs)


def start(call: Callable[..., Any], *args: Any) -> Start:
    """Return the effect of starting a function, or a generator, that does not block."""

    async def acall(*args: Any) -> Any:
        return call(*args)

    async def astream(*args: Any) -> AsyncGenerator[Any, None]:
        for item in call(*args):
            yield item

    if inspect.isgeneratorfunction(call):
        return Start(call, astream, args, streamed=True)
    return Start(call, acall, args)


def in_loop(main: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine in a loop of its own; it may leave no task behind."""

    async def checked() -> Any:
        try:
            return await main
        finally:
            assert asyncio.all_tasks() == {asyncio.current_task()}

    return asyncio.run(checked())


CLEANED = ["TurnAbandoned", "cleaning", "cleaned"]


def guarded(log: list[str], turn: Flow[Any]) -> Flow[Any]:
    """Run a flow; note how it is left, and clean up in two effects with an event between."""
    try:
        return (yield from turn)
    except GeneratorExit:
        raise
    except BaseException as error:
        log.append(type(error).__name__)
        yield do(log.append, "cleaning")
        yield Emit(TextDelta("to nobody"))
        yield do(log.append, "cleaned")
        raise


def perform(driver: str, turn: Flow[Any]) -> tuple[Any, list[Event]]:
    """Perform a flow with one of the four drivers; return its result and what it emitted."""
    events: list[Event] = []
    if driver == "run":
        return flow.run(turn), events
    if driver == "arun":
        return in_loop(flow.arun(turn)), events
    if driver == "stream":
        stream = flow.stream(turn)
        while True:
            try:
                events.append(next(stream))
            except StopIteration as stop:
                return stop.value, events
    results: list[Any] = []

    async def consume() -> None:
        events.extend([event async for event in flow.astream(turn, result=results.append)])

    in_loop(consume())
    return results[0], events


by_every_driver = pytest.mark.parametrize("driver", ["run", "arun", "stream", "astream"])
by_both_streams = pytest.mark.parametrize("driver", ["stream", "astream"])
