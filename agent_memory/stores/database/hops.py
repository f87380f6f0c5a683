"""How many async calls are at a database at once; the others wait in their event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import cache
from weakref import WeakKeyDictionary

from django.db import OperationalError, connections

MOST = min(32, (os.cpu_count() or 1) + 4)
"""Calls at once, where no pool says how many: as many as ``asyncio.to_thread()`` runs."""

_inside: ContextVar[bool] = ContextVar("agent_memory_inside_a_hop", default=False)


@cache
def bounds(using: str) -> tuple[int, float | None]:
    """
    Return how many calls a database takes at once, and for how many seconds others wait.

    Asked once: each event loop would make itself a connection to ask.
    """
    pool = getattr(connections[using], "pool", None)
    return getattr(pool, "max_size", MOST), getattr(pool, "timeout", None)


class Places:
    """
    The places at one database, for the calls of one event loop.

    There are as many as its pool has connections. A call that waited for one of
    those would do so in a thread, and all calls of a burst would come before the
    second call of its first turn.
    """

    def __init__(self, using: str) -> None:
        self.using = using
        self.count, self.patience = bounds(using)
        self._free = asyncio.Semaphore(self.count)

    async def take(self) -> None:
        """Wait for a place; raises ``OperationalError`` when the pool would have done so."""
        try:
            async with asyncio.timeout(self.patience):
                await self._free.acquire()
        except TimeoutError:
            raise OperationalError(
                f"No connection of the pool of {self.using!r} was free for {self.patience:g} s."
            ) from None

    def give(self) -> None:
        self._free.release()


_places: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Places]] = WeakKeyDictionary()


@asynccontextmanager
async def place(using: str) -> AsyncIterator[None]:
    """Hold a place at a database; a call inside a call goes with the place of that one."""
    if _inside.get():
        yield
        return
    there = _places.setdefault(asyncio.get_running_loop(), {})
    places = there.get(using) or there.setdefault(using, Places(using))
    await places.take()
    token = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(token)
        places.give()
