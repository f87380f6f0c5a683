"""
A turn is written once, as a generator of effects; a driver performs them.

The flow decides and does nothing; the drivers do and decide nothing. There are
four: ``run``, ``arun``, ``stream`` and ``astream``. What they share:

- ``Do`` runs on the caller's thread and is never cut short: when the caller is
  cancelled meanwhile, it is finished first.
- ``Start`` runs beside, in a daemon thread or a task, and gives a handle.
- On close or cancel a driver throws ``TurnAbandoned`` into the flow and performs
  the effects of its clean-up; events that it emits then go nowhere.

The idea of a flow as a generator is that of httpx's ``Auth.auth_flow``.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from agent_memory.responses import Event

R = TypeVar("R")


class TurnAbandoned(BaseException):
    """The caller closed the stream or cancelled the call."""


class _End:
    """What a handle gives when its iterator has ended."""


END = _End()


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
    item, and ``END`` after the last.
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


class _Beside:
    """A call in a daemon thread; what it gives comes through a queue."""

    def __init__(self, effect: Start) -> None:
        self._given: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        self._next: tuple[Any, BaseException | None] | None = None
        self._stopped = threading.Event()
        context = contextvars.copy_context()
        threading.Thread(
            target=context.run, args=(self._work, effect), name="agent_memory", daemon=True
        ).start()

    def _work(self, effect: Start) -> None:
        try:
            result = effect.call(*effect.args)
            if effect.streamed:
                try:
                    for item in result:
                        self._given.put((item, None))
                        if self._stopped.is_set():
                            return
                finally:
                    result.close()
                result = END
            self._given.put((result, None))
        except BaseException as error:
            self._given.put((None, error))

    def ready(self, seconds: float | None) -> bool:
        if self._next is None:
            try:
                self._next = self._given.get(timeout=seconds)
            except queue.Empty:
                return False
        return True

    def take(self) -> Any:
        self.ready(None)
        assert self._next is not None
        (item, error), self._next = self._next, None
        if error is not None:
            raise error
        return item

    def stop(self) -> None:
        self._stopped.set()


class _AsyncBeside:
    """A call in a task; what it gives comes through a queue."""

    def __init__(self, effect: Start) -> None:
        self._given: deque[tuple[Any, BaseException | None]] = deque()
        self._arrived = asyncio.Event()
        self._task = asyncio.create_task(self._work(effect), name="agent_memory")

    def _put(self, item: Any, error: BaseException | None = None) -> None:
        self._given.append((item, error))
        self._arrived.set()

    async def _work(self, effect: Start) -> None:
        try:
            result = effect.acall(*effect.args)
            if effect.streamed:
                try:
                    async for item in result:
                        self._put(item)
                finally:
                    await result.aclose()
                result = END
            else:
                result = await result
            self._put(result)
        except BaseException as error:
            self._put(None, error)
            if not isinstance(error, Exception):
                raise

    async def ready(self, seconds: float | None) -> bool:
        if not self._given:
            self._arrived.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._arrived.wait()
            except TimeoutError:
                return False
        return True

    async def take(self) -> Any:
        await self.ready(None)
        item, error = self._given.popleft()
        if error is not None:
            raise error
        return item

    async def stop(self) -> None:
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})
        if not self._task.cancelled():
            self._task.exception()


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


def _perform(effect: Effect, handles: list[_Beside]) -> Any:
    match effect:
        case Do():
            return effect.work(*effect.args, **effect.kwargs)
        case Start():
            handles.append(_Beside(effect))
            return handles[-1]
        case Wait():
            return effect.handle.ready(effect.seconds)
        case Take():
            return effect.handle.take()


def stream(flow: Flow[R]) -> Generator[Event, None, R]:
    """Perform a flow on this thread; yield its events and return its result."""
    handles: list[_Beside] = []
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


async def _finish(
    work: Awaitable[R],
) -> tuple[asyncio.Future[R], asyncio.CancelledError | None]:
    """Await work to its end, even when cancelled meanwhile; return the cancellation beside."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    return task, cancelled


async def _aperform(effect: Effect, handles: list[_AsyncBeside]) -> Any:
    match effect:
        case Do():
            return await effect.awork(*effect.args, **effect.kwargs)
        case Start():
            handles.append(_AsyncBeside(effect))
            return handles[-1]
        case Wait():
            return await effect.handle.ready(effect.seconds)
        case Take():
            return await effect.handle.take()


async def astream(flow: Flow[R], *, result: Callable[[R], None]) -> AsyncGenerator[Event, None]:
    """Perform a flow in this task; yield its events and hand its result to ``result``."""
    handles: list[_AsyncBeside] = []
    answer: Any = None
    error: BaseException | None = None
    left: BaseException | None = None  # how the caller left: GeneratorExit or CancelledError
    late: BaseException | None = None  # a cancellation that came while an effect was finished
    try:
        while True:
            effect = _next_effect(flow, answer, error)
            answer, error = None, None if left else late and TurnAbandoned()
            left, late = late or left, None
            if error is not None:
                continue
            try:
                if isinstance(effect, Emit):
                    if left is None:
                        yield effect.event
                elif isinstance(effect, Do) or left is not None:
                    done, late = await _finish(_aperform(effect, handles))
                    answer = done.result()
                else:
                    answer = await _aperform(effect, handles)
            except (GeneratorExit, asyncio.CancelledError) as raised:
                error = TurnAbandoned() if left is None else raised
                left = left or raised
            except BaseException as raised:
                error = raised
    except StopIteration as stop:
        result(stop.value)
        if left := late or left:
            raise left from None
    except TurnAbandoned as abandoned:
        raise (late or left or abandoned) from None
    finally:
        _, late = await _finish(asyncio.gather(*(handle.stop() for handle in handles)))
        if late is not None:
            raise late


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
