"""A stream that is left, however and whenever: the flow is told once, and cleans up."""

from __future__ import annotations

import gc
from contextlib import aclosing, closing

import pytest

from agent_memory import flow
from agent_memory.flow import Emit, Flow, TurnAbandoned
from agent_memory.responses import TextDelta
from tests.flows import (
    CLEANED,
    Gate,
    by_every_driver,
    do,
    guarded,
    in_loop,
    perform,
    until,
    until_alone,
)


def five_events(log: list[str]) -> Flow[str]:
    for number in range(5):
        yield do(log.append, str(number))
        yield Emit(TextDelta(str(number)))
    return "done"


def numbers(upto: int) -> list[str]:
    return [str(number) for number in range(upto)]


@pytest.mark.parametrize("read", range(1, 6))
def test_a_stream_closed_after_any_event_is_abandoned_there(read: int) -> None:
    log: list[str] = []
    events = flow.stream(guarded(log, five_events(log)))
    for _ in range(read):
        next(events)
    events.close()
    assert log == [*numbers(read), *CLEANED]
    assert list(events) == []


@pytest.mark.parametrize("read", range(1, 6))
def test_an_async_stream_closed_after_any_event_is_abandoned_there(read: int) -> None:
    log: list[str] = []

    async def main() -> None:
        events = flow.astream(guarded(log, five_events(log)), result=lambda _: None)
        for _ in range(read):
            await anext(events)
        await events.aclose()
        assert [event async for event in events] == []

    in_loop(main())
    assert log == [*numbers(read), *CLEANED]


def test_a_stream_closed_before_its_first_event_never_runs() -> None:
    log: list[str] = []
    flow.stream(guarded(log, five_events(log))).close()
    in_loop(flow.astream(guarded(log, five_events(log)), result=log.append).aclose())
    assert log == []


def test_a_stream_that_is_dropped_is_abandoned() -> None:
    log: list[str] = []
    events = flow.stream(guarded(log, five_events(log)))
    next(events)
    del events
    gc.collect()
    assert log == ["0", *CLEANED]


def test_an_async_stream_that_is_dropped_is_abandoned_by_its_loop() -> None:
    log: list[str] = []

    cleaned = Gate()

    def turn() -> Flow[None]:
        try:
            yield Emit(TextDelta("one"))
        except TurnAbandoned:
            yield do(log.append, "cleaning")
            yield do(cleaned.open)
            raise

    async def main() -> None:
        events = flow.astream(turn(), result=lambda _: None)
        await anext(events)
        del events
        gc.collect()
        await until(cleaned.opened)
        await until_alone()

    in_loop(main())
    assert log == ["cleaning"]


def test_an_error_in_the_readers_loop_abandons_the_flow_and_is_the_readers_own() -> None:
    log: list[str] = []

    def read() -> None:
        with closing(flow.stream(guarded(log, five_events(log)))) as events:
            for event in events:
                assert isinstance(event, TextDelta)
                1 / (1 - int(event.text))

    with pytest.raises(ZeroDivisionError):
        read()
    assert log == ["0", "1", *CLEANED]


def test_an_error_in_the_async_readers_loop_abandons_the_flow() -> None:
    log: list[str] = []

    async def main() -> None:
        turn = guarded(log, five_events(log))
        async with aclosing(flow.astream(turn, result=lambda _: None)) as events:
            async for event in events:
                assert isinstance(event, TextDelta)
                1 / (1 - int(event.text))

    with pytest.raises(ZeroDivisionError):
        in_loop(main())
    assert log == ["0", "1", *CLEANED]


def test_a_flow_that_completes_although_abandoned_still_closes_in_silence() -> None:
    log: list[str] = []

    def turn() -> Flow[str]:
        try:
            yield Emit(TextDelta("one"))
        except TurnAbandoned:
            yield do(log.append, "saved all the same")
        return "done"

    events = flow.stream(turn())
    next(events)
    events.close()
    events = flow.stream(turn())
    next(events)
    with pytest.raises(GeneratorExit):
        events.throw(GeneratorExit)

    async def main() -> None:
        events = flow.astream(turn(), result=log.append)
        await anext(events)
        await events.aclose()

    in_loop(main())
    assert log == [*["saved all the same"] * 3, "done"]


# Interrupts.


@by_every_driver
@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_during_work_lets_the_flow_clean_up(
    driver: str, interrupt: type[BaseException]
) -> None:
    log: list[str] = []

    def be_interrupted() -> None:
        raise interrupt

    def turn() -> Flow[None]:
        yield do(be_interrupted)

    with pytest.raises(interrupt):
        perform(driver, guarded(log, turn()))
    assert log == [interrupt.__name__, "cleaning", "cleaned"]
