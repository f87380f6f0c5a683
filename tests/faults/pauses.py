"""What a store does for a turn that waits for a person; see operations."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from agent_memory.approvals import Approve, Deny
from agent_memory.journals import JournalEntry
from agent_memory.messages import INTERRUPTED, Step, TextPart, ToolCall, ToolResult, Turn, Usage
from agent_memory.models import ConversationMessage, ToolApproval, TurnJournal
from agent_memory.records import Heading, Reservation
from tests.faults.operations import (
    ADA,
    RESULT,
    USER,
    Operation,
    a_turn,
    heading,
    is_whole,
    journalled,
    lapse,
    opened,
    reserved,
    row,
    store,
)

USED = Usage(input_tokens=5, output_tokens=3)
ASKING = Step(
    items=(
        ToolCall(id="call_1", name="pay", arguments={"amount": 7}, approval_reason="It costs."),
        ToolCall(id="call_2", name="pay", arguments={"amount": 8}, approval_reason="It costs."),
    ),
    finish_reason="tool_calls",
    usage=USED,
)
PAUSED = Turn(user=USER, steps=(ASKING,), status="paused")
ANSWER = Step(items=(TextPart(text="paid"),), usage=USED)
LONG_AGO = datetime(2001, 2, 3, tzinfo=UTC)


def with_results(*results: ToolResult | None) -> Step:
    """Return the step that asks with results on its calls."""
    found = {index: result for index, result in enumerate(results) if result is not None}
    return ASKING.with_results(found)


DONE = PAUSED.model_copy(
    update={"steps": (with_results(RESULT, RESULT), ANSWER), "status": "completed"}
)


def paused(turn: Turn = PAUSED) -> str:
    """Write a conversation whose second turn is paused; return the id of that."""
    opened()
    return store.append(heading("c"), turn, reservation=reserved()).turn_id


def approved() -> str:
    """Write a paused turn whose calls may run."""
    turn_id = paused()
    assert store.decide("c", {"*": Approve()}) == ()
    return turn_id


def resumed() -> Reservation:
    return store.reserve("c", resume=True)


def claimed(reservation: Reservation, index: int = 0) -> bool:
    call = ASKING.tool_calls()[index]
    return store.journal(reservation, JournalEntry(0, index, call), 60)


def statuses() -> list[str]:
    return list(ToolApproval.objects.order_by("step", "index").values_list("status", flat=True))


def pause() -> Operation:
    opened()
    reservation = reserved()
    yield lambda: store.append(heading("c"), PAUSED, reservation=reservation)
    assert (row().paused_position, row().undecided_count) == (2, 2)
    assert [asked.id for asked in store.pending_approvals_for("c")] == ["call_1", "call_2"]
    assert is_whole("b", "")


def pause_what_is_yet_to_be() -> Operation:
    reservation = store.reserve(participant=ADA)
    name = reservation.conversation_id
    yield lambda: store.append(heading(name), PAUSED, reservation=reservation)
    assert (row().paused_position, row().undecided_count) == (0, 2)
    assert is_whole("")


def decide() -> Operation:
    paused()
    left = yield lambda: store.decide("c", {"call_1": Approve()}, decided_by=ADA, note="Fine.")
    assert [asked.id for asked in left] == ["call_2"]
    assert (statuses(), row().undecided_count) == (["approved", "pending"], 1)
    assert is_whole("b", "")


def resume() -> Operation:
    turn_id = approved()
    reservation = yield resumed
    assert reservation.paused.turn == PAUSED
    assert (reservation.paused.stored.turn_id, reservation.next_position) == (turn_id, 2)
    assert row().reservation == reservation.turn_id
    store.release(reservation)
    assert is_whole("b", "")


def resume_what_has_expired() -> Operation:
    paused()
    store.decide("c", {"call_1": Approve()})
    ToolApproval.objects.update(expires_at=LONG_AGO)
    reservation = yield resumed
    assert [each.status for each in reservation.paused.approvals] == ["approved", "expired"]
    assert (statuses(), row().undecided_count) == (["approved", "expired"], 0)
    store.release(reservation)
    assert is_whole("b", "")


def follow_what_has_expired() -> Operation:
    paused()
    store.decide("c", {"call_1": Deny()})
    ToolApproval.objects.update(expires_at=LONG_AGO)
    reservation = yield lambda: store.reserve("c")
    assert len(store.load("c", reservation=reservation)) == 6
    store.append("c", a_turn("next"), reservation=reservation)
    assert statuses() == ["denied", "expired"]
    assert is_whole("b", "", "next")


def claim() -> Operation:
    approved()
    reservation = resumed()
    assert (yield lambda: claimed(reservation))
    assert statuses() == ["claimed", "approved"]
    assert ToolApproval.objects.get(index=0).claim == reservation.turn_id
    assert not claimed(reservation)
    assert claimed(reservation, 1)
    store.settle("c", DONE, reservation=reservation)
    assert is_whole("b", "paid")


def journal_the_result_of_a_claimed_call() -> Operation:
    approved()
    reservation = resumed()
    claimed(reservation)
    assert (yield lambda: journalled(reservation, RESULT, 0))
    assert statuses() == ["done", "approved"]
    assert TurnJournal.objects.get().index == 0
    store.release(reservation)
    assert resumed().paused.turn.steps == (with_results(RESULT),)
    lapse()


def fold_what_the_dead_did() -> Operation:
    approved()
    dead = resumed()
    claimed(dead)
    journalled(dead, RESULT, 0)
    claimed(dead, 1)
    lapse()
    reservation = yield resumed
    doubtful = ToolResult(value=INTERRUPTED, failed=True)
    assert reservation.paused.turn.steps == (with_results(RESULT, doubtful),)
    assert statuses() == ["done", "interrupted"]
    store.release(reservation)
    assert is_whole("b", "")


def release_what_was_claimed() -> Operation:
    approved()
    reservation = resumed()
    claimed(reservation)
    yield lambda: store.release(reservation)
    assert statuses() == ["interrupted", "approved"]
    assert is_whole("b", "")


def settle() -> Operation:
    turn_id = approved()
    reservation = resumed()
    for index in range(2):
        claimed(reservation, index)
    stored = yield lambda: store.settle("c", DONE, reservation=reservation)
    assert (stored.turn_id, stored.created) == (turn_id, False)
    assert statuses() == ["done", "done"]
    assert is_whole("b", "paid")


def settle_what_pauses_again() -> Operation:
    approved()
    reservation = resumed()
    for index in range(2):
        claimed(reservation, index)
    again = PAUSED.model_copy(update={"steps": (with_results(RESULT, RESULT), ASKING)})
    yield lambda: store.settle("c", again, reservation=reservation)
    assert statuses() == ["done", "done", "pending", "pending"]
    assert len(store.pending_approvals_for("c")) == 2
    assert is_whole("b", "")


def drop() -> Operation:
    approved()
    reservation = resumed()
    assert (yield lambda: store.settle("c", None, reservation=reservation)) is None
    assert (row().next_position, row().turn_count, row().paused_position) == (2, 1, None)
    assert ToolApproval.objects.count() == 0
    positions = ConversationMessage.objects.order_by("position").values_list("position", flat=True)
    assert list(positions) == [0, 1]
    assert row().reservation == ""


def drop_what_has_started() -> Operation:
    approved()
    reservation = resumed()
    claimed(reservation)
    stored = yield lambda: store.settle("c", None, reservation=reservation)
    kept = ConversationMessage.objects.get(id=stored.assistant_message_id)
    assert (kept.status, kept.error_code) == ("failed", "Discarded")
    assert is_whole("b", "")


def append_the_rest() -> Operation:
    turn_id = approved()
    dead = resumed()
    for index in range(2):
        claimed(dead, index)
    store.renew(dead, 0)
    rest = Heading("c", ADA, "clerk", turn_id=dead.turn_id, settles=turn_id)
    stored = yield lambda: store.append(rest, DONE)
    assert store.append(rest, DONE) == stored
    assert stored.turn_id == turn_id
    assert is_whole("b", "paid")


def take_the_place_of_an_interruption() -> Operation:
    opened()
    dead = reserved()
    journalled(dead)
    lapse()
    store.append("c", a_turn("next"), reservation=store.reserve("c"))
    late = Heading("c", ADA, "clerk", turn_id=dead.turn_id)
    stored = yield lambda: store.append(late, a_turn("late"))
    assert store.append(late, a_turn("late")) == stored
    assert is_whole("b", "late", "next")


PAUSE_OPERATIONS: list[Any] = [
    pause,
    pause_what_is_yet_to_be,
    decide,
    resume,
    resume_what_has_expired,
    follow_what_has_expired,
    claim,
    journal_the_result_of_a_claimed_call,
    fold_what_the_dead_did,
    release_what_was_claimed,
    settle,
    settle_what_pauses_again,
    drop,
    drop_what_has_started,
    append_the_rest,
    take_the_place_of_an_interruption,
]
