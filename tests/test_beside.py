"""Calls beside a flow: awaited, taken, and stopped, in a thread or a task."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import AsyncGenerator, Generator
from typing import Any

import pytest

from agent_memory.beside import END
from agent_memory.flow import Flow, Start, Take, TurnAbandoned, Wait
from tests.flows import (
    PATIENCE,
    Gate,
    by_every_driver,
    do,
    perform,
    start,
)

who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


class Broken(Exception):
    """What work raises in these tests."""


def fail(message: str) -> None:
    raise Broken(message)


@by_every_driver
def test_a_call_beside_is_taken_when_the_flow_asks_for_it(driver: str) -> None:
    def turn() -> Flow[list[int]]:
        first = yield start(divmod, 7, 2)
        second = yield start(len, "abc")
        return [(yield Take(second)), (yield Take(first))]

    assert perform(driver, turn())[0] == [3, (3, 1)]


@by_every_driver
def test_a_call_beside_that_fails_raises_when_it_is_taken_and_not_before(driver: str) -> None:
    def turn() -> Flow[tuple[bool, str]]:
        handle = yield start(fail, "later")
        arrived = yield Wait(handle, PATIENCE)
        try:
            yield Take(handle)
        except Broken as error:
            return arrived, str(error)
        return arrived, "not raised"

    assert perform(driver, turn())[0] == (True, "later")


@by_every_driver
@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit, TurnAbandoned])
def test_an_interrupt_of_a_call_beside_is_raised_where_it_is_taken_too(
    driver: str, interrupt: type[BaseException]
) -> None:
    def be_interrupted() -> None:
        raise interrupt

    def turn() -> Flow[str]:
        handle = yield start(be_interrupted)
        try:
            yield Take(handle)
        except BaseException as error:
            return type(error).__name__
        return "not raised"

    assert perform(driver, turn())[0] == interrupt.__name__


@by_every_driver
def test_a_call_beside_that_nobody_takes_disturbs_nobody(driver: str) -> None:
    def turn() -> Flow[str]:
        handle = yield start(fail, "unheard")
        yield Wait(handle, PATIENCE)
        return "done"

    assert perform(driver, turn())[0] == "done"


@by_every_driver
def test_the_items_of_a_stream_beside_are_taken_one_by_one_and_then_its_end(driver: str) -> None:
    def count(to: int) -> Any:
        yield from range(to)

    def turn() -> Flow[list[Any]]:
        handle = yield start(count, 3)
        items = []
        while not items or items[-1] is not END:
            assert (yield Wait(handle, PATIENCE))
            items.append((yield Take(handle)))
        return items

    assert perform(driver, turn())[0] == [0, 1, 2, END]


@by_every_driver
def test_a_stream_that_breaks_off_gives_what_came_before_its_error(driver: str) -> None:
    def break_off() -> Any:
        yield "first"
        raise Broken

    def turn() -> Flow[list[Any]]:
        handle = yield start(break_off)
        items = [(yield Take(handle))]
        try:
            yield Take(handle)
        except Broken:
            return [*items, "broken"]
        return items

    assert perform(driver, turn())[0] == ["first", "broken"]


@by_every_driver
@pytest.mark.parametrize("seconds", [0, 0.001])
def test_waiting_ends_with_its_time_out_while_the_call_goes_on(driver: str, seconds: float) -> None:
    gate = Gate()

    def turn() -> Flow[list[bool]]:
        handle = yield gate.start()
        waited = [(yield Wait(handle, seconds)), (yield Wait(handle, seconds))]
        gate.open()
        waited += [(yield Wait(handle, PATIENCE)), (yield Wait(handle)), (yield Wait(handle, 0))]
        yield Take(handle)
        return waited

    assert perform(driver, turn())[0] == [False, False, True, True, True]


@by_every_driver
def test_each_item_of_a_stream_is_waited_for(driver: str) -> None:
    gate = Gate()

    def words() -> Any:
        yield "one"
        gate.wait()
        yield "two"

    async def awords() -> Any:
        yield "one"
        await gate.await_()
        yield "two"

    def turn() -> Flow[list[Any]]:
        handle = yield Start(words, awords, streamed=True)
        told: list[Any] = [(yield Wait(handle, PATIENCE)), (yield Take(handle))]
        told.append((yield Wait(handle, 0.001)))
        gate.open()
        return [*told, (yield Wait(handle, PATIENCE)), (yield Take(handle)), (yield Take(handle))]

    assert perform(driver, turn())[0] == [True, "one", False, True, "two", END]


@by_every_driver
def test_calls_beside_run_beside_each_other_and_beside_the_work(driver: str) -> None:
    gates = [Gate(), Gate()]

    def turn() -> Flow[str]:
        handles = [(yield gates[0].start()), (yield gates[1].start())]
        for gate, handle in zip(gates, handles, strict=True):
            while not gate.reached.is_set():
                yield Wait(handle, 0.001)
        for gate in gates:
            yield do(gate.open)
        for handle in handles:
            yield Take(handle)
        return "all"

    assert perform(driver, turn())[0] == "all"


@pytest.mark.parametrize("driver", ["run", "stream"])
def test_work_runs_on_the_callers_thread_and_a_call_beside_in_a_daemon(driver: str) -> None:
    def turn() -> Flow[tuple[threading.Thread, threading.Thread]]:
        done = yield do(threading.current_thread)
        handle = yield start(threading.current_thread)
        return done, (yield Take(handle))

    (work, beside), _ = perform(driver, turn())
    assert work is threading.current_thread()
    assert beside is not work
    assert beside.daemon


@by_every_driver
def test_the_callers_context_is_seen_by_work_and_beside(driver: str) -> None:
    def stream_it() -> Any:
        yield who.get()

    def turn() -> Flow[list[str]]:
        once = yield start(who.get)
        streamed = yield start(stream_it)
        return [(yield do(who.get)), (yield Take(once)), (yield Take(streamed))]

    token = who.set("Ada")
    try:
        assert perform(driver, turn())[0] == ["Ada", "Ada", "Ada"]
    finally:
        who.reset(token)


@by_every_driver
def test_a_stream_beside_is_read_no_further_and_closed_when_the_flow_ends(driver: str) -> None:
    log: list[str] = []
    held: list[Any] = []  # so that only close() can close a generator
    more, closed = Gate(), Gate()

    def words() -> Generator[str, None, None]:
        try:
            yield "one"
            more.wait()
            yield "two"
            log.append("read on although nobody listens")
        finally:
            closed.open()

    async def awords() -> AsyncGenerator[str, None]:
        try:
            yield "one"
            await more.await_()
            log.append("read on although nobody listens")
        finally:
            closed.open()

    def hold(stream: Any) -> Any:
        held.append(stream)
        return stream

    def turn() -> Flow[str]:
        begin = Start(lambda: hold(words()), lambda: hold(awords()), streamed=True)
        word: str = yield Take((yield begin))
        return word

    assert perform(driver, turn())[0] == "one"
    more.open()
    assert closed.opened.wait(PATIENCE)
    assert log == []


def test_an_async_stream_beside_is_closed_also_while_nobody_waits_in_it() -> None:
    closed: list[str] = []
    held: list[Any] = []

    async def words() -> AsyncGenerator[str, None]:
        try:
            yield "one"
        finally:
            closed.append("closed")

    class Broken:
        """An async generator whose reader fails after the first item."""

        def __init__(self) -> None:
            self.words = words()
            held.append(self.words)

        def __aiter__(self) -> Any:
            return self

        async def __anext__(self) -> str:
            await anext(self.words)
            raise LookupError

        async def aclose(self) -> None:
            await self.words.aclose()

    def turn() -> Flow[list[str]]:
        try:
            yield Take((yield Start(str, Broken, streamed=True)))
        except LookupError:
            return ["failed", *closed]
        return ["not raised"]

    assert perform("arun", turn())[0] == ["failed", "closed"]
