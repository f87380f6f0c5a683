"""Callers who leave in the middle of a turn with tools: what is stored, and that nothing is held."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from agent_memory import signals
from agent_memory.exceptions import ProviderUnavailable
from agent_memory.flow import Do, Emit, Flow
from agent_memory.models import ConversationMessage
from agent_memory.testing import ScriptedProvider, override_agent_memory
from tests.faults.acting import CALLS, Acting, Coach, left_free, store, told
from tests.fixtures import Ask

# Cancelled at every effect.


class Watched(Coach):
    """Notes the effects of its turn, and calls ``before`` with the number of each."""

    effects: list[str]
    before: Callable[[int], None]

    def turn(self, call: Any) -> Flow[Any]:
        turn = super().turn(call)
        answer: Any = None
        error: BaseException | None = None
        while True:
            try:
                effect = turn.send(answer) if error is None else turn.throw(error)
            except StopIteration as stop:
                return stop.value
            number = len(self.effects)
            self.effects.append(name_of(effect))
            self.before(number)
            answer = error = None
            try:
                answer = yield effect
            except GeneratorExit:
                raise
            except BaseException as raised:
                error = raised


def name_of(effect: Any) -> str:
    if isinstance(effect, Do):
        if effect.work.__name__ == "append":
            return f"append {effect.args[1].status}"
        return effect.work.__name__
    return type(effect.event if isinstance(effect, Emit) else effect).__name__


def watched(acting: Acting, conversation_id: str, streamed: bool, cancel_at: int | None) -> Watched:
    """Take a turn in a task, cancelled before one of its effects; return who took it."""
    coach = acting.coach(conversation_id, Watched)
    assert isinstance(coach, Watched)
    coach.effects = []

    async def take() -> None:
        task = asyncio.current_task()
        assert task is not None

        def before(number: int) -> None:
            if number == cancel_at:
                task.cancel()

        coach.before = before
        if streamed:
            [_ async for _ in coach.astream("b")]
        else:
            await coach.aprompt("b")

    if cancel_at is None:
        async_to_sync(take)()
    else:
        with pytest.raises(asyncio.CancelledError):
            async_to_sync(take)()
    return coach


@pytest.fixture
def heard() -> Iterator[list[str]]:
    """Return the status of each turn that receivers are told of."""
    statuses: list[str] = []

    def receiver(turn: Any, **said: Any) -> None:
        statuses.append(turn.status)

    for signal in (signals.turn_completed, signals.turn_failed):
        signal.connect(receiver)
    yield statuses
    for signal in (signals.turn_completed, signals.turn_failed):
        signal.disconnect(receiver)


@pytest.mark.parametrize("streamed", [True, pytest.param(False, marks=pytest.mark.heavy)])
def test_a_turn_cancelled_at_any_effect_is_recorded_as_far_as_it_came(
    acting: Acting, heard: list[str], streamed: bool
) -> None:
    effects = watched(acting, "whole", streamed, None).effects
    assert left_free("whole") == told(2, answered=True)
    assert effects.count("journal") == 3
    finished, appended = effects.index("StepFinished"), effects.index("append completed")
    left: Counter[int] = Counter()
    for number, effect in enumerate(effects):
        acting.runs = 0
        reached = watched(acting, f"c-{number}", streamed, number).effects
        rest = left_free(f"c-{number}")
        if "append completed" in reached:
            assert rest == told(2, answered=True), effect
        elif "StepFinished" in reached:
            assert reached.count("append failed") == 1
            answered = reached.count("StepFinished") == 2
            assert rest == told(acting.runs, answered=answered), effect
        else:
            assert rest == [], effect
        # A turn is left where it next waits: it may have come further by then.
        assert "StepFinished" in reached or number < finished
        assert "append completed" in reached or number < appended
        left[len(rest)] += 1
    # Whoever listens is told of every turn that is stored, also of a cancelled one.
    for status in ("completed", "failed"):
        rows = ConversationMessage.objects.filter(role="assistant", status=status)
        assert heard.count(status) == rows.count()
    assert min(left[len(stored)] for stored in ([], told(0), told(0, answered=True))) > 2


# Time-outs, errors, receivers.


def ask_until_now(coach: Coach) -> tuple[Callable[[], Any], Callable[[], None]]:
    """Return how to ask in a task, and what to call when its time is out."""
    limits: list[asyncio.Timeout] = []

    async def ask() -> None:
        async with asyncio.timeout(None) as limit:
            limits.append(limit)
            await coach.aprompt("b")

    def now() -> None:
        limits[0].reschedule(asyncio.get_running_loop().time())

    return ask, now


def test_a_time_out_around_a_prompt_ends_it_when_its_tool_has_ended(acting: Acting) -> None:
    async def act() -> str:
        now()
        await asyncio.sleep(0.05)
        acting.runs += 1
        return f"done {acting.runs}"

    coach = acting.coach("c")
    coach.tools = [act]
    ask, now = ask_until_now(coach)
    with pytest.raises(TimeoutError):
        async_to_sync(ask)()
    assert left_free("c") == told(1)


def test_a_time_out_around_a_slow_model_stores_nothing(acting: Acting) -> None:
    class Slow(ScriptedProvider):
        async def acomplete(self, request: Any) -> Any:
            now()
            await asyncio.Event().wait()

    coach = acting.coach("c")
    coach.provider = Slow()
    ask, now = ask_until_now(coach)
    with pytest.raises(TimeoutError):
        async_to_sync(ask)()
    assert left_free("c") == []


@pytest.mark.parametrize("failed_turns", ["keep", "discard"])
def test_a_model_that_fails_after_tools_leaves_what_the_setting_says(
    acting: Acting, ask: Ask, failed_turns: str
) -> None:
    coach = acting.coach("c", Coach, ["I act.", *CALLS], ProviderUnavailable("gone"))
    with override_agent_memory(FAILED_TURNS=failed_turns), pytest.raises(ProviderUnavailable):
        ask(coach, "b")
    assert left_free("c") == ([] if failed_turns == "discard" else told(2))
    assert acting.runs == 2


@pytest.mark.parametrize("fails", [False, True])
def test_receivers_that_raise_undo_nothing(acting: Acting, ask: Ask, fails: bool) -> None:
    def receiver(**said: Any) -> None:
        raise RuntimeError

    told_of = (signals.conversation_created, signals.turn_completed, signals.turn_failed)
    for signal in told_of:
        signal.connect(receiver)
    try:
        last = [ProviderUnavailable("gone")] if fails else ["I acted."]
        coach = acting.coach("c", Coach, ["I act.", *CALLS], *last)
        if fails:
            with pytest.raises(ProviderUnavailable):
                ask(coach, "b")
        else:
            ask(coach, "b")
    finally:
        for signal in told_of:
            signal.disconnect(receiver)
    assert left_free("c") == told(2, answered=not fails)


def test_whoever_is_cancelled_while_it_waits_for_a_conversation_leaves_nothing(
    acting: Acting,
) -> None:
    async def wait() -> None:
        task = asyncio.create_task(coach.aprompt("b", wait=60, idempotency_key="key"))
        while len(asyncio.all_tasks()) < 3:  # noqa: ASYNC110  it pauses in a task of its own
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    coach = acting.coach("c")
    held = store.reserve("c")
    async_to_sync(wait)()
    store.release(held)
    assert left_free("c") == []
    assert acting.runs == 0


def test_an_interrupt_in_a_tool_is_recorded_and_told(acting: Acting) -> None:
    def act() -> str:
        raise KeyboardInterrupt

    coach = acting.coach("c")
    coach.tools = [act]
    with pytest.raises(KeyboardInterrupt):
        coach.prompt("b")
    assert left_free("c") == told(0)
