"""What ``append`` promises of a reservation: written by whoever holds it, or not at all."""

from __future__ import annotations

from contextlib import suppress

from agent_memory.exceptions import ConversationBusy, ConversationConflict, ConversationDoesNotExist
from agent_memory.messages import Turn
from agent_memory.records import Heading, Reservation
from agent_memory.testing.contract.base import COACH, ONE, Promises, messages_of, plain_turn, raises


class TurnPromises(Promises):
    """A reservation that was lost writes nothing; one that stands is ended by its turn."""

    def assert_conflict(self, reservation: Reservation, turn: Turn) -> None:
        before = self.store.load(reservation.conversation_id)
        with raises(ConversationConflict) as caught:
            self.store.append(reservation.conversation_id, turn, reservation=reservation)
        assert caught.exception.conversation_id == reservation.conversation_id
        assert caught.exception.turn == turn
        assert self.store.load(reservation.conversation_id) == before

    def test_append_ends_the_reservation_it_is_given(self) -> None:
        assert self.store.append_ends_reservation
        turns = self.append(ONE, "before")
        for prompt in ("one", "two"):
            reservation = self.store.reserve(ONE)
            turns.append(plain_turn(prompt))
            stored = self.store.append(ONE, turns[-1], reservation=reservation)
            assert stored.turn_id == reservation.turn_id
            assert self.store.renew(reservation, 60) is False
        assert self.store.load(ONE) == messages_of(turns)

    def test_append_without_a_reservation_waits_for_its_turn_and_ends_it(self) -> None:
        turns = self.append(ONE, "one", "two")
        reservation = self.store.reserve(ONE)
        with raises(ConversationBusy):
            self.store.append(ONE, plain_turn("in between"))
        assert self.store.load(ONE) == messages_of(turns)
        turns.append(plain_turn("three"))
        self.store.append(ONE, turns[-1], reservation=reservation)
        turns += self.append(ONE, "four")
        assert self.store.load(ONE) == messages_of(turns)

    def test_append_without_a_reservation_takes_over_a_dead_turn(self) -> None:
        turns = self.append(ONE, "one")
        dead = self.store.reserve(ONE)
        self.store.renew(dead, 0)
        turns += self.append(ONE, "two")
        self.assert_conflict(dead, plain_turn("late"))
        assert self.store.load(ONE) == messages_of(turns)

    def test_a_late_turn_that_nobody_overtook_is_written(self) -> None:
        turns = self.append(ONE, "one")
        late = self.store.reserve(ONE)
        self.store.renew(late, 0)
        turns.append(plain_turn("two"))
        self.store.append(ONE, turns[-1], reservation=late)
        assert self.store.load(ONE) == messages_of(turns)

    def test_a_turn_that_was_overtaken_is_a_conflict_and_writes_nothing(self) -> None:
        turns = self.append(ONE, "one")
        stale = self.store.reserve(ONE)
        self.store.renew(stale, 0)
        taken = self.store.reserve(ONE)
        self.assert_conflict(stale, plain_turn("late"))
        turns.append(plain_turn("two"))
        self.store.append(ONE, turns[-1], reservation=taken)
        self.assert_conflict(stale, plain_turn("later"))
        assert self.store.load(ONE) == messages_of(turns)

    def test_a_turn_that_was_given_up_is_a_conflict(self) -> None:
        self.append(ONE, "one")
        released = self.store.reserve(ONE)
        self.store.release(released)
        self.assert_conflict(released, plain_turn("late"))

    def test_a_turn_appended_again_is_written_once(self) -> None:
        turn = plain_turn()
        for reservation in (self.store.reserve(ONE, create=True), self.store.reserve()):
            conversation_id = reservation.conversation_id
            stored = self.store.append(conversation_id, turn, reservation=reservation)
            with suppress(ConversationConflict):
                again = self.store.append(conversation_id, turn, reservation=reservation)
                assert again.user_message_id == stored.user_message_id
            assert self.store.load(conversation_id) == turn.messages

    def test_clear_wins_over_a_running_turn(self) -> None:
        self.append(ONE, "one")
        reservation = self.store.reserve(ONE)
        self.store.clear(ONE)
        assert self.store.renew(reservation, 60) is False
        self.assert_conflict(reservation, plain_turn("two"))
        assert self.store.get(ONE) is None
        self.store.release(reservation)
        assert self.store.get(ONE) is None

    def test_clear_wins_over_a_first_turn(self) -> None:
        reservation = self.store.reserve(ONE, create=True)
        self.store.clear(ONE)
        self.assert_conflict(reservation, plain_turn("one"))
        assert self.store.get(ONE) is None

    def test_a_turn_of_a_cleared_conversation_spares_its_successor(self) -> None:
        self.append(ONE, "old")
        stale = self.store.reserve(ONE)
        self.store.clear(ONE)
        turns = self.append(ONE, "new")
        self.assert_conflict(stale, plain_turn("late"))
        taken = self.store.reserve(ONE)
        self.store.release(stale)
        turns.append(plain_turn("newer"))
        self.store.append(ONE, turns[-1], reservation=taken)
        assert self.store.load(ONE) == messages_of(turns)

    # First turns.

    def test_a_conversation_appears_with_its_first_turn(self) -> None:
        reservations = (
            self.store.reserve(participant=self.owner, agent=COACH),
            self.store.reserve(ONE, participant=self.owner, agent=COACH, create=True),
        )
        for reservation in reservations:
            conversation_id = reservation.conversation_id
            assert self.store.get(conversation_id) is None
            assert self.store.conversation_belongs_to(conversation_id, self.owner) is False
            assert len(self.store.paginate_conversation_messages(conversation_id)) == 0
            assert conversation_id not in {
                listed.id for listed in self.store.list_conversations(self.owner)
            }
            with raises(ConversationDoesNotExist):
                self.store.rename(conversation_id, "Mine")
            heading = Heading(conversation_id, self.owner, COACH)
            assert self.store.append(heading, plain_turn(), reservation=reservation).created
            assert self.store.load(conversation_id) == plain_turn().messages
            stored = self.store.get(conversation_id)
            assert stored is not None
            assert (stored.participant, stored.agent, stored.turns) == (self.owner, COACH, 1)
            assert not self.store.append(conversation_id, plain_turn()).created

    def test_a_dead_first_turn_is_taken_over(self) -> None:
        dead = self.store.reserve(ONE, participant=self.owner, create=True)
        self.store.renew(dead, 0)
        taken = self.store.reserve(ONE, participant=self.owner, create=True)
        # A store may learn only as it loads what it has reserved.
        assert self.store.load(ONE, reservation=taken) == ()
        self.assert_conflict(dead, plain_turn("late"))
        heading = Heading(ONE, self.owner, COACH)
        assert self.store.append(heading, plain_turn(), reservation=taken).created
        assert self.store.load(ONE) == plain_turn().messages

    def test_a_conversation_may_be_opened_where_a_first_turn_died(self) -> None:
        dead = self.store.reserve(ONE, participant=self.owner, create=True)
        self.expire(dead)
        stored = self.store.create(ONE, participant=self.namesake, title="Mine")
        assert self.store.get(ONE) == stored
        assert self.store.renew(dead, 60) is False
        self.assert_conflict(dead, plain_turn("late"))
        self.store.release(dead)
        assert self.store.get(ONE) == stored

    def test_a_reservation_tells_of_its_conversation(self) -> None:
        heading = Heading(ONE, self.owner, COACH, "Blue", "draft")
        for turns in (1, 2):
            self.store.append(heading, plain_turn())
            reservation = self.store.reserve(ONE)
            self.store.load(ONE, keep_last_turns=1, reservation=reservation)
            assert reservation.next_position == 2 * turns
            assert reservation.participant == self.owner
            assert reservation.title_source == "draft"
            self.store.release(reservation)
