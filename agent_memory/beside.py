"""
A call beside a flow, in a daemon thread or a task of its own.

What it gives comes through a queue: a result, the items of an iterator and then
``END``, or the error that it raised.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Any


class _End:
    """What is taken when the iterator of a streamed call has ended."""


END = _End()


class BesideInThread:
    """Runs ``call(*args)``; ``streamed`` calls return a generator."""

    def __init__(
        self, call: Callable[..., Any], args: tuple[Any, ...], *, streamed: bool = False
    ) -> None:
        self._given: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        self._next: tuple[Any, BaseException | None] | None = None
        self._stopped = threading.Event()
        context = contextvars.copy_context()
        threading.Thread(
            target=context.run,
            args=(self._work, call, args, streamed),
            name="agent_memory",
            daemon=True,
        ).start()

    def _work(self, call: Callable[..., Any], args: tuple[Any, ...], streamed: bool) -> None:
        try:
            result = call(*args)
            if streamed:
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
        """Wait up to ``seconds`` (``None``: without end); return whether there is something."""
        if self._next is None:
            try:
                self._next = self._given.get(timeout=seconds)
            except queue.Empty:
                return False
        return True

    def take(self) -> Any:
        """Return the result or the next item, or raise the error; waits for it."""
        self.ready(None)
        assert self._next is not None
        (item, error), self._next = self._next, None
        if error is not None:
            raise error
        return item

    def stop(self) -> None:
        """Close the generator when it gives its next item; a thread cannot be cut short."""
        self._stopped.set()


class BesideInTask:
    """See BesideInThread; a streamed call returns an async generator."""

    def __init__(
        self, call: Callable[..., Any], args: tuple[Any, ...], *, streamed: bool = False
    ) -> None:
        self._given: deque[tuple[Any, BaseException | None]] = deque()
        self._arrived = asyncio.Event()
        self._task = asyncio.create_task(self._work(call, args, streamed), name="agent_memory")

    def _put(self, item: Any, error: BaseException | None = None) -> None:
        self._given.append((item, error))
        self._arrived.set()

    async def _work(self, call: Callable[..., Any], args: tuple[Any, ...], streamed: bool) -> None:
        try:
            result = call(*args)
            if streamed:
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

    async def ready(self, seconds: float | None) -> bool:
        """See BesideInThread.ready()."""
        if not self._given:
            self._arrived.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._arrived.wait()
            except TimeoutError:
                return False
        return True

    async def take(self) -> Any:
        """See BesideInThread.take()."""
        await self.ready(None)
        item, error = self._given.popleft()
        if error is not None:
            raise error
        return item

    async def stop(self) -> None:
        """Cancel the task, and wait until it has ended."""
        self._task.cancel()
        await asyncio.wait({self._task})
