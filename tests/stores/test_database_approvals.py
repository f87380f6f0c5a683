"""Turns that wait for a person in the database: how many statements, which rows, whose signals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import connection, transaction
from django.utils import timezone

from agent_memory import Approve, Deny, Edit, Message, Participant
from agent_memory.approvals import Approval, PendingApproval
from agent_memory.exceptions import (
    ApprovalMismatch,
    ApprovalsPending,
    ConversationConflict,
    InvalidParticipant,
    TransactionOpen,
)
from agent_memory.journals import JournalEntry
from agent_memory.messages import Replay, Step, TextPart, ToolCall, ToolResult, Turn
from agent_memory.models import Conversation, ConversationMessage, ToolApproval
from agent_memory.records import Heading, Reservation
from agent_memory.signals import approval_decided
from agent_memory.stores.database import DatabaseConversationStore
from tests.stores.test_database import ADA, a_turn, in_threads, servers, statements, warmed

__all__ = ["servers"]

BOB = Participant("auth.user", "2")
REPLAY = Replay(provider="p", model="m", blocks=({"type": "reasoning", "opaque": "\0\ud800\xe9"},))
HEADING = Heading("c", ADA, "coach")


@pytest.fixture
def store(db: None) -> DatabaseConversationStore:
    return warmed(DatabaseConversationStore())


def asking(*ids: str, replay: Replay | None = REPLAY) -> Step:
    calls = tuple(
        ToolCall(id=each, name="pay", arguments={"to": each}, approval_reason="It costs.")
        for each in ids
    )
    return Step(items=calls, finish_reason="tool_calls", replay=replay)


def paused_turn(*ids: str) -> Turn:
    return Turn(user=Message("user", "Pay."), steps=(asking(*ids),), status="paused")


def paused(store: DatabaseConversationStore, *ids: str) -> Turn:
    """Write a conversation whose second turn waits for decisions on calls."""
    store.append(HEADING, a_turn())
    turn = paused_turn(*ids)
    store.append(HEADING, turn, reservation=store.reserve("c"))
    return turn


def done(turn: Turn, **fields: Any) -> Turn:
    """Return a paused turn with results on its calls, and an answer."""
    step = turn.steps[-1]
    answered = step.with_results({i: ToolResult(value=i) for i, _ in enumerate(step.tool_calls())})
    answer = Step(items=(TextPart(text="Paid."),), replay=REPLAY)
    update = {"steps": (*turn.steps[:-1], answered, answer), "status": "completed", **fields}
    return turn.model_copy(update=update)


def claim(store: DatabaseConversationStore, reservation: Reservation, index: int = 0) -> bool:
    assert reservation.paused is not None
    call = reservation.paused.turn.steps[-1].tool_calls()[index]
    return store.journal(reservation, JournalEntry(0, index, call), 60)


# Statements.


def test_a_pause_takes_one_statement_more_than_a_turn(store):
    store.append(HEADING, a_turn())
    for turn, expected in ((a_turn(), 2), (paused_turn("a", "b", "c"), 3)):
        reservation = store.reserve("c")
        store.load("c", reservation=reservation)
        written = statements(lambda t=turn, r=reservation: store.append(HEADING, t, reservation=r))
        assert len(written) == expected


def test_what_waits_is_read_in_one_statement(store):
    paused(store, "a", "b")
    assert len(statements(lambda: store.pending_approvals_for("c"))) == 1


@pytest.mark.parametrize("calls", [1, 3])
def test_a_resume_takes_as_many_statements_for_any_number_of_calls(store, calls):
    turn = paused(store, *"abc"[:calls])
    assert len(statements(lambda: store.decide("c", {"*": Approve()}))) == 4 + calls
    reservations: list[Reservation] = []
    reserving = statements(lambda: reservations.append(store.reserve("c", resume=True)))
    assert len(reserving) == (4 if connection.vendor == "mysql" else 3)
    (reservation,) = reservations
    for index in range(calls):
        assert len(statements(lambda i=index: claim(store, reservation, i))) == 2
        result = JournalEntry(0, index, ToolResult(value=index))
        assert len(statements(lambda e=result: store.journal(reservation, e, 60))) == 3
    settling = statements(lambda: store.settle("c", done(turn), reservation=reservation))
    assert len(settling) == 5


# Rows.


def test_the_answer_of_a_turn_is_of_whoever_wrote_it_last_and_the_turn_keeps_its_id(store):
    turn = paused(store, "a")
    rows = ConversationMessage.objects.filter(position__gte=2).order_by("position")
    before = list(rows.values_list("id", "position"))
    first = set(rows.values_list("turn_id", flat=True))
    store.decide("c", {"*": Approve()})
    reservation = store.reserve("c", resume=True)
    store.settle("c", done(turn), reservation=reservation)
    assert list(rows.values_list("id", "position")) == before
    assert list(rows.values_list("turn_id", flat=True)) == [*first, reservation.turn_id]


def test_opaque_blocks_are_stored_while_a_turn_is_paused(store):
    turn = paused(store, "a")
    (answer,) = ConversationMessage.objects.filter(status="paused")
    assert json.loads(answer.replay)[0]["blocks"] == list(REPLAY.blocks)
    assert "opaque" not in answer.steps
    store.decide("c", {"*": Approve()})
    reservation = store.reserve("c", resume=True)
    assert reservation.paused.turn == turn
    again = done(turn).model_copy(update={"steps": (turn.steps[0], asking("b"))})
    again = again.model_copy(update={"status": "paused"})
    store.settle("c", again, reservation=reservation)
    reservation = store.reserve("c", resume=True)
    assert reservation.paused.turn == again
    store.settle("c", done(again), reservation=reservation)
    assert not ConversationMessage.objects.exclude(replay="").exists()


def test_opaque_blocks_stay_where_a_project_wants_them_to(store, settings):
    settings.AGENT_MEMORY = {**settings.AGENT_MEMORY, "KEEP_REPLAY": True}
    turn = paused(store, "a")
    store.decide("c", {"*": Approve()})
    store.settle("c", done(turn), reservation=store.reserve("c", resume=True))
    store.append(HEADING, a_turn())
    store.append(HEADING, done(turn))
    kept = ConversationMessage.objects.exclude(replay="").order_by("position")
    assert [len(json.loads(answer.replay)) for answer in kept] == [2, 2]
    assert store.load("c")[-1] == Message("assistant", "Paid.")


def test_a_row_tells_what_was_asked_and_what_a_person_made_of_it(store):
    paused(store, "a", "b")
    store.decide("c", {"a": Edit({"to": "Ann"}), "b": Deny("No.")}, decided_by=BOB, note="Hm.")
    edited, denied = ToolApproval.objects.order_by("index")
    assert (edited.call_id, edited.tool, edited.reason, edited.agent) == (
        "a",
        "pay",
        "It costs.",
        "coach",
    )
    assert json.loads(edited.asked)["arguments"] == {"to": "a"}
    assert json.loads(edited.arguments_used) == {"to": "Ann"}
    assert (denied.status, denied.arguments_used, json.loads(denied.denial)) == (
        "denied",
        "",
        "No.",
    )
    assert {(each.decided_by_key, each.note) for each in (edited, denied)} == {("2", "Hm.")}


def test_what_no_column_holds_is_readable_in_the_row_and_whole_in_what_is_asked(store):
    odd = ToolCall(id="\0" + "x" * 300, name="\ud800" * 300, approval_reason="\0why")
    step = Step(items=(odd,), finish_reason="tool_calls")
    store.append(HEADING, Turn(user=Message("user", "a"), steps=(step,), status="paused"))
    (asked,) = store.pending_approvals_for("c")
    assert asked == PendingApproval(odd.id, odd.name, {}, "\0why")
    row = ToolApproval.objects.get()
    assert (row.call_id, row.tool) == ("\ufffd" + "x" * 254, "\ufffd" * 255)
    assert store.decide("c", {odd.id: Approve()}) == ()


def test_a_turn_that_is_dropped_leaves_no_row(store):
    paused(store, "a", "b")
    store.settle("c", None, reservation=store.reserve("c", resume=True))
    assert ToolApproval.objects.count() == 0
    assert ConversationMessage.objects.count() == 2
    (row,) = Conversation.objects.values("next_position", "turn_count", "paused_position")
    assert row == {"next_position": 2, "turn_count": 1, "paused_position": None}


def test_a_cleared_conversation_leaves_no_approvals(store):
    paused(store, "a")
    store.clear("c")
    assert ToolApproval.objects.count() == 0


def test_what_waits_is_told_across_conversations(store):
    paused(store, "a", "b")
    store.append("other", paused_turn("c"))
    store.decide("c", {"a": Approve()})
    assert [row.call_id for row in ToolApproval.objects.waiting()] == ["b", "c"]
    assert [row.call_id for row in ToolApproval.objects.waiting().for_participant(ADA)] == ["b"]
    store.settle("other", None, reservation=store.reserve("other", resume=True))
    assert [row.call_id for row in ToolApproval.objects.waiting()] == ["b"]


def test_expiry_is_kept_in_a_project_without_time_zones(store, settings):
    settings.USE_TZ = False
    settings.TIME_ZONE = "America/New_York"
    soon = datetime.now(UTC) + timedelta(minutes=5)
    described = (PendingApproval("a", "pay", {"to": "a"}, "It costs.", soon),)
    store.append(Heading("c", approvals=described), paused_turn("a"))
    assert store.pending_approvals_for("c") == described
    assert ToolApproval.objects.waiting().count() == 1
    ToolApproval.objects.update(expires_at=timezone.now() - timedelta(minutes=1))
    assert store.pending_approvals_for("c") == ()
    assert ToolApproval.objects.waiting().count() == 0


# Transactions and signals.


@pytest.fixture
def told() -> Iterator[list[Approval]]:
    told: list[Approval] = []

    def receiver(conversation_id: str, approval: Approval, **_: Any) -> None:
        assert conversation_id == "c"
        told.append(approval)
        raise RuntimeError

    approval_decided.connect(receiver)
    yield told
    approval_decided.disconnect(receiver)


@pytest.mark.django_db(transaction=True)
def test_a_decision_joins_a_transaction_of_its_caller_and_is_told_once_it_is_committed(told):
    store = warmed(DatabaseConversationStore())
    paused(store, "a", "b")
    with transaction.atomic():
        store.decide("c", {"*": Approve()})
        transaction.set_rollback(True)
    assert (told, len(store.pending_approvals_for("c"))) == ([], 2)
    with transaction.atomic():
        store.decide("c", {"b": Deny()}, decided_by=BOB)
        with pytest.raises(ApprovalMismatch):
            store.decide("c", {"a": Approve(), "b": Approve()})
        assert told == []
    (approval,) = told
    assert (approval.asked.id, approval.status, approval.decided_by) == ("b", "denied", BOB)
    assert [asked.id for asked in store.pending_approvals_for("c")] == ["a"]


@pytest.mark.django_db(transaction=True)
def test_a_paused_turn_is_neither_resumed_nor_settled_inside_a_transaction():
    store = warmed(DatabaseConversationStore())
    turn = paused(store, "a")
    store.decide("c", {"*": Approve()})
    reservation = store.reserve("c", resume=True)
    with transaction.atomic():
        for work in (
            lambda: store.reserve("c", resume=True),
            lambda: claim(store, reservation),
            lambda: store.settle("c", done(turn), reservation=reservation),
            lambda: store.settle("c", None, reservation=reservation),
        ):
            with pytest.raises(TransactionOpen):
                work()
    store.settle("c", done(turn), reservation=reservation)


def test_whoever_decides_must_be_a_participant_that_can_be_kept(store):
    paused(store, "a")
    for nobody in ("ann", Participant("no.model", "1")):
        with pytest.raises(InvalidParticipant):
            store.decide("c", {"*": Approve()}, decided_by=nobody)
    ContentType.objects.clear_cache()
    assert len(store.pending_approvals_for("c")) == 1


def test_a_paused_turn_needs_the_id_of_its_conversation_to_be_resumed(store):
    with pytest.raises(ValueError, match="id of its conversation"):
        store.reserve(resume=True)


# A turn that could not be stored.


def test_a_paused_turn_that_was_stored_unseen_and_has_gone_on_is_not_stored_again(store):
    turn = paused(store, "a")
    turn_id = ConversationMessage.objects.get(position=2).turn_id
    store.decide("c", {"*": Approve()})
    store.settle("c", done(turn), reservation=store.reserve("c", resume=True))
    stored = store.append(Heading("c", ADA, "coach", turn_id=turn_id), turn)
    assert (stored.turn_id, Conversation.objects.get().turn_count) == (turn_id, 2)
    with pytest.raises(ConversationConflict):
        store.append(Heading("c", ADA, "coach", turn_id=turn_id), done(turn))


def test_a_first_turn_recorded_on_the_way_is_told_to_whoever_reserves(store):
    store.append(HEADING, a_turn())
    dead = store.reserve("c")
    calling = Step(items=(ToolCall(id="a", name="pay"),), finish_reason="tool_calls")
    user = Message("user", "Pay.")
    assert store.journal(dead, JournalEntry(0, -1, calling, HEADING, user), 60)
    store.renew(dead, 0)
    buried = store.reserve("c").buried
    assert buried is not None
    assert (buried.turn.user, buried.turn.status) == (user, "failed")
    assert buried.stored.turn_id == dead.turn_id
    answer = ConversationMessage.objects.get(status="failed")
    assert buried.stored.assistant_message_id == str(answer.id)


def test_the_resume_of_a_dead_worker_that_staff_end_is_folded_into_its_turn(store):
    paused(store, "a", "b")
    store.decide("c", {"*": Approve()})
    claim(store, store.reserve("c", resume=True))
    (held,) = store.held_reservations()
    assert store.end_reservation(held, although_running=True)
    assert not Conversation.objects.exclude(reservation="").exists()
    with pytest.raises(ApprovalsPending) as caught:
        store.reserve("c")
    assert caught.value.pending == ()
    approvals = store.reserve("c", resume=True).paused.approvals
    assert [each.status for each in approvals] == ["interrupted", "approved"]


# Several workers.


def test_of_many_who_resume_one_does(servers):
    store = warmed(DatabaseConversationStore())
    paused(store, "a")
    got = in_threads(lambda _: store.reserve("c", resume=True))
    assert len([each for each in got if isinstance(each, Reservation)]) == 1, got


def test_of_many_who_decide_on_a_call_one_does(servers):
    store = warmed(DatabaseConversationStore())
    paused(store, "a", "b")
    decisions = [{"a": Approve()}, {"a": Deny()}, {"b": Approve()}, {"b": Deny("No.")}] * 2
    got = in_threads(lambda number: store.decide("c", decisions[number]))
    refused = [each for each in got if isinstance(each, ApprovalMismatch)]
    assert len(refused) == 6, got
    assert Conversation.objects.get().undecided_count == 0
    assert store.pending_approvals_for("c") == ()
