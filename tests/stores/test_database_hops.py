"""How many async calls are at a database at once, and what becomes of the others."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from asgiref.sync import ThreadSensitiveContext, async_to_sync
from django.db import OperationalError, connections

from agent_memory.stores.database import DatabaseConversationStore, hops
from tests.faults.databases import PATIENCE
from tests.settings import TEST_DATABASE

store = DatabaseConversationStore()

PLACES = 3


class AtWork:
    """Work that begins, and ends when it is told to."""

    def __init__(self) -> None:
        self.begun = self.most = 0
        self.now = 0
        self.lock = threading.Lock()
        self.full = threading.Event()
        self.told = threading.Event()

    def __call__(self) -> None:
        with self.lock:
            self.begun += 1
            self.now += 1
            self.most = max(self.most, self.now)
            if self.now == PLACES:
                self.full.set()
        self.told.wait(PATIENCE)
        with self.lock:
            self.now -= 1


@pytest.fixture
def work() -> AtWork:
    return AtWork()


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Have a test's pool, or number of calls, asked for, and asked for again after it."""
    hops.bounds.cache_clear()
    yield
    hops.bounds.cache_clear()


async def in_a_request(call: Any) -> Any:
    """Make a call as Django's handler does, in a thread of the request's own."""
    async with ThreadSensitiveContext():
        return await store.hop(call)


def start(work: AtWork, count: int) -> list[asyncio.Task[None]]:
    return [asyncio.ensure_future(in_a_request(work)) for _ in range(count)]


def give_a_pool(monkeypatch: pytest.MonkeyPatch, timeout: float) -> None:
    pool = SimpleNamespace(max_size=PLACES, timeout=timeout)
    monkeypatch.setattr(type(connections["default"]), "pool", pool, raising=False)


@pytest.mark.parametrize("pooled", [False, True])
def test_calls_of_a_burst_wait_in_their_loop_for_a_place(
    work: AtWork, pooled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def burst() -> None:
        calls = start(work, 4 * PLACES)
        await asyncio.to_thread(work.full.wait, PATIENCE)
        await asyncio.sleep(0.05)
        assert work.begun == PLACES
        work.told.set()
        await asyncio.gather(*calls)

    if pooled:
        give_a_pool(monkeypatch, 60)
    else:
        monkeypatch.setattr(hops, "MOST", PLACES)
    asyncio.run(burst())
    assert (work.begun, work.most) == (4 * PLACES, PLACES)


def test_a_call_waits_as_long_as_the_pool_would(
    work: AtWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def burst() -> None:
        calls = start(work, PLACES)
        await asyncio.to_thread(work.full.wait, PATIENCE)
        with pytest.raises(OperationalError, match=r"pool of 'default' was free for 0\.01 s"):
            await in_a_request(work)
        work.told.set()
        await asyncio.gather(*calls)
        await in_a_request(work)

    give_a_pool(monkeypatch, 0.01)
    asyncio.run(burst())
    assert work.begun == PLACES + 1


def test_a_call_within_a_call_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def receiver() -> Any:
        return async_to_sync(store.hop)(str, 1)

    monkeypatch.setattr(hops, "MOST", 1)
    assert asyncio.run(in_a_request(receiver)) == "1"


def test_a_call_that_is_cancelled_takes_no_place_with_it(
    work: AtWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def burst() -> None:
        calls = start(work, 2 * PLACES)
        await asyncio.to_thread(work.full.wait, PATIENCE)
        for waiting in calls[PLACES:]:
            waiting.cancel()
        await asyncio.wait(calls[PLACES:])
        work.told.set()
        await asyncio.gather(*calls[:PLACES])
        await asyncio.gather(*start(work, PLACES))

    monkeypatch.setattr(hops, "MOST", PLACES)
    asyncio.run(burst())
    assert work.begun == 2 * PLACES


def test_a_call_that_fails_takes_no_place_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def calls() -> None:
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                await store.hop(divmod, 1, 0)

    monkeypatch.setattr(hops, "MOST", 1)
    asyncio.run(calls())


def test_each_event_loop_has_places_of_its_own_for_as_long_as_it_lives() -> None:
    gc.collect()
    before = len(hops._places)
    for _ in range(3):
        assert asyncio.run(store.hop(str, 1)) == "1"
    gc.collect()
    assert len(hops._places) == before


@pytest.mark.skipif(
    TEST_DATABASE != "postgresql",
    reason="needs PostgreSQL: TEST_DATABASE=postgresql uv run --extra postgres pytest",
)
def test_djangos_pool_says_how_many_and_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked() -> tuple[int, float | None]:
        try:
            return hops.bounds("default")
        finally:
            connections["default"].close_pool()

    pool = {"min_size": 1, "max_size": PLACES, "timeout": 7}
    monkeypatch.setitem(connections.settings["default"], "OPTIONS", {"pool": pool})
    assert asyncio.run(asyncio.to_thread(asked)) == (PLACES, 7)


def test_an_event_loop_of_another_thread_makes_no_connection_to_ask_for_it() -> None:
    async def call() -> list[str]:
        assert await store.hop(str, 1) == "1"
        return [each.alias for each in connections.all(initialized_only=True)]

    assert "default" in asyncio.run(call())
    with ThreadPoolExecutor(1) as elsewhere:
        assert elsewhere.submit(lambda: asyncio.run(call())).result() == []
