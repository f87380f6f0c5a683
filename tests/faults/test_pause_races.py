"""What happens between two statements about a paused turn: somebody else was faster, or is alive."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent_memory.approvals import Approve
from agent_memory.exceptions import ApprovalMismatch, ApprovalsPending, ConversationBusy
from agent_memory.models import ConversationMessage, ToolApproval
from agent_memory.records import Heading
from tests.faults.checker import faults_of_tables
from tests.faults.operations import (
    ADA,
    a_turn,
    is_whole,
    journalled,
    lapse,
    opened,
    reserved,
    store,
)
from tests.faults.pauses import DONE, LONG_AGO, approved, claimed, paused, resumed, statuses
from tests.faults.test_races import meanwhile


def at_call(number: int, work: Callable[[], object]) -> Callable[[], object]:
    """Return what does the work when it is called so often."""
    calls: list[None] = []

    def called() -> None:
        calls.append(None)
        if len(calls) == number:
            work()

    return called


def test_a_resume_that_shows_life_as_it_is_taken_over_keeps_its_turn(db: None) -> None:
    approved()
    late = resumed()
    for index in range(2):
        claimed(late, index)
    lapse()
    alive = meanwhile(after_SELECT_agent_conversations=lambda: store.renew(late, 60))
    with alive, pytest.raises(ConversationBusy):
        resumed()
    store.settle("c", DONE, reservation=late)
    assert is_whole("b", "paid")


def test_an_expired_pause_that_two_find_at_once_is_ended_once(db: None) -> None:
    paused()
    ToolApproval.objects.update(expires_at=LONG_AGO)
    faster = at_call(1, lambda: store.reserve("c"))
    found = meanwhile(after_SELECT_agent_tool_approvals=faster)
    with found, pytest.raises(ConversationBusy):
        store.reserve("c")
    lapse()
    store.release(store.reserve("c"))
    assert statuses() == ["expired", "expired"]
    assert is_whole("b", "")


def test_an_expired_pause_that_somebody_decided_just_in_time_is_not_ended(db: None) -> None:
    paused()
    ToolApproval.objects.update(expires_at=LONG_AGO)
    decide = at_call(1, lambda: ToolApproval.objects.filter(index=0).update(status="approved"))
    in_time = meanwhile(after_SELECT_agent_tool_approvals=decide)
    with in_time, pytest.raises(ApprovalsPending):
        store.reserve("c")
    assert statuses() == ["approved", "pending"]


def test_a_call_that_somebody_decides_in_between_is_not_decided_again(db: None) -> None:
    paused()
    decide = at_call(1, lambda: ToolApproval.objects.filter(index=1).update(status="denied"))
    in_between = meanwhile(before_UPDATE_agent_tool_approvals=decide)
    with in_between, pytest.raises(ApprovalMismatch):
        store.decide("c", {"*": Approve()})
    assert "approved" not in statuses()


def late_turn() -> Heading:
    """Journal a turn whose worker is dead; return the heading it is appended under later."""
    opened()
    dead = reserved()
    journalled(dead)
    lapse()
    return Heading("c", ADA, "clerk", turn_id=dead.turn_id)


def test_a_late_turn_that_is_recorded_as_it_is_looked_up_takes_the_place_of_that(db: None) -> None:
    late = late_turn()
    record = at_call(1, lambda: store.release(store.reserve("c")))
    with meanwhile(after_SELECT_agent_conversation_messages=record):
        store.append(late, a_turn("late"))
    assert is_whole("b", "late")


def test_a_late_turn_that_two_append_at_once_is_stored_once(db: None) -> None:
    late = late_turn()
    store.release(store.reserve("c"))
    first = at_call(2, lambda: store.append(late, a_turn("late")))
    with meanwhile(after_SELECT_agent_conversation_messages=first):
        stored = store.append(late, a_turn("late"))
    assert stored == store.append(late, a_turn("late"))
    assert is_whole("b", "late")


def test_a_late_turn_of_a_conversation_that_is_cleared_as_it_is_looked_up_opens_it_anew(
    db: None,
) -> None:
    late = late_turn()
    store.append(late, a_turn("late"))
    cleared = at_call(1, lambda: store.clear("c"))
    with meanwhile(after_SELECT_agent_conversation_messages=cleared):
        assert store.append(late, a_turn("late")).created
    assert ConversationMessage.objects.count() == 2
    assert faults_of_tables() == []
