"""One turn at a time: reserving, renewing and releasing."""

from __future__ import annotations

from datetime import datetime

from agent_memory.exceptions import ConversationBusy, ConversationDoesNotExist
from agent_memory.messages import Message
from agent_memory.records import Heading
from agent_memory.testing.contract.base import ONE, TWO, Promises, messages_of, raises, tool_turn
from agent_memory.testing.contract.fidelity import LONG_TEXT
from agent_memory.testing.contract.journals import entries_of


class ReservationPromises(Promises):
    """
    A conversation answers one prompt at a time.

    No test waits: renewing for 0 seconds makes a reservation expire at once.
    """

    def test_a_second_turn_of_a_conversation_is_busy_at_once(self) -> None:
        self.append(ONE, "Hello")
        self.store.reserve(ONE)
        for _ in range(2):
            with raises(ConversationBusy) as caught:
                self.store.reserve(ONE)
        assert caught.exception.conversation_id == ONE
        assert isinstance(caught.exception.since, datetime)
        assert caught.exception.since.tzinfo is not None
        assert caught.exception.retry_after > 0

    def test_different_conversations_do_not_wait_for_each_other(self) -> None:
        self.append(ONE, "Hello")
        self.append(TWO, "Hello")
        first, second = self.store.reserve(ONE), self.store.reserve(TWO)
        assert (first.conversation_id, second.conversation_id) == (ONE, TWO)
        assert first.turn_id != second.turn_id

    def test_reading_does_not_wait_for_a_running_turn(self) -> None:
        turns = self.append(ONE, "Hello")
        reservation = self.store.reserve(ONE)
        assert self.store.load(ONE) == messages_of(turns)
        assert self.store.load(ONE, keep_last_turns=1, reservation=reservation) == (
            messages_of(turns)
        )

    def test_a_released_conversation_takes_the_next_turn(self) -> None:
        turns = self.append(ONE, "Hello")
        first = self.store.reserve(ONE)
        self.store.release(first)
        second = self.store.reserve(ONE)
        assert second.turn_id != first.turn_id
        assert self.store.load(ONE) == messages_of(turns)

    def test_releasing_with_a_stale_token_is_ignored(self) -> None:
        self.append(ONE, "Hello")
        stale = self.store.reserve(ONE)
        self.store.release(stale)
        self.store.reserve(ONE)
        self.store.release(stale)
        with raises(ConversationBusy):
            self.store.reserve(ONE)

    def test_an_expired_reservation_is_taken_over(self) -> None:
        self.append(ONE, "Hello")
        for seconds in (0, -5):
            dead = self.store.reserve(ONE)
            self.store.renew(dead, seconds)
            taken = self.store.reserve(ONE)
            assert taken.turn_id != dead.turn_id
            with raises(ConversationBusy):
                self.store.reserve(ONE)
            self.store.release(taken)

    def test_renewing_holds_on_until_the_reservation_is_lost(self) -> None:
        self.append(ONE, "Hello")
        first = self.store.reserve(ONE)
        assert self.store.renew(first, 0) is True
        assert self.store.renew(first, 60) is True
        with raises(ConversationBusy):
            self.store.reserve(ONE)
        self.store.renew(first, 0)
        second = self.store.reserve(ONE)
        assert self.store.renew(first, 60) is False
        assert self.store.renew(second, 60) is True
        self.store.release(second)
        assert self.store.renew(second, 60) is False

    def test_an_entry_in_the_journal_renews_and_is_refused_when_the_reservation_was_lost(
        self,
    ) -> None:
        self.append(ONE, "Hello")
        step, result = entries_of(tool_turn(calls=1), Heading(ONE, self.owner))[:2]
        first = self.store.reserve(ONE)
        self.expire(first)
        assert self.store.journal(first, step, 60) is True
        with raises(ConversationBusy):
            self.store.reserve(ONE)
        assert self.store.journal(first, result, 0) is True
        second = self.store.reserve(ONE)
        assert self.store.journal(first, result, 60) is False
        self.expire(second)
        assert self.store.journal(first, result, 60) is False
        third = self.store.reserve(ONE)
        self.store.release(third)
        assert self.store.journal(third, step, 60) is False

    def test_a_message_of_usual_size_may_begin_a_turn(self) -> None:
        self.append(ONE, "Hello")
        message = Message("user", "Hello")
        self.store.release(self.store.reserve(ONE, message=message))
        self.store.release(self.store.reserve(message=message))
        self.store.reserve(TWO, create=True, message=Message("user", LONG_TEXT))
        with raises(ConversationBusy):
            self.store.reserve(TWO, create=True, message=message)

    def test_an_unknown_id_is_reserved_only_where_it_may_be_created(self) -> None:
        with raises(ConversationDoesNotExist) as caught:
            self.store.reserve(ONE)
        assert caught.exception.conversation_id == ONE
        self.store.reserve(ONE, create=True)
        with raises(ConversationBusy):
            self.store.reserve(ONE, create=True)

    def test_a_failed_first_turn_leaves_no_conversation_behind(self) -> None:
        self.store.release(self.store.reserve(ONE, create=True))
        with raises(ConversationDoesNotExist):
            self.store.reserve(ONE)
        assert self.store.load(ONE) == ()

    def test_a_conversation_yet_to_be_has_a_fresh_id_and_waits_for_nobody(self) -> None:
        first, second = self.store.reserve(), self.store.reserve()
        assert first.conversation_id != second.conversation_id
        assert first.turn_id != second.turn_id
        for reservation in (first, second):
            assert self.store.load(reservation.conversation_id, reservation=reservation) == ()
            assert self.store.renew(reservation, 60) is True
            self.store.release(reservation)
            with raises(ConversationDoesNotExist):
                self.store.reserve(reservation.conversation_id)
