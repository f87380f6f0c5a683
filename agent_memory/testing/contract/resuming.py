"""Going on with a paused turn: by one worker at a time, each approved call once."""

from __future__ import annotations

from dataclasses import replace

from agent_memory.approvals import Approve, Deny, Edit
from agent_memory.exceptions import (
    ApprovalNotResumable,
    ConversationBusy,
    ConversationConflict,
    ConversationDoesNotExist,
)
from agent_memory.journals import JournalEntry
from agent_memory.messages import INTERRUPTED, Replay, Step, TextPart, ToolCall, ToolResult, Turn
from agent_memory.records import Heading, PausedTurn
from agent_memory.testing.contract.base import (
    COACH,
    ONE,
    TWO,
    messages_of,
    plain_turn,
    raises,
    tool_turn,
)
from agent_memory.testing.contract.journals import entries_of
from agent_memory.testing.contract.pausing import Pausing, answered, asked_by, asking_turn, finished

BLOCKS = Replay(provider="test", model="test-model", blocks=({"type": "secret", "b": 1, "a": 2},))
CALLING = Step(
    items=(ToolCall(id="call-0", name="look"),), finish_reason="tool_calls", usage=Pausing.used
)


class ResumingPromises(Pausing):
    """
    Whoever resumes holds the paused turn; what a dead worker did of it is folded into it.

    No test waits: renewing for 0 seconds makes a reservation expire at once.
    """

    def approve(self, turn: Turn | None = None, conversation_id: str = ONE) -> None:
        self.pause(turn, conversation_id)
        self.store.decide(conversation_id, {"*": Approve()})

    # The right to go on.

    def test_a_resume_gets_the_paused_turn_with_its_opaque_blocks(self) -> None:
        turns = self.append(ONE, "before")
        asking = asking_turn(calls=3)
        step = asking.steps[0].model_copy(update={"replay": BLOCKS})
        turn = asking.model_copy(update={"steps": (CALLING, step)})
        stored = replace(self.pause(turn, expire=(self.future, None)), created=False)
        for store in (self.store, self.elsewhere):
            reservation = store.reserve(ONE, resume=True)
            paused = reservation.paused
            assert isinstance(paused, PausedTurn)
            assert repr(paused.turn) == repr(turn)
            assert paused.stored == stored
            assert reservation.turn_id != stored.turn_id
            places = [(each.step, each.index, each.status) for each in paused.approvals]
            assert places == [(1, 0, "pending"), (1, 1, "pending"), (1, 2, "pending")]
            asked = asked_by(turn)
            waiting = (replace(asked[0], expires_at=self.future), *asked[1:])
            assert tuple(each.asked for each in paused.approvals) == waiting
            assert store.load(ONE, reservation=reservation) == messages_of(turns)
            assert reservation.next_position == 2
            assert reservation.participant is None
            self.expire(reservation)

    def test_a_window_of_a_resume_ends_before_the_paused_turn(self) -> None:
        turns = self.append(ONE, "1", "2", "3")
        self.pause()
        for keep in (0, 1, 2, 9):
            reservation, _ = self.resume()
            loaded = self.store.load(ONE, keep_last_turns=keep, reservation=reservation)
            assert loaded == messages_of(turns[-keep:])
            self.store.release(reservation)

    def test_nothing_is_resumed_where_nothing_is_paused(self) -> None:
        self.append(ONE, "Hello")
        self.store.create(TWO)
        self.append("busy", "Hello")
        running = self.store.reserve("busy")
        for conversation_id in (ONE, TWO, "busy"):
            for create in (False, True):
                with raises(ApprovalNotResumable):
                    self.store.reserve(conversation_id, resume=True, create=create)
        assert self.store.renew(running, 60) is True
        self.store.release(self.store.reserve(ONE))
        with raises(ConversationDoesNotExist):
            self.store.reserve("unknown", resume=True)
        with raises((ApprovalNotResumable, ConversationDoesNotExist)):
            self.store.reserve("unknown", resume=True, create=True)
        with raises(ConversationDoesNotExist):
            self.store.reserve("unknown")

    def test_a_turn_is_resumed_by_one_worker_at_a_time(self) -> None:
        self.pause()
        first, _ = self.resume()
        for store in (self.store, self.elsewhere):
            with raises(ConversationBusy) as caught:
                store.reserve(ONE, resume=True)
            assert caught.exception.retry_after > 0
        assert self.store.renew(first, 0) is True
        second, _ = self.resume()
        assert self.store.renew(first, 60) is False
        assert self.store.renew(second, 60) is True

    def test_a_resume_that_is_given_up_leaves_the_pause_as_it_was(self) -> None:
        self.pause()
        self.store.decide(ONE, {"call-0": Approve()})
        before = self.look()
        told = self.store.get(ONE), self.store.paginate_conversation_messages(ONE)
        for _ in range(2):
            reservation, paused = self.resume()
            assert paused == before
            self.store.release(reservation)
            assert self.store.renew(reservation, 60) is False
        assert (self.store.get(ONE), self.store.paginate_conversation_messages(ONE)) == told
        assert [asked.id for asked in self.store.pending_approvals_for(ONE)] == ["call-1"]

    def test_what_nobody_decided_in_time_has_expired_for_a_resume(self) -> None:
        self.pause(asking_turn(calls=4), expire=(self.past, self.future, None, self.future))
        self.store.decide(ONE, {"call-3": Deny()})
        assert self.statuses() == ["expired", "pending", "pending", "denied"]
        assert self.statuses() == ["expired", "pending", "pending", "denied"]
        assert [asked.id for asked in self.store.pending_approvals_for(ONE)] == [
            *("call-1", "call-2"),
        ]

    # Claims.

    def test_an_approved_call_is_claimed_once(self) -> None:
        self.pause(asking_turn(calls=2))
        self.store.decide(ONE, {"call-0": Approve(), "call-1": Edit({"order": 8})})
        reservation, _ = self.resume()
        for index in (0, 1):
            assert self.claim(reservation, index) is True
            assert self.claim(reservation, index) is False
        self.note(reservation, 0, "Done.")
        assert self.claim(reservation, 0) is False
        self.expire(reservation)
        again, _ = self.resume()
        for index in (0, 1):
            assert self.claim(again, index) is False

    def test_a_call_that_nobody_approved_is_not_claimed(self) -> None:
        self.pause(asking_turn(calls=3), expire=(None, None, self.past))
        self.store.decide(ONE, {"call-0": Deny()})
        reservation, paused = self.resume()
        for index in (0, 1, 2, 3):
            assert self.claim(reservation, index) is False
        unknown = JournalEntry(1, 0, paused.turn.steps[0].tool_calls()[0])
        assert self.store.journal(reservation, unknown, 60) is False
        assert self.store.renew(reservation, 0) is True
        assert self.statuses() == ["denied", "pending", "expired"]

    def test_a_claim_holds_the_conversation(self) -> None:
        self.approve()
        reservation, _ = self.resume()
        self.expire(reservation)
        assert self.claim(reservation, 0) is True
        with raises(ConversationBusy):
            self.store.reserve(ONE, resume=True)

    def test_a_worker_that_was_overtaken_claims_and_settles_nothing(self) -> None:
        self.approve()
        stalled, paused = self.resume()
        self.expire(stalled)
        taken, _ = self.resume()
        late = finished(paused.turn, "Late.", "Late.")
        assert self.claim(stalled, 0) is False
        assert self.store.journal(stalled, JournalEntry(0, 0, ToolResult()), 60) is False
        for turn in (late, None):
            with raises(ConversationConflict) as caught:
                self.store.settle(ONE, turn, reservation=stalled)
            assert caught.exception.turn == turn
        self.store.release(stalled)
        assert self.claim(taken, 0) is True
        assert self.store.renew(taken, 0) is True
        assert self.look().turn.status == "paused"

    def test_a_late_worker_that_nobody_overtook_settles(self) -> None:
        self.approve()
        reservation, paused = self.resume()
        assert self.claim(reservation, 0) is True
        self.expire(reservation)
        turn = finished(paused.turn, "a", "b")
        self.store.settle(ONE, turn, reservation=reservation)
        assert self.store.load(ONE) == turn.messages

    # Workers that die.

    def test_a_dead_resume_leaves_its_results_and_no_call_in_doubt(self) -> None:
        turns = self.append(ONE, "before")
        turn = asking_turn(calls=4)
        self.approve(turn)
        reservation, _ = self.resume()
        for index in (2, 0):
            assert self.claim(reservation, index) is True
        self.note(reservation, 2, "Refunded.")
        self.expire(reservation)
        self.assert_blocked()
        told = (
            ToolResult(value=INTERRUPTED, failed=True),
            None,
            ToolResult(value="Refunded."),
            None,
        )
        for _ in range(2):
            paused = self.look()
            assert paused.turn == answered(turn, *told)
            statuses = [each.status for each in paused.approvals]
            assert statuses == ["interrupted", "approved", "done", "approved"]
        self.assert_blocked()
        assert self.store.load(ONE) == messages_of(turns)
        answer, *_ = self.store.paginate_conversation_messages(ONE)
        assert (answer.status, answer.steps) == ("paused", answered(turn, *told).steps)

    def test_what_a_dead_resume_did_not_claim_is_claimed_by_the_next(self) -> None:
        self.approve()
        dead, _ = self.resume()
        assert self.claim(dead, 0) is True
        self.expire(dead)
        taken = self.elsewhere.reserve(ONE, resume=True)
        assert self.claim(taken, 1) is True
        assert self.claim(taken, 1) is False
        assert self.claim(taken, 0) is False

    def test_a_dead_resume_leaves_the_steps_that_followed(self) -> None:
        turn = asking_turn(calls=1)
        self.approve(turn)
        reservation, _ = self.resume()
        assert self.claim(reservation, 0) is True
        self.note(reservation, 0, "Refunded.")
        further = tool_turn(calls=2).steps[0].model_copy(update={"usage": self.used})
        gated = ToolCall(id="call-0", name="refund", approval_reason="")
        unanswered = ToolCall(id="call-1", name="look")
        last = Step(items=(TextPart(text="More."), gated, unanswered), usage=self.used)
        done = answered(turn, ToolResult(value="Refunded."))
        gone_on = done.model_copy(update={"steps": (*done.steps, further, last)})
        for entry in entries_of(gone_on, Heading(ONE, self.owner, COACH)):
            if entry.step:
                assert self.store.journal(reservation, entry, 60) is True
        self.expire(reservation)
        lost = unanswered.model_copy(update={"result": ToolResult(value=INTERRUPTED, failed=True)})
        last = last.model_copy(update={"items": (TextPart(text="More."), gated, lost)})
        wanted = done.model_copy(update={"steps": (*done.steps, further, last)})
        for _ in range(2):
            paused = self.look()
            assert paused.turn == wanted
            assert [each.status for each in paused.approvals] == ["done"]
        self.assert_blocked()
        stored = self.store.get(ONE)
        assert stored is not None
        assert (stored.turns, stored.usage) == (1, self.used + self.used + self.used)
        reservation, paused = self.resume()
        self.store.settle(ONE, finished(paused.turn, "Yes."), reservation=reservation)
        stored = self.store.get(ONE)
        assert stored is not None
        assert stored.usage == self.used + self.used + self.used + self.used

    def test_a_resume_that_is_given_up_after_a_claim_leaves_what_it_did(self) -> None:
        self.approve()
        reservation, _ = self.resume()
        for index in (0, 1):
            assert self.claim(reservation, index) is True
        self.note(reservation, 0, "Refunded.")
        self.store.release(reservation)
        paused = self.look()
        assert [each.status for each in paused.approvals] == ["done", "interrupted"]
        told = ToolResult(value="Refunded."), ToolResult(value=INTERRUPTED, failed=True)
        assert paused.turn == answered(asking_turn(), *told)

    def test_clear_wins_over_a_resume(self) -> None:
        self.approve()
        reservation, paused = self.resume()
        assert self.claim(reservation, 0) is True
        self.store.clear(ONE)
        assert self.claim(reservation, 1) is False
        with raises(ConversationConflict):
            self.store.settle(ONE, finished(paused.turn, "a", "b"), reservation=reservation)
        assert self.store.get(ONE) is None
        turns = self.append(ONE, "anew")
        self.store.release(reservation)
        self.expire(self.store.reserve(ONE))
        turns.append(plain_turn("after"))
        self.store.append(ONE, turns[-1])
        assert self.store.load(ONE) == messages_of(turns)
