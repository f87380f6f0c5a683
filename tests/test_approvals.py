"""What waits for a person, and what is decided: values, without agents and stores."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent_memory import approvals
from agent_memory.approvals import Approval, Approve, Deny, Edit, PendingApproval
from agent_memory.exceptions import ApprovalMismatch
from agent_memory.messages import Message, Step, ToolCall, ToolResult, Turn
from agent_memory.participants import Participant

NOW = datetime(2026, 1, 2, 3, tzinfo=UTC)
ONE, TWO = PendingApproval("one", "refund"), PendingApproval("two", "refund")


def test_a_decision_is_matched_to_the_call_of_its_id():
    made = approvals.match([ONE, TWO], {"two": Deny("No."), "one": Approve()})
    assert made == {"one": Approve(), "two": Deny("No.")}
    assert approvals.match([ONE, TWO], {"two": Approve()}) == {"two": Approve()}


def test_a_star_decides_on_every_call_that_no_other_key_names():
    made = approvals.match([ONE, TWO], {"*": Deny(), "one": Approve()})
    assert made == {"one": Approve(), "two": Deny()}


@pytest.mark.parametrize("decisions", [{"three": Approve()}, {"one": Approve(), "": Deny()}])
def test_a_call_that_does_not_wait_is_a_mismatch_that_tells_what_does(decisions):
    with pytest.raises(ApprovalMismatch, match="What waits: one, two") as caught:
        approvals.match([ONE, TWO], decisions)
    assert caught.value.pending == (ONE, TWO)


@pytest.mark.parametrize("decisions", [{"one": Approve()}, {"*": Approve()}])
def test_a_decision_where_nothing_waits_is_a_mismatch(decisions):
    with pytest.raises(ApprovalMismatch) as caught:
        approvals.match([], decisions)
    assert caught.value.pending == ()


@pytest.mark.parametrize(
    "decisions", [{}, None, [], "one", {"one": True}, {"one": Approve}, {1: Approve()}]
)
def test_what_is_no_decision_is_refused(decisions: Any):
    with pytest.raises(ValueError, match=r"decision|Decisions|call id"):
        approvals.match([ONE], decisions)


@pytest.mark.parametrize("arguments", [None, [], "x", {1: 2}, {"a": object()}, {"a": b"x"}])
def test_an_edit_holds_arguments_by_name_that_json_has_a_form_for(arguments: Any):
    with pytest.raises(ValueError, match=r"Edit\(\)"):
        Edit(arguments)


def test_a_denial_holds_text():
    with pytest.raises(ValueError, match=r"Deny\(\)"):
        Deny(7)  # type: ignore[arg-type]  # wrong


def test_a_decision_is_kept_with_who_made_it_when_and_why():
    approval, ada = Approval(0, 1, ONE), Participant("auth.user", "1")
    approved = approvals.decided(approval, Approve(), by=ada, note="Fine.", at=NOW)
    assert (approved.status, approved.decided_by, approved.decided_at, approved.note) == (
        "approved",
        ada,
        NOW,
        "Fine.",
    )
    edited = approvals.decided(approval, Edit({"a": 1}), by=None, note="", at=NOW)
    assert (edited.status, edited.edited) == ("approved", {"a": 1})
    denied = approvals.decided(approval, Deny("No."), by=None, note="", at=NOW)
    assert (denied.status, denied.refusal) == ("denied", ToolResult(value="No.", denied=True))
    assert approval.is_undecided


def test_only_a_bare_denial_and_an_expiry_end_the_turn():
    ends = {
        decision: approvals.decided(Approval(0, 0, ONE), decision, by=None, note="", at=NOW)
        for decision in (Approve(), Deny(), Deny("No."))
    }
    assert [each.ends_the_turn for each in ends.values()] == [False, True, False]
    assert Approval(0, 0, ONE, status="expired").ends_the_turn


def test_a_call_whose_time_has_passed_no_longer_waits():
    late = PendingApproval("late", "refund", expires_at=NOW)
    asked = [Approval(0, 0, ONE), Approval(0, 1, late), Approval(0, 2, TWO, status="denied")]
    assert approvals.pending(asked, NOW) == (ONE,)
    assert approvals.pending(asked, NOW - timedelta(seconds=1)) == (ONE, late)


def test_a_paused_turn_asks_for_the_gated_calls_of_its_last_step():
    gated = ToolCall(id="one", name="refund", arguments={"a": 1}, approval_reason="Money.")
    free = ToolCall(id="two", name="look", result=ToolResult(value=1))
    done = gated.model_copy(update={"result": ToolResult(value=2)})
    turn = Turn(
        user=Message("user", "Hello"),
        steps=(Step(items=(done,)), Step(items=(free, gated))),
        status="paused",
    )
    waiting = PendingApproval("one", "refund", {"a": 1}, "Money.")
    assert approvals.asked_in(turn) == (Approval(1, 1, waiting),)
    told = PendingApproval("one", "refund", {"a": 1}, "Money.", NOW)
    assert approvals.asked_in(turn, [told]) == (Approval(1, 1, told),)
    assert approvals.asked_in(Turn(user=Message("user", "Hello"))) == ()
