"""How a paused turn ends: in its own place, again paused, or given up."""

from __future__ import annotations

from dataclasses import replace

from agent_memory.approvals import Approve, Deny
from agent_memory.exceptions import ConversationConflict, TurnFailed
from agent_memory.messages import INTERRUPTED, UNDECIDED, Message, ToolResult, TurnError, Usage
from agent_memory.records import Heading, Once, Reservation
from agent_memory.testing.contract.base import COACH, ONE, TWO, messages_of, plain_turn, raises
from agent_memory.testing.contract.pausing import Pausing, answered, asked_by, asking_turn, finished
from agent_memory.testing.contract.resuming import BLOCKS

TIMED_OUT = TurnError(code="Timeout", status=504)
DENIED = ToolResult(value="No.", denied=True)


class SettlingPromises(Pausing):
    """A paused turn is replaced where it stands, or leaves no trace but in totals."""

    # In its place.

    def test_a_settled_turn_stands_where_it_was_paused(self) -> None:
        turns = self.append(ONE, "before")
        stored = self.pause()
        _, said, *_ = self.store.paginate_conversation_messages(ONE)
        reservation, _ = self.resume()
        turns.append(finished(asking_turn(), "a", "b"))
        settled = self.store.settle(ONE, turns[-1], reservation=reservation)
        assert settled == replace(stored, created=False)
        assert self.store.renew(reservation, 60) is False
        assert self.store.load(ONE) == messages_of(turns)
        answer, still, *_ = self.store.paginate_conversation_messages(ONE)
        assert still == said
        assert (answer.id, answer.position) == (stored.assistant_message_id, 3)
        assert (answer.status, answer.content) == ("completed", "Refunded.")
        assert (answer.steps, answer.usage) == (turns[-1].steps, self.used + self.used)
        assert self.known().turns == 2
        assert self.store.pending_approvals_for(ONE) == ()
        turns += self.append(ONE, "after")
        assert self.store.load(ONE) == messages_of(turns)

    def test_a_turn_settled_adds_the_tokens_that_it_took_since_the_pause(self) -> None:
        self.append(ONE, "before")
        title = Usage(input_tokens=100)
        self.pause(asking_turn(title_usage=title))
        assert self.known().usage == self.used + title
        for waits in (1, 0):
            reservation, paused = self.resume()
            turn = finished(paused.turn, "a", "b")
            if waits:
                further = asking_turn(calls=1).steps
                update = {"steps": (*turn.steps, *further), "status": "paused"}
                turn = turn.model_copy(update=update)
            self.store.settle(ONE, turn, reservation=reservation)
        assert self.known().usage == self.used + self.used + self.used + self.used + title

    def test_settling_is_activity(self) -> None:
        given_up = asking_turn(ran=False)
        for turn in (finished(asking_turn(), "a", "b"), None):
            self.store.clear(ONE)
            self.pause(given_up)
            self.store.append(Heading(TWO, self.owner, COACH), plain_turn())
            before = self.known()
            assert [each.id for each in self.store.list_conversations(self.owner)] == [TWO, ONE]
            self.settle(turn)
            assert self.known().last_activity > before.last_activity
            assert self.known().opened_at == before.opened_at
            assert [each.id for each in self.store.list_conversations(self.owner)] == [ONE, TWO]

    def test_a_key_finds_what_became_of_a_paused_turn(self) -> None:
        turn = asking_turn()
        stored = self.pause(turn, key=self.key)
        done = finished(turn, "a", "b")
        self.settle(done)
        found = self.asked_under(self.key, turn.user).answered
        assert found is not None
        assert (found.turn, found.stored.turn_id, found.waiting) == (done, stored.turn_id, ())
        self.pause(turn, key="key-2")
        failed = finished(turn, "a", status="failed", error=TIMED_OUT)
        self.settle(failed)
        with raises(TurnFailed) as caught:
            self.asked_under("key-2", turn.user)
        assert caught.exception.turn == failed

    def test_a_paused_turn_may_end_as_failed(self) -> None:
        turn = asking_turn()
        self.pause(turn)
        failed = answered(turn, ToolResult(value="Refunded.")).model_copy(
            update={"status": "failed", "error": TIMED_OUT}
        )
        self.settle(failed)
        told = [message.text for message in self.store.load(ONE) if message.role == "tool"]
        assert told == ["Refunded.", UNDECIDED, "Found it."]
        answer, *_ = self.store.paginate_conversation_messages(ONE)
        assert answer.status == "failed"
        assert answer.meta == {"error": {"code": "Timeout", "status": 504}}
        self.store.reserve(ONE)

    # Paused again.

    def test_a_turn_may_pause_again_at_a_later_step(self) -> None:
        turns = self.append(ONE, "before")
        self.pause(asking_turn(calls=2))
        self.store.decide(ONE, {"call-0": Approve(), "call-1": Deny("No.")})
        reservation, paused = self.resume()
        later = asking_turn(calls=3)
        step = later.steps[0].model_copy(update={"replay": BLOCKS})
        done = answered(paused.turn, ToolResult(value="a"), DENIED)
        turn = done.model_copy(update={"steps": (*done.steps, step)})
        first, second, third = asked_by(turn)
        described = (replace(second, expires_at=self.past), replace(third, expires_at=self.future))
        heading = Heading(ONE, self.owner, COACH, approvals=described)
        stored = self.store.settle(heading, turn, reservation=reservation)
        assert stored == paused.stored
        assert self.store.renew(reservation, 60) is False
        waiting = first, described[1]
        assert self.store.pending_approvals_for(ONE) == waiting
        self.assert_blocked(*waiting)
        assert self.store.load(ONE) == messages_of(turns)
        again = self.look()
        assert repr(again.turn) == repr(turn)
        places = [(each.step, each.index, each.status) for each in again.approvals]
        assert places == [(1, 0, "pending"), (1, 1, "expired"), (1, 2, "pending")]
        assert self.known().turns == 2
        turns.append(finished(turn, "b", "c", "d"))
        self.settle(turns[-1])
        assert self.store.load(ONE) == messages_of(turns)

    def test_a_turn_that_stays_paused_keeps_its_decisions_and_what_it_did(self) -> None:
        turn = asking_turn(calls=4)
        self.pause(turn)
        self.store.decide(ONE, {"call-0": Approve(), "call-1": Approve(), "call-2": Deny("No.")})
        reservation, _ = self.resume()
        assert self.claim(reservation, 1) is True
        come_so_far = answered(turn, None, ToolResult(value="Refunded."))
        self.store.settle(ONE, come_so_far, reservation=reservation)
        assert self.statuses() == ["approved", "done", "denied", "pending"]
        assert self.look().turn == come_so_far
        assert [asked.id for asked in self.store.pending_approvals_for(ONE)] == ["call-3"]
        self.store.decide(ONE, {"call-3": Approve()})
        taken, _ = self.resume()
        assert [self.claim(taken, index) for index in range(4)] == [True, False, False, True]

    # Given up.

    def test_a_turn_given_up_before_a_tool_started_is_gone(self) -> None:
        turn = asking_turn(ran=False)
        for given in (ONE, TWO):
            turns = self.append(given, "before") if given == ONE else []
            before = self.store.load(given)
            self.pause(turn, given, key=self.key)
            self.store.decide(given, {"call-0": Approve(), "call-1": Deny()})
            assert self.settle(None, given) is None
            assert self.store.load(given) == before
            assert len(self.store.paginate_conversation_messages(given)) == len(before)
            assert (self.known(given).turns, self.known(given).usage) == (len(turns), self.used)
            assert self.store.pending_approvals_for(given) == ()
            reservation = self.store.reserve(
                given, once=Once.of(self.key, Message("user", "Other"))
            )
            assert reservation.answered is None
            assert self.store.load(given, reservation=reservation) == before
            assert reservation.next_position == 2 * len(turns)
            turns.append(plain_turn("Other"))
            self.store.append(given, turns[-1], reservation=reservation)
            assert self.store.load(given) == messages_of(turns)
            page = self.store.paginate_conversation_messages(given)
            assert [each.position for each in page] == list(range(2 * len(turns)))[::-1]

    def test_a_turn_that_is_gone_was_not_spoken(self) -> None:
        for conversation_id in (ONE, TWO):
            self.store.append(Heading(conversation_id, self.owner, COACH), plain_turn())
        self.pause(asking_turn(ran=False))
        self.pause(asking_turn(ran=False), "three")
        assert self.store.latest_conversation_id(self.owner, COACH) == "three"
        self.settle(None, "three")
        assert self.store.latest_conversation_id(self.owner, COACH) == ONE
        self.settle(None)
        assert self.store.latest_conversation_id(self.owner, COACH) == TWO
        self.store.clear(TWO)
        assert self.store.latest_conversation_id(self.owner, COACH) == ONE

    def test_calls_that_were_denied_have_not_started(self) -> None:
        turn = asking_turn(calls=1, ran=False)
        self.pause(turn, expire=(self.past,))
        assert self.settle(None) is None
        self.pause(turn)
        self.store.decide(ONE, {"*": Deny("No.")})
        further = asking_turn(calls=1, ran=False).steps
        steps = (*answered(turn, DENIED).steps, *further)
        self.settle(turn.model_copy(update={"steps": steps}))
        assert self.settle(None) is None
        assert self.store.load(ONE) == ()
        assert self.known().turns == 0

    def test_a_turn_given_up_after_a_tool_had_started_is_kept_as_failed(self) -> None:
        turns = self.append(ONE, "before")
        ran = asking_turn(ran=True)
        stored = self.pause(ran, key=self.key)
        assert self.settle(None) == replace(stored, created=False)
        turns.append(
            ran.model_copy(update={"status": "failed", "error": TurnError(code="Discarded")})
        )
        assert self.store.load(ONE) == messages_of(turns)
        told = [message.text for message in self.store.load(ONE) if message.role == "tool"]
        assert told == [UNDECIDED, UNDECIDED, "Found it."]
        answer, *_ = self.store.paginate_conversation_messages(ONE)
        assert (answer.id, answer.status) == (stored.assistant_message_id, "failed")
        assert answer.meta == {"error": {"code": "Discarded"}}
        assert (self.known().turns, self.known().usage) == (2, self.used)
        with raises(TurnFailed) as caught:
            self.asked_under(self.key, ran.user)
        assert caught.exception.turn == turns[-1]
        turns += self.append(ONE, "after")
        assert self.store.load(ONE) == messages_of(turns)

    def test_a_turn_given_up_tells_of_each_call_that_may_have_run(self) -> None:
        turn = asking_turn(calls=3, ran=False)
        for dies in (False, True):
            self.store.clear(ONE)
            self.pause(turn)
            self.store.decide(ONE, {"*": Approve()})
            reservation, _ = self.resume()
            for index in (0, 1):
                assert self.claim(reservation, index) is True
            self.note(reservation, 1, "Refunded.")
            if dies:
                self.expire(reservation)
                reservation, _ = self.resume()
            assert self.store.settle(ONE, None, reservation=reservation) is not None
            told = [message.text for message in self.store.load(ONE) if message.role == "tool"]
            assert told == [INTERRUPTED, "Refunded.", UNDECIDED]

    # Who may not.

    def test_whoever_resumes_a_turn_appends_none_behind_it(self) -> None:
        self.append(ONE, "before")
        self.pause()
        reservation, paused = self.resume()
        counted = self.known().turns
        with raises(ConversationConflict) as caught:
            self.store.append(ONE, plain_turn(), reservation=reservation)
        assert caught.exception.turn == plain_turn()
        assert self.known().turns == counted
        done = finished(paused.turn, "a", "b")
        self.store.settle(ONE, done, reservation=reservation)
        assert self.store.load(ONE, keep_last_turns=1) == done.messages

    def test_only_whoever_resumes_a_turn_settles_it(self) -> None:
        self.append(TWO, "before")
        self.pause()
        released, paused = self.resume()
        self.store.release(released)
        done = finished(paused.turn, "a", "b")
        for turn in (done, None):
            for reservation in (released, Reservation(ONE, "unknown")):
                with raises(ConversationConflict) as caught:
                    self.store.settle(ONE, turn, reservation=reservation)
                assert caught.exception.turn == turn
            prompting = self.store.reserve(TWO)
            for conversation_id in (ONE, TWO):
                with raises(ConversationConflict):
                    self.store.settle(conversation_id, turn, reservation=prompting)
            self.store.release(prompting)
        assert self.look() == paused
        self.settle(done)
        with raises(ConversationConflict):
            self.store.settle(ONE, None, reservation=released)
        assert self.store.load(ONE) == done.messages
