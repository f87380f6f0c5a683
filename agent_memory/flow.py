"""
A turn is written once, as a generator of effects; a driver performs them.

The flow decides and does nothing; the drivers do and decide nothing. There are
four: ``run``, ``arun``, ``stream`` and ``astream``. What they share:

- ``Do`` runs on the caller's thread and is never cut short: when the caller is
  cancelled meanwhile, it is finished first. If it then fails, its error is the
  cause of the ``TurnAbandoned`` that the flow gets.
- ``Start`` runs beside, in a daemon thread or a task, and gives a handle.
- On close or cancel a driver throws ``TurnAbandoned`` into the flow and performs
  the effects of its clean-up; events that it emits then go nowhere.

The idea of a flow as a generator is that of httpx's ``Auth.auth_flow``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from agent_memory.beside import BesideInTask, BesideInThread
from agent_memory.responses import Event

R = TypeVar("R")


class TurnAbandoned(BaseException):
    """The caller closed the stream or cancelled the call."""


@dataclass(frozen=True, slots=True)
class Do:
    """Perform ``work(*args, **kwargs)`` on the caller's thread; ``awork`` is its async twin."""

    work: Callable[..., Any]
    awork: Callable[..., Awaitable[Any]]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Start:
    """
    Begin ``call(*args)`` beside the flow; the answer is a handle for it.

    ``streamed``: the call gives an iterator, of which each ``Take`` takes one
    item, and ``beside.END`` after the last.
    """

    call: Callable[..., Any]
    acall: Callable[..., Any]
    args: tuple[Any, ...] = ()
    streamed: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait up to ``seconds`` (``None``: without end); the answer is whether there is something."""

    handle: Any
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Take:
    """Take what the handle has: the result, the next item, or the error it raises."""

    handle: Any


@dataclass(frozen=True, slots=True)
class Emit:
    """Give an event to whoever reads the stream."""

    event: Event


Effect = Do | Start | Wait | Take | Emit
Flow = Generator[Effect, Any, R]


def _next_effect(flow: Flow[R], answer: Any, error: BaseException | None) -> Effect:
    effect: object = flow.send(answer) if error is None else flow.throw(error)
    while not isinstance(effect, Effect):
        effect = flow.throw(
            TypeError(
                f"A flow yielded {effect!r:.80}, which is no effect: call another flow with "
                "'yield from'."
            )
        )
    return effect


def _perform(effect: Effect, handles: list[BesideInThread]) -> Any:
    match effect:
        case Do():
            return effect.work(*effect.args, **effect.kwargs)
        case Start():
            handles.append(BesideInThread(effect.call, effect.args, streamed=effect.streamed))
            return handles[-1]
        case Wait():
            return effect.handle.ready(effect.seconds)
        case Take():
            return effect.handle.take()


def stream(flow: Flow[R]) -> Generator[Event, None, R]:
    """Perform a flow on this thread; yield its events and return its result."""
    handles: list[BesideInThread] = []
    answer: Any = None
    error: BaseException | None = None
    closed: GeneratorExit | None = None
    try:
        while True:
            effect = _next_effect(flow, answer, error)
            answer = error = None
            try:
                if not isinstance(effect, Emit):
                    answer = _perform(effect, handles)
                elif closed is None:
                    yield effect.event
            except GeneratorExit as raised:
                closed, error = raised, TurnAbandoned()
            except BaseException as raised:
                error = raised
    except StopIteration as stop:
        if closed is not None:
            raise closed from None
        result: R = stop.value
        return result
    except TurnAbandoned:
        if closed is None:
            raise
        raise closed from None
    finally:
        for handle in handles:
            handle.stop()


def run(flow: Flow[R]) -> R:
    """Perform a flow on this thread; return its result."""
    events = stream(flow)
    while True:
        try:
            next(events)
        except StopIteration as stop:
            result: R = stop.value
            return result


class _Caller:
    """Who awaits a flow; ``left`` is how they left it, by GeneratorExit or CancelledError."""

    left: BaseException | None = None

    def leave(self, how: BaseException) -> TurnAbandoned | None:
        """Note how the caller left; return what the flow is told of it, which is told once."""
        told, self.left = self.left is not None, how
        return None if told else TurnAbandoned()

    async def finish(self, work: Awaitable[Any]) -> tuple[Any, Any, TurnAbandoned | None]:
        """
        Await work to its end, even when cancelled meanwhile.

        Return its answer, its error, and what the flow is told after the answer.
        An error that came after the caller left is the cause of what is told.
        """
        task = asyncio.ensure_future(_outcome(work))
        cancelled: asyncio.CancelledError | None = None
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as raised:
                cancelled = raised
        answer, error = task.result()
        abandoned = self.leave(cancelled) if cancelled is not None else None
        if error is not None and abandoned is not None:
            abandoned.__cause__ = error
            return None, abandoned, None
        return answer, error, abandoned


async def _outcome(work: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    """Return what work gives or raises: an interrupt that a task raises would stop its loop."""
    try:
        return await work, None
    except BaseException as error:
        return None, error


async def _aperform(effect: Effect, handles: list[BesideInTask]) -> Any:
    match effect:
        case Do():
            return await effect.awork(*effect.args, **effect.kwargs)
        case Start():
            handles.append(BesideInTask(effect.acall, effect.args, streamed=effect.streamed))
            return handles[-1]
        case Wait():
            return await effect.handle.ready(effect.seconds)
        case Take():
            return await effect.handle.take()


async def astream(flow: Flow[R], *, result: Callable[[R], None]) -> AsyncGenerator[Event, None]:
    """Perform a flow in this task; yield its events and hand its result to ``result``."""
    handles: list[BesideInTask] = []
    caller = _Caller()
    answer: Any = None
    error: BaseException | None = None
    abandoned: TurnAbandoned | None = None
    try:
        while True:
            effect = _next_effect(flow, answer, error)
            answer, error, abandoned = None, abandoned, None
            if error is not None:
                continue
            try:
                if isinstance(effect, Emit):
                    if caller.left is None:
                        yield effect.event
                elif isinstance(effect, Do) or caller.left is not None:
                    answer, error, abandoned = await caller.finish(_aperform(effect, handles))
                else:
                    answer = await _aperform(effect, handles)
            except (GeneratorExit, asyncio.CancelledError) as raised:
                error = caller.leave(raised) or raised
            except BaseException as raised:
                error = raised
    except StopIteration as stop:
        result(stop.value)
        if caller.left is not None:
            raise caller.left from None
    except TurnAbandoned as told:
        raise (caller.left or told) from None
    finally:
        left = caller.left
        await caller.finish(asyncio.gather(*(handle.stop() for handle in handles)))
        if caller.left is not None and caller.left is not left:
            raise caller.left


async def arun(flow: Flow[R]) -> R:
    """Perform a flow in this task; return its result."""
    results: list[R] = []
    async for _ in astream(flow, result=results.append):
        pass
    return results[0]


def pause(seconds: float) -> Flow[None]:
    """Let so many seconds pass."""
    passed = yield Start(time.sleep, asyncio.sleep, (seconds,))
    yield Take(passed)
