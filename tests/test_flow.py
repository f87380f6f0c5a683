"""Each of the four drivers performs every effect of a flow, in the same way."""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory import flow
from agent_memory.flow import Do, Emit, Flow, Start, Take
from agent_memory.responses import TextDelta
from tests.flows import (
    by_both_streams,
    by_every_driver,
    do,
    in_loop,
    perform,
)


class Broken(Exception):
    """What work raises in these tests."""


def fail(message: str) -> None:
    raise Broken(message)


@by_every_driver
def test_a_flow_gives_its_result(driver: str) -> None:
    def turn() -> Flow[str]:
        yield from ()
        return "done"

    assert perform(driver, turn()) == ("done", [])


@by_every_driver
def test_work_gets_its_arguments_and_answers_the_flow(driver: str) -> None:
    def turn() -> Flow[int]:
        return (yield do(divmod, 7, 2)), (yield do(sorted, [1, 2], reverse=True))

    assert perform(driver, turn())[0] == ((3, 1), [2, 1])


@by_every_driver
def test_each_colour_does_the_work_of_its_own(driver: str) -> None:
    async def awork() -> str:
        return "async"

    def turn() -> Flow[list[str]]:
        done = yield Do(lambda: "sync", awork)
        handle = yield Start(lambda: "sync", awork)
        return [done, (yield Take(handle))]

    expected = "async" if driver.startswith("a") else "sync"
    assert perform(driver, turn())[0] == [expected, expected]


@by_every_driver
def test_an_error_of_work_is_thrown_into_the_flow_which_may_go_on(driver: str) -> None:
    def turn() -> Flow[str]:
        try:
            yield do(fail, "lost")
        except Broken as error:
            return (yield do(str, error))
        return "not raised"

    assert perform(driver, turn())[0] == "lost"


@by_every_driver
def test_an_error_that_the_flow_does_not_catch_reaches_the_caller(driver: str) -> None:
    error = Broken("mine")

    def raise_it() -> None:
        raise error

    def turn() -> Flow[None]:
        yield do(raise_it)

    with pytest.raises(Broken) as caught:
        perform(driver, turn())
    assert caught.value is error


@by_every_driver
def test_events_come_in_order_and_only_streams_show_them(driver: str) -> None:
    def turn() -> Flow[str]:
        for word in ("one", "two", "three"):
            assert (yield Emit(TextDelta(word))) is None
        return "done"

    result, events = perform(driver, turn())
    assert result == "done"
    told = ["one", "two", "three"] if "stream" in driver else []
    assert [event.text for event in events if isinstance(event, TextDelta)] == told


def test_nothing_runs_ahead_of_the_reader() -> None:
    log: list[str] = []

    def turn() -> Flow[None]:
        for word in ("one", "two"):
            yield do(log.append, word)
            yield Emit(TextDelta(word))

    events = flow.stream(turn())
    assert log == []
    next(events)
    assert log == ["one"]
    next(events)
    assert log == ["one", "two"]
    events.close()


def test_nothing_runs_ahead_of_the_async_reader() -> None:
    log: list[str] = []

    def turn() -> Flow[None]:
        for word in ("one", "two"):
            yield do(log.append, word)
            yield Emit(TextDelta(word))

    async def main() -> None:
        events = flow.astream(turn(), result=lambda _: None)
        assert log == []
        await anext(events)
        assert log == ["one"]
        await anext(events)
        assert log == ["one", "two"]
        await events.aclose()

    in_loop(main())


@by_every_driver
@pytest.mark.parametrize("wrong", [None, "text", 3, Emit])
def test_what_is_no_effect_is_named_where_it_was_yielded_and_cleaned_up(
    driver: str, wrong: Any
) -> None:
    log: list[str] = []

    def turn() -> Flow[None]:
        try:
            yield wrong
        finally:
            yield do(log.append, "cleaned up")

    with pytest.raises(TypeError, match=r"no effect.*yield from") as caught:
        perform(driver, turn())
    assert repr(wrong)[:80] in str(caught.value)
    assert log == ["cleaned up"]


@by_both_streams
def test_an_error_after_events_reaches_whoever_reads_them(driver: str) -> None:
    def turn() -> Flow[None]:
        yield Emit(TextDelta("one"))
        yield do(fail, "then this")

    with pytest.raises(Broken, match="then this"):
        perform(driver, turn())
