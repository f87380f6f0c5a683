"""Deciding: each call that waits is settled once, all that are named or none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agent_memory.approvals import Approval, Approve, Decision, Deny, Edit
from agent_memory.exceptions import (
    ApprovalMismatch,
    ApprovalNotResumable,
    ConversationDoesNotExist,
    InvalidConversationId,
    InvalidParticipant,
)
from agent_memory.messages import Turn
from agent_memory.testing.contract.base import INVALID_IDS, ONE, TWO, raises
from agent_memory.testing.contract.fidelity import LONG_TEXT, ODD_TEXTS, ODD_VALUES
from agent_memory.testing.contract.pausing import Pausing, asked_by, asking_turn, finished

# No decisions, whatever waits.
NO_DECISIONS: tuple[Any, ...] = (
    *(None, {}, [], "call-0", Approve(), {"call-0": None}, {"call-0": "approve"}),
    *({"call-0": Approve}, {"*": True}, {0: Approve()}, {None: Approve()}),
    {"call-0": Approve(), "call-1": None},
)
NO_NOTES: tuple[Any, ...] = ("a\0b", "a\ud800", 7, None, b"note")


class DecisionPromises(Pausing):
    """A decision settles one call, once, and is kept with who made it; nothing runs by it."""

    def approvals(self, conversation_id: str = ONE) -> list[Approval]:
        """Return the approvals of the paused turn but for when they were decided."""
        approvals = self.look(conversation_id).approvals
        for approval in approvals:
            decided_at = approval.decided_at
            assert (decided_at is None) == (approval.status in ("pending", "expired"))
            assert decided_at is None or decided_at.utcoffset() is not None
        return [replace(approval, decided_at=None) for approval in approvals]

    def assert_mismatch(self, decisions: Any, *waiting: str) -> None:
        before = self.look().approvals
        for store in (self.store, self.elsewhere):
            with raises(ApprovalMismatch, msg=repr(decisions)) as caught:
                store.decide(ONE, decisions)
            assert tuple(asked.id for asked in caught.exception.pending) == waiting
        assert self.look().approvals == before

    # What is kept.

    def test_decisions_are_kept_with_who_made_them_and_why(self) -> None:
        turn = asking_turn(calls=5)
        self.pause(turn)
        self.store.decide(ONE, {"call-0": Approve()}, decided_by=self.owner, note="Fine.")
        self.store.decide(ONE, {"call-1": Edit({"order": 8})}, decided_by=self.sibling)
        self.elsewhere.decide(ONE, {"call-2": Deny("Too much."), "call-3": Deny()}, note=LONG_TEXT)
        asked = asked_by(turn)
        for _ in range(2):
            assert self.approvals() == [
                Approval(0, 0, asked[0], "approved", decided_by=self.owner, note="Fine."),
                Approval(0, 1, asked[1], "approved", {"order": 8}, decided_by=self.sibling),
                Approval(0, 2, asked[2], "denied", text="Too much.", note=LONG_TEXT),
                Approval(0, 3, asked[3], "denied", note=LONG_TEXT),
                Approval(0, 4, asked[4]),
            ]

    def test_what_is_left_waits_on(self) -> None:
        asked = asked_by(asking_turn(calls=3))
        self.pause(asking_turn(calls=3))
        assert self.store.decide(ONE, {"call-1": Approve()}) == (asked[0], asked[2])
        assert self.elsewhere.pending_approvals_for(ONE) == (asked[0], asked[2])
        self.assert_blocked(asked[0], asked[2])
        assert self.elsewhere.decide(ONE, {"call-2": Deny()}) == (asked[0],)
        assert self.store.decide(ONE, {"call-0": Approve()}) == ()
        assert self.store.pending_approvals_for(ONE) == ()
        self.assert_blocked()
        assert self.statuses() == ["approved", "approved", "denied"]

    def test_a_star_decides_on_all_that_no_other_key_names(self) -> None:
        self.pause(asking_turn(calls=4))
        self.store.decide(ONE, {"call-2": Deny("No.")})
        assert self.store.decide(ONE, {"*": Edit({"order": 1}), "call-0": Approve()}) == ()
        edited = [(each.status, each.edited, each.text) for each in self.approvals()]
        assert edited == [
            ("approved", None, ""),
            ("approved", {"order": 1}, ""),
            ("denied", None, "No."),
            ("approved", {"order": 1}, ""),
        ]

    def test_what_a_person_wrote_comes_back_equal(self) -> None:
        texts = tuple(text for text in ODD_TEXTS if text)
        written: tuple[Decision, ...] = (
            *(Deny(text) for text in texts),
            *(Edit({text: [text]}) for text in ODD_TEXTS),
            *(Edit({"value": value}) for value in ODD_VALUES),
            Edit({}),
        )
        self.pause(asking_turn(calls=len(written)))
        self.store.decide(ONE, {f"call-{n}": decision for n, decision in enumerate(written)})
        kept = [
            Deny(each.text) if each.edited is None else Edit(each.edited)
            for each in self.approvals()
        ]
        assert repr(kept) == repr(list(written))

    def test_what_a_caller_does_to_decisions_given_changes_nothing_stored(self) -> None:
        self.pause(asking_turn(calls=1))
        edit = Edit({"order": [1]})
        self.store.decide(ONE, {"*": edit})
        edit.arguments["order"].append(2)
        for _ in range(2):
            (approval,) = self.approvals()
            assert approval.edited == {"order": [1]}
            approval.edited.clear()

    def test_a_decision_is_made_while_the_turn_is_resumed(self) -> None:
        self.pause()
        reservation, _ = self.resume()
        self.elsewhere.decide(ONE, {"call-0": Approve()})
        assert self.claim(reservation, 0) is True
        assert self.store.renew(reservation, 0) is True

    # What is refused.

    def test_a_call_is_decided_once(self) -> None:
        self.pause(asking_turn(calls=3))
        self.store.decide(ONE, {"call-0": Deny()})
        for again in (Approve(), Deny(), Edit({})):
            self.assert_mismatch({"call-0": again}, "call-1", "call-2")
        self.store.decide(ONE, {"*": Approve()})
        for again in (Approve(), Deny(), Edit({})):
            self.assert_mismatch({"call-1": again})
            self.assert_mismatch({"*": again})
        assert self.statuses() == ["denied", "approved", "approved"]

    def test_all_that_are_named_are_decided_or_none(self) -> None:
        self.pause()
        for wrong in ("unknown", "look", "", "Call-0", "call-0 "):
            decisions = {"call-0": Approve(), wrong: Deny(), "*": Approve()}
            self.assert_mismatch(decisions, "call-0", "call-1")
        self.store.decide(ONE, {"call-0": Approve()})
        self.assert_mismatch({"call-1": Deny(), "call-0": Deny()}, "call-1")

    def test_a_call_that_has_expired_is_not_decided(self) -> None:
        self.pause(asking_turn(calls=3), expire=(self.past, self.future, self.past))
        with raises(ApprovalMismatch):
            self.store.decide(ONE, {"call-2": Deny()})
        self.assert_mismatch({"call-0": Approve()}, "call-1")
        self.assert_mismatch({"call-1": Approve(), "call-2": Approve()}, "call-1")
        assert self.store.decide(ONE, {"*": Approve()}) == ()
        assert self.statuses() == ["expired", "approved", "expired"]
        self.assert_mismatch({"*": Approve()})

    def test_what_is_no_decision_is_refused(self) -> None:
        self.pause()
        for decisions in NO_DECISIONS:
            with raises(ValueError, msg=repr(decisions)):
                self.store.decide(ONE, decisions)
        for note in NO_NOTES:
            with raises(ValueError, msg=repr(note)):
                self.store.decide(ONE, {"*": Approve()}, note=note)
        for nobody in (7, "owner", object()):
            with raises(InvalidParticipant, msg=repr(nobody)):
                self.store.decide(ONE, {"*": Approve()}, decided_by=nobody)
        assert self.statuses() == ["pending", "pending"]

    def test_nothing_is_decided_where_nothing_is_paused(self) -> None:
        self.append(ONE, "Hello")
        self.store.reserve(TWO, create=True)
        self.store.create("three")
        self.pause(conversation_id="four")
        reservation, paused = self.resume("four")
        self.store.settle("four", finished(paused.turn, "a", "b"), reservation=reservation)
        for conversation_id in (ONE, "three", "four"):
            with raises(ApprovalNotResumable):
                self.store.decide(conversation_id, {"*": Approve()})
            for named in ({"call-0": Deny()}, {"*": Deny(), "call-0": Deny()}):
                with raises(ApprovalMismatch) as caught:
                    self.store.decide(conversation_id, named)
                assert caught.exception.pending == ()
            with raises(ValueError):
                self.store.decide(conversation_id, {"call-0": None})  # type: ignore[dict-item]  # wrong
        for unknown in (TWO, "unknown"):
            for decisions in ({"*": Approve()}, {"call-0": Approve()}):
                with raises(ConversationDoesNotExist):
                    self.store.decide(unknown, decisions)
        for conversation_id in INVALID_IDS:
            with raises(InvalidConversationId, msg=repr(conversation_id)):
                self.store.decide(conversation_id, {"*": Approve()})

    # Which call.

    def test_a_call_id_is_one_of_the_turn_that_is_paused(self) -> None:
        self.pause(asking_turn(calls=1))
        self.pause(asking_turn(calls=1), TWO)
        self.store.decide(ONE, {"call-0": Deny("One.")})
        assert self.statuses(TWO) == ["pending"]
        reservation, paused = self.resume()
        self.store.settle(ONE, finished(paused.turn, "No."), reservation=reservation)
        self.pause(asking_turn("Again.", calls=1))
        assert [asked.id for asked in self.store.pending_approvals_for(ONE)] == ["call-0"]
        self.store.decide(ONE, {"call-0": Approve()})
        assert self.statuses() == ["approved"]
        assert self.look().turn.user.text == "Again."

    def test_a_call_id_is_one_of_the_last_pause_of_its_turn(self) -> None:
        self.pause(asking_turn(calls=2))
        self.store.decide(ONE, {"*": Approve()})
        reservation, paused = self.resume()
        later = asking_turn(calls=1)
        gone_on = finished(paused.turn, "a", "b")
        steps = (*gone_on.steps[:-1], *later.steps)
        turn = Turn(user=paused.turn.user, steps=steps, status="paused")
        self.store.settle(ONE, turn, reservation=reservation)
        assert self.store.pending_approvals_for(ONE) == asked_by(later)
        self.assert_mismatch({"call-1": Deny()}, "call-0")
        self.store.decide(ONE, {"call-0": Deny("Enough.")})
        (approval,) = self.approvals()
        assert (approval.step, approval.index, approval.text) == (1, 0, "Enough.")
