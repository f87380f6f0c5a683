"""Paused turns as values: what a prompt is told, notes, claims, and tokens."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from agent_memory.approvals import asked_in
from agent_memory.messages import Step, ToolResult, Usage
from agent_memory.stores import pauses
from agent_memory.testing.contract.base import plain_turn
from agent_memory.testing.contract.pausing import answered, asking_turn, finished

NOW = datetime(2030, 1, 2, tzinfo=UTC)
APPROVALS = asked_in(asking_turn())


def with_statuses(*statuses: str) -> pauses.Approvals:
    return tuple(
        replace(approval, status=status)
        for approval, status in zip(APPROVALS, statuses, strict=True)
    )


def test_a_prompt_is_told_what_waits_and_what_to_do():
    error = pauses.blocked("one", APPROVALS, NOW)
    assert "'one' waits for a decision on call-0, call-1. Decide, and go on" in str(error)
    decided = pauses.blocked("one", with_statuses("approved", "denied"), NOW)
    assert "'one' has a paused turn of which everything is decided. Go on" in str(decided)
    for each in (error, decided):
        assert "agent.resume()" in str(each)
        assert "agent.discard_pending()" in str(each)


@pytest.mark.parametrize("note", ["", " ", "Fine.", "\u00e9\n\U0001f600", "x" * 100_000])
def test_a_note_is_any_text_that_every_store_holds(note):
    assert pauses.check_note(note) == note


@pytest.mark.parametrize("note", ["a\0", "\ud800", 7, None, b"note"])
def test_anything_else_is_no_note(note):
    with pytest.raises(ValueError, match="A note"):
        pauses.check_note(note)


@pytest.mark.parametrize(
    ("statuses", "wholly"),
    [
        (("expired", "expired"), True),
        (("expired", "denied"), True),
        (("denied", "denied"), False),
        (("expired", "pending"), False),
        (("expired", "approved"), False),
        (("expired", "claimed"), False),
        (("expired", "done"), False),
        (("expired", "interrupted"), False),
    ],
)
def test_a_turn_has_wholly_expired_when_no_call_of_it_may_run(statuses, wholly):
    assert pauses.is_wholly_expired(with_statuses(*statuses)) is wholly


def test_a_call_expires_at_its_time_and_only_while_nobody_has_decided():
    second = timedelta(seconds=1)
    for at, status in ((NOW - second, "expired"), (NOW, "expired"), (NOW + second, "pending")):
        asked = replace(APPROVALS[0].asked, expires_at=at)
        for before in ("pending", "approved", "denied", "claimed"):
            approval = replace(APPROVALS[0], asked=asked, status=before)
            (after,) = pauses.expired((approval,), NOW)
            assert after.status == (status if before == "pending" else before)


def test_only_an_approved_call_is_claimed_and_no_other_with_it():
    approvals = with_statuses("approved", "approved")
    claimed = pauses.claimed(approvals, 0, 1)
    assert claimed == with_statuses("approved", "claimed")
    for approvals, place in ((claimed, (0, 1)), (claimed, (1, 0)), (APPROVALS, (0, 0))):
        assert pauses.claimed(approvals, *place) is None


def test_a_turn_that_pauses_again_asks_for_what_is_new_alone():
    turn = answered(asking_turn(), ToolResult(value="a"))
    stays = pauses.paused_again(turn, with_statuses("claimed", "pending"))
    assert stays == with_statuses("done", "pending")
    later = turn.model_copy(update={"steps": (*turn.steps, *asking_turn(calls=1).steps)})
    (asked,) = pauses.paused_again(later, stays)
    assert (asked.step, asked.index, asked.status) == (1, 0, "pending")


@pytest.mark.parametrize(
    ("turn", "statuses", "started"),
    [
        (asking_turn(ran=False), ("pending", "pending"), False),
        (asking_turn(ran=False), ("approved", "denied"), False),
        (asking_turn(ran=True), ("pending", "pending"), True),
        (asking_turn(ran=False), ("claimed", "pending"), True),
        (asking_turn(ran=False), ("interrupted", "pending"), True),
        (answered(asking_turn(ran=False), ToolResult(denied=True)), ("denied", "pending"), False),
        (answered(asking_turn(ran=False), ToolResult(failed=True)), ("done", "pending"), True),
    ],
)
def test_a_tool_has_started_once_it_may_have_run(turn, statuses, started):
    assert pauses.has_started(turn, with_statuses(*statuses)) is started


def test_a_turn_has_grown_by_what_it_took_since_titles_not_counted_again():
    before = asking_turn(title_usage=Usage(input_tokens=100))
    after = finished(before, "a", "b")
    assert pauses.grown(before, after) == after.steps[-1].usage
    assert pauses.grown(after, before) == Usage(
        input_tokens=-10, output_tokens=-5, cached_tokens=-3, reasoning_tokens=-2
    )
    assert pauses.grown(plain_turn(), plain_turn().model_copy(update={"steps": (Step(),)})) == (
        Usage()
    )
