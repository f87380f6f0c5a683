"""What decorates gives each run a context of its own, also when runs overlap."""

from __future__ import annotations

import asyncio
import threading
import unittest
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from asgiref.sync import async_to_sync

from agent_memory.testing.decorating import Decorating


class Counting(Decorating):
    """Opens contexts that are numbered; ``open`` are those that have not ended."""

    def __init__(self) -> None:
        self.opened = 0
        self.open: set[int] = set()
        self.ended: list[tuple[int, type[BaseException] | None]] = []

    @contextmanager
    def anew(self) -> Iterator[None]:
        self.opened = number = self.opened + 1
        self.open.add(number)
        try:
            yield
        except BaseException as error:
            self.ended.append((number, type(error)))
            raise
        else:
            self.ended.append((number, None))
        finally:
            self.open.remove(number)


@pytest.fixture
def counting() -> Counting:
    return Counting()


def test_a_function_runs_in_a_context_that_ends_with_it(counting):
    @counting
    def work(word: str, *, fail: bool = False) -> str:
        assert counting.open
        if fail:
            raise ZeroDivisionError
        return word

    assert work("a") == "a"
    with pytest.raises(ZeroDivisionError):
        work("a", fail=True)
    assert counting.ended == [(1, None), (2, ZeroDivisionError)]
    assert work.__name__ == "work"


def test_runs_that_overlap_in_threads_end_their_own_contexts(counting):
    begun, left = threading.Event(), threading.Event()

    @counting
    def work(*, stay: bool) -> None:
        if stay:
            begun.set()
            assert left.wait(10)

    thread = threading.Thread(target=work, kwargs={"stay": True})
    thread.start()
    assert begun.wait(10)
    work(stay=False)
    assert (counting.open, counting.ended) == ({1}, [(2, None)])
    left.set()
    thread.join(10)
    assert counting.open == set()


def test_runs_that_overlap_in_tasks_end_their_own_contexts(counting):
    @counting
    async def work(until: asyncio.Event) -> None:
        assert counting.open
        await until.wait()

    async def both() -> None:
        first, second = asyncio.Event(), asyncio.Event()
        working = [asyncio.create_task(work(first)), asyncio.create_task(work(second))]
        second.set()
        await working[1]
        assert (counting.open, counting.ended) == ({1}, [(2, None)])
        first.set()
        await working[0]

    async_to_sync(both)()
    assert counting.open == set()


def test_a_coroutine_that_nobody_awaits_opens_nothing(counting):
    @counting
    async def work() -> None: ...

    work().close()
    assert counting.opened == 0


def test_each_test_of_a_case_has_a_context_from_its_set_up_on(counting):
    @counting
    class Case(unittest.TestCase):
        def setUp(self) -> None:
            assert counting.open

        def test_one(self) -> None:
            assert counting.open

        async def helper(self) -> None: ...

        def test_two(self) -> None:
            assert counting.open
            self.skipTest("enough")

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(result)
    assert (result.testsRun, result.failures, result.errors) == (2, [], [])
    assert (counting.opened, counting.open) == (2, set())


def test_a_class_that_is_no_test_case_is_refused(counting):
    with pytest.raises(TypeError, match="decorate the test methods of Plain"):

        @counting
        class Plain: ...
