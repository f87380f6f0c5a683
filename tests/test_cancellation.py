"""A call that is cancelled, at any effect and however often: told once, cleaned up, cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from itertools import count
from typing import Any

import pytest

from agent_memory import flow
from agent_memory.flow import Emit, Flow, Start, Take, TurnAbandoned, Wait
from agent_memory.responses import TextDelta
from tests.flows import (
    CLEANED,
    PATIENCE,
    Gate,
    cancel_while,
    do,
    guarded,
    in_loop,
    perform,
    start,
    until,
)


class Broken(Exception):
    """What work raises in these tests."""


def every_effect(log: list[str], before: Callable[[int], None]) -> Flow[str]:
    """Run one effect after the other, and call ``before`` with the number of each."""
    tell = count()

    def words() -> Generator[str, None, None]:
        yield "word"

    def perform(effect: flow.Effect) -> Flow[Any]:
        before(next(tell))
        answer = yield effect
        return answer

    yield from perform(do(log.append, "reserved"))
    streamed = yield from perform(start(words))
    yield from perform(Wait(streamed, PATIENCE))
    log.append((yield from perform(Take(streamed))))
    yield from perform(Emit(TextDelta("word")))
    endless = yield from perform(Gate().start())
    yield from perform(Wait(endless, 0.001))
    yield from perform(do(log.append, "saved"))
    yield from perform(do(log.append, "told"))
    return "done"


WHOLE = ["reserved", "word", "saved", "told"]
LAST = 8


@pytest.mark.parametrize("number", range(LAST + 1))
@pytest.mark.parametrize("streamed", [False, True])
def test_a_cancellation_at_any_effect_abandons_the_flow_once_and_reaches_the_caller(
    number: int, streamed: bool
) -> None:
    log: list[str] = []
    results: list[Any] = []

    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None

        def before(reached: int) -> None:
            if reached == number:
                task.cancel()

        turn = guarded(log, every_effect(log, before))
        if streamed:
            [_ async for _ in flow.astream(turn, result=results.append)]
        else:
            results.append(await flow.arun(turn))

    with pytest.raises(asyncio.CancelledError):
        in_loop(main())
    if number == LAST:
        assert log == WHOLE
    else:
        *done, abandoned, cleaning, cleaned = log
        assert [abandoned, cleaning, cleaned] == CLEANED
        assert done == WHOLE[: len(done)]
        assert results == []


def test_without_a_cancellation_the_same_flow_is_whole() -> None:
    log: list[str] = []
    turn = guarded(log, every_effect(log, lambda number: None))
    assert in_loop(flow.arun(turn)) == "done"
    assert log == WHOLE


def test_work_that_has_begun_is_finished_and_the_flow_gets_its_result() -> None:
    log: list[str] = []
    gate = Gate()

    async def save() -> str:
        await gate.await_()
        return "saved"

    def turn() -> Flow[None]:
        log.append((yield flow.Do(str, save)))
        yield do(log.append, "too late")

    async def main() -> None:
        task = asyncio.create_task(flow.arun(guarded(log, turn())))
        await cancel_while(gate, task)
        with pytest.raises(asyncio.CancelledError):
            await task

    in_loop(main())
    assert log == ["saved", *CLEANED]


def test_work_that_fails_after_a_cancellation_is_the_cause_of_what_the_flow_is_told() -> None:
    log: list[str] = []
    gate = Gate()

    async def fail() -> None:
        await gate.await_()
        raise Broken

    def turn() -> Flow[None]:
        try:
            yield flow.Do(str, fail)
        except TurnAbandoned as abandoned:
            log.append(type(abandoned.__cause__).__name__)
            raise

    async def main() -> None:
        task = asyncio.create_task(flow.arun(guarded(log, turn())))
        await cancel_while(gate, task)
        with pytest.raises(asyncio.CancelledError):
            await task

    in_loop(main())
    assert log == ["Broken", *CLEANED]


def test_work_that_fails_in_the_clean_up_is_known_to_the_flow_and_to_the_caller() -> None:
    log: list[str] = []
    work, release = Gate(), Gate()

    async def fail() -> None:
        await release.await_()
        raise Broken

    def turn() -> Flow[None]:
        try:
            yield Take((yield work.start()))
        except TurnAbandoned:
            yield flow.Do(str, fail)

    async def main() -> None:
        task = asyncio.create_task(flow.arun(guarded(log, turn())))
        await until(work.reached)
        task.cancel()
        await cancel_while(release, task)
        with pytest.raises(Broken):
            await task

    in_loop(main())
    assert log == ["Broken", "cleaning", "cleaned"]


@pytest.mark.parametrize("streamed", [False, True])
def test_work_that_cancels_itself_fails_like_any_other(streamed: bool) -> None:
    log: list[str] = []

    def turn() -> Flow[None]:
        yield do(cancel_oneself)

    def cancel_oneself() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        perform("astream" if streamed else "arun", guarded(log, turn()))
    assert log == ["CancelledError", "cleaning", "cleaned"]


def test_a_flow_that_completes_although_cancelled_ends_in_the_cancellation() -> None:
    log: list[str] = []
    gate = Gate()

    def turn() -> Flow[str]:
        try:
            yield Take((yield gate.start()))
        except TurnAbandoned:
            yield do(log.append, "saved all the same")
        return "done"

    async def main() -> None:
        task = asyncio.create_task(flow.arun(turn()))
        await until(gate.reached)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    in_loop(main())
    assert log == ["saved all the same"]


def test_a_second_cancellation_does_not_cut_the_clean_up_short() -> None:
    log: list[str] = []
    work, release, wait = Gate(), Gate(), Gate()

    def turn() -> Flow[None]:
        try:
            yield work.do()
            yield do(log.append, "too late")
        except BaseException as error:
            log.append(type(error).__name__)
            yield release.do()
            log.append("released")
            yield Take((yield wait.start()))
            log.append("waited")
            yield do(log.append, "told")
            raise

    async def main() -> None:
        task = asyncio.create_task(flow.arun(turn()))
        for gate in (work, release, wait):
            await cancel_while(gate, task)
        with pytest.raises(asyncio.CancelledError):
            await task

    in_loop(main())
    assert log == ["TurnAbandoned", "released", "waited", "told"]


def test_a_call_beside_has_ended_when_the_caller_goes_on_even_if_cancelled_twice() -> None:
    log: list[str] = []
    begun, closing = Gate(), Gate()

    async def call() -> None:
        try:
            await begun.await_()
        finally:
            await closing.await_()
            log.append("closed")

    def turn() -> Flow[None]:
        yield Take((yield Start(str, call)))

    async def main() -> None:
        task = asyncio.create_task(flow.arun(turn()))
        await until(begun.reached)
        task.cancel()
        await cancel_while(closing, task)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert log == ["closed"]

    in_loop(main())


def test_a_cancellation_after_the_result_is_not_lost() -> None:
    closing = Gate()

    async def call() -> None:
        try:
            await Gate().await_()
        finally:
            await closing.await_()

    def turn() -> Flow[str]:
        yield Wait((yield Start(str, call)), 0.001)
        return "done"

    async def main() -> None:
        task = asyncio.create_task(flow.arun(turn()))
        await cancel_while(closing, task)
        with pytest.raises(asyncio.CancelledError):
            await task

    in_loop(main())


@pytest.mark.parametrize("further", [True, False])
def test_a_cancellation_while_a_stream_is_closed_reaches_whoever_closes_it(further: bool) -> None:
    log: list[str] = []
    release = Gate()

    def turn() -> Flow[None]:
        try:
            yield Emit(TextDelta("one"))
        except TurnAbandoned:
            yield release.do()
            log.append("released")
            if further:
                yield do(log.append, "told")
            raise

    async def leave() -> None:
        events = flow.astream(turn(), result=lambda _: None)
        await anext(events)
        await events.aclose()

    async def main() -> None:
        task = asyncio.create_task(leave())
        await cancel_while(release, task)
        with pytest.raises(asyncio.CancelledError):
            await task

    in_loop(main())
    assert log == (["released", "told"] if further else ["released"])


def test_a_time_out_around_a_call_abandons_it_and_is_a_time_out() -> None:
    log: list[str] = []

    def turn() -> Flow[None]:
        yield Take((yield Gate().start()))

    async def main() -> None:
        async with asyncio.timeout(0.001):
            await flow.arun(guarded(log, turn()))

    with pytest.raises(TimeoutError):
        in_loop(main())
    assert log == CLEANED
