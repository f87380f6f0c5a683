"""Workers that were late, but not dead: what becomes of the turn that they bring."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from agent_memory.approvals import Approve
from agent_memory.exceptions import ConversationBusy, ConversationConflict
from agent_memory.journals import JournalEntry
from agent_memory.messages import Step, TextPart, ToolCall, ToolResult, Turn, TurnError, Usage
from agent_memory.records import Heading, Once
from agent_memory.testing.contract.base import (
    COACH,
    ONE,
    TWO,
    messages_of,
    plain_turn,
    raises,
    tool_turn,
)
from agent_memory.testing.contract.journals import HELLO, Journalling, dying_turn, entries_of
from agent_memory.testing.contract.pausing import Pausing, asking_turn, finished


class LatePromises(Journalling, Pausing):
    """A turn that was finished too late is given back, or takes the place that is its own."""

    def test_a_stalled_worker_that_was_overtaken_gets_its_turn_back(self) -> None:
        self.append(ONE, "before")
        for given in (ONE, TWO, None):
            stalled = self.die(dying_turn(), given)
            conversation_id = stalled.conversation_id
            taken = self.store.reserve(conversation_id)
            before = self.store.load(conversation_id)
            failed = {"status": "failed", "error": TurnError(code="Timeout")}
            for late in (tool_turn("Pay it."), dying_turn().model_copy(update=failed)):
                with raises(ConversationConflict) as caught:
                    self.store.append(conversation_id, late, reservation=stalled)
                assert caught.exception.turn == late
            assert self.store.renew(stalled, 60) is False
            for entry in entries_of(tool_turn(calls=3), self.heading(conversation_id)):
                assert self.store.journal(stalled, entry, 60) is False
            self.store.release(stalled)
            assert self.store.load(conversation_id) == before
            assert self.store.renew(taken, 60) is True

    def test_a_turn_that_could_not_be_stored_takes_the_place_of_what_was_recorded_of_it(
        self,
    ) -> None:
        used = Usage(input_tokens=3, output_tokens=2)
        step = dying_turn().steps[0].model_copy(update={"usage": used})
        dying = Turn(user=HELLO, steps=(step,))
        ended = Step(items=(TextPart(text="Paid."),), usage=used)
        done = dying.model_copy(update={"steps": (step, ended)})
        timed_out = {"status": "failed", "error": TurnError(code="Timeout")}
        for conversation_id, late in ((ONE, done), (TWO, done.model_copy(update=timed_out))):
            before = self.append(conversation_id, "before")
            dead = self.die(dying, conversation_id, key=self.key)
            taken = self.store.reserve(conversation_id)
            after = plain_turn("after")
            self.store.append(conversation_id, after, reservation=taken)
            found = self.store.paginate_conversation_messages(conversation_id)
            heading = Heading(conversation_id, self.owner, COACH, turn_id=dead.turn_id)
            stored = self.store.append(replace(heading, once=dead.once), late)
            with suppress(ConversationConflict):
                self.store.append(replace(heading, once=dead.once), late)
            assert self.store.load(conversation_id) == messages_of([*before, late, after])
            page = self.store.paginate_conversation_messages(conversation_id)
            places = [(message.id, message.position) for message in page]
            assert places == [(message.id, message.position) for message in found]
            _, _, answer, said, *_ = page
            assert (stored.turn_id, stored.user_message_id) == (dead.turn_id, said.id)
            assert stored.assistant_message_id == answer.id
            assert (answer.status, answer.steps) == (late.status, late.steps)
            known = self.store.get(conversation_id)
            assert known is not None
            assert (known.turns, known.usage) == (3, used + used)
        again = self.store.reserve(ONE, once=Once.of(self.key, HELLO)).answered
        assert again is not None
        assert again.turn == done

    def test_a_turn_takes_the_place_of_nothing_else(self) -> None:
        failed = tool_turn().model_copy(
            update={"status": "failed", "error": TurnError(code="Timeout")}
        )
        for turn, late in ((failed, tool_turn()), (tool_turn(), failed)):
            self.store.clear(ONE)
            reservation = self.begin()
            self.store.append(ONE, turn, reservation=reservation)
            heading = Heading(ONE, self.owner, COACH, turn_id=reservation.turn_id)
            with raises(ConversationConflict) as caught:
                self.store.append(heading, late)
            assert caught.exception.turn == late
            assert self.store.load(ONE) == turn.messages

    def test_a_turn_that_pauses_takes_the_place_of_nothing(self) -> None:
        dead = self.die(dying_turn())
        self.store.append(ONE, plain_turn("after"))
        asking = Step(items=(ToolCall(id="call-x", name="pay", approval_reason="It costs."),))
        paused = Turn(user=HELLO, steps=(asking,), status="paused")
        before = self.store.load(ONE)
        with raises(ConversationConflict):
            self.store.append(Heading(ONE, self.owner, COACH, turn_id=dead.turn_id), paused)
        assert self.store.load(ONE) == before
        assert self.store.pending_approvals_for(ONE) == ()
        self.store.reserve(ONE)

    def test_a_late_worker_that_nobody_overtook_goes_on(self) -> None:
        for given in (ONE, TWO, None):
            late = self.die(dying_turn(), given)
            conversation_id = late.conversation_id
            self.journal(late, [JournalEntry(1, 0, ToolResult(value="Paid."))])
            with raises(ConversationBusy):
                self.store.reserve(conversation_id)
            self.store.append(conversation_id, tool_turn(), reservation=late)
            self.store.reserve(conversation_id)
            assert self.store.load(conversation_id) == tool_turn().messages

    # The rest of a turn that was paused.

    def test_the_rest_of_a_turn_that_could_not_be_stored_is_appended_later(self) -> None:
        turns = self.append(ONE, "before")
        for late in (False, True):
            stored = self.pause(key=f"{late}")
            self.store.decide(ONE, {"*": Approve()})
            reservation, paused = self.resume()
            assert self.claim(reservation, 0) is True
            self.expire(reservation)
            if late:
                self.look()
            turns.append(finished(paused.turn, "a", "b"))
            heading = Heading(
                *(ONE, self.owner, COACH),
                turn_id=reservation.turn_id,
                settles=stored.turn_id,
            )
            written = self.store.append(heading, turns[-1])
            assert written == replace(stored, created=False)
            assert self.store.load(ONE) == messages_of(turns)
            with suppress(ConversationConflict):
                again = self.store.append(heading, turns[-1])
                assert again.assistant_message_id == stored.assistant_message_id
            assert self.store.load(ONE) == messages_of(turns)
            found = self.asked_under(f"{late}", turns[-1].user).answered
            assert found is not None
            assert found.turn == turns[-1]
            assert self.known().turns == len(turns)
        assert self.known().usage == self.used + self.used + self.used + self.used

    def test_the_rest_of_a_turn_that_was_given_up_is_a_conflict(self) -> None:
        turn = asking_turn(ran=False)
        stored = self.pause(turn)
        done = finished(turn, "a", "b")
        heading = Heading(ONE, self.owner, COACH, settles=stored.turn_id, turn_id="token")

        def assert_conflict() -> None:
            before = self.store.get(ONE), self.store.load(ONE)
            with raises(ConversationConflict) as caught:
                self.store.append(heading, done)
            assert caught.exception.turn == done
            assert (self.store.get(ONE), self.store.load(ONE)) == before

        self.settle(None)
        assert_conflict()
        self.pause(turn)
        assert_conflict()
        self.settle(finished(turn, "c", "d"))
        assert_conflict()
        self.store.clear(ONE)
        assert_conflict()
