"""Stores that break one promise of reservations and of appends under them each."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from agent_memory.exceptions import (
    ConversationBusy,
    ConversationConflict,
    ConversationDoesNotExist,
    TooLarge,
)
from agent_memory.messages import Message, Turn
from agent_memory.records import Heading, Reservation, StoredConversation, StoredTurn, new_id
from agent_memory.stores.inmemory import InMemoryConversationStore
from tests.testing.broken import breaks

Store = InMemoryConversationStore


@breaks("test_a_second_turn_of_a_conversation_is_busy_at_once")
class IsNeverBusy(Store):
    def _hold(self, reservation: Reservation) -> Reservation:
        self._held.pop(reservation.conversation_id, None)
        return super()._hold(reservation)


@breaks("test_different_conversations_do_not_wait_for_each_other")
class RunsOneTurnAtATimeInAll(Store):
    def _hold(self, reservation: Reservation) -> Reservation:
        for held in self._held.values():
            raise ConversationBusy(reservation.conversation_id, since=held.since, retry_after=1)
        return super()._hold(reservation)


@breaks("test_a_second_turn_of_a_conversation_is_busy_at_once")
class TellsNoTimeZone(Store):
    def _hold(self, reservation: Reservation) -> Reservation:
        try:
            return super()._hold(reservation)
        except ConversationBusy as busy:
            busy.since = busy.since.replace(tzinfo=None)
            raise


@breaks("test_reading_does_not_wait_for_a_running_turn")
class IsBusyForReaders(Store):
    def load(self, conversation_id: str, **kwargs: Any) -> tuple[Message, ...]:
        loaded = super().load(conversation_id, **kwargs)
        if held := self._held.get(conversation_id):
            raise ConversationBusy(conversation_id, since=held.since, retry_after=1)
        return loaded


@breaks("test_a_released_conversation_takes_the_next_turn")
class ClearsOnRelease(Store):
    def release(self, reservation: Reservation) -> None:
        self.clear(reservation.conversation_id)


@breaks("test_releasing_with_a_stale_token_is_ignored")
class IgnoresTheTokenOfARelease(Store):
    def release(self, reservation: Reservation) -> None:
        if held := self._held.get(reservation.conversation_id):
            super().release(replace(reservation, turn_id=held.token))


@breaks("test_an_expired_reservation_is_taken_over")
class NeverExpires(Store):
    def renew(self, reservation: Reservation, seconds: float) -> bool:
        return super().renew(reservation, max(seconds, 60))


@breaks("test_renewing_holds_on_until_the_reservation_is_lost")
class RenewsNothing(Store):
    def renew(self, reservation: Reservation, seconds: float) -> bool:
        return super().renew(reservation, 0)


@breaks("test_append_ends_the_reservation_it_is_given")
class SaysAlwaysRenewed(Store):
    def renew(self, reservation: Reservation, seconds: float) -> bool:
        return super().renew(reservation, seconds) or True


@breaks("test_an_unknown_id_is_reserved_only_where_it_may_be_created")
class CreatesWhatItIsAsked(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        return super().reserve(conversation_id, **{**kwargs, "create": True})


@breaks("test_a_failed_first_turn_leaves_no_conversation_behind")
class KeepsPlaceholders(Store):
    def release(self, reservation: Reservation) -> None:
        kept = self._transcripts.get(reservation.conversation_id)
        super().release(reservation)
        if kept is not None and kept.opened_at is None:
            kept.open(self._tick())
            self._transcripts[kept.id] = kept


@breaks("test_a_conversation_yet_to_be_has_a_fresh_id_and_waits_for_nobody")
class MintsOneId(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        reservation = super().reserve(conversation_id, **kwargs)
        return replace(reservation, conversation_id="new") if reservation.new else reservation


@breaks("test_a_conversation_yet_to_be_has_a_fresh_id_and_waits_for_nobody")
class StoresAConversationYetToBe(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        if conversation_id is None:
            conversation_id = self.create(participant=kwargs.get("participant")).id
        return super().reserve(conversation_id, **kwargs)


@breaks("test_a_reservation_tells_of_its_conversation")
class TellsNothing(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        reservation = super().reserve(conversation_id, **kwargs)
        return Reservation(reservation.conversation_id, reservation.turn_id, reservation.new)


@breaks("test_append_ends_the_reservation_it_is_given")
class KeepsTheReservation(Store):
    def append(
        self, conversation: Any, turn: Turn, *, reservation: Reservation | None = None
    ) -> StoredTurn:
        held = self._held.get(Heading.of(conversation).id)
        stored = super().append(conversation, turn, reservation=reservation)
        if held is not None and reservation is not None:
            self._held[stored.conversation_id] = held
        return stored


class _AppendsAnyway(Store):
    """Appends under whatever reservation it takes to."""

    def force(self, heading: Heading, turn: Turn) -> StoredTurn:
        known = heading.id in self._transcripts
        reservation = Reservation(heading.id, new_id(), new=not known)
        held = self._held.pop(heading.id, None)
        if known:
            self._hold(reservation)
        try:
            return self._append(heading, turn, reservation)
        finally:
            if held is not None:
                self._held[heading.id] = held


@breaks(
    "test_append_without_a_reservation_waits_for_its_turn_and_ends_it",
    "test_append_without_a_reservation_takes_over_a_dead_turn",
)
class AppendsWithoutAsking(_AppendsAnyway):
    def append(
        self, conversation: Any, turn: Turn, *, reservation: Reservation | None = None
    ) -> StoredTurn:
        if reservation is None:
            return self.force(Heading.of(conversation), turn)
        return super().append(conversation, turn, reservation=reservation)


@breaks(
    "test_a_turn_that_was_overtaken_is_a_conflict_and_writes_nothing",
    "test_a_turn_that_was_given_up_is_a_conflict",
    "test_a_turn_of_a_cleared_conversation_spares_its_successor",
)
class SeesNoLostReservation(_AppendsAnyway):
    def append(
        self, conversation: Any, turn: Turn, *, reservation: Reservation | None = None
    ) -> StoredTurn:
        try:
            return super().append(conversation, turn, reservation=reservation)
        except ConversationConflict:
            return self.force(Heading.of(conversation), turn)


@breaks("test_clear_wins_over_a_first_turn", "test_clear_wins_over_a_running_turn")
class ResurrectsAClearedConversation(_AppendsAnyway):
    def append(
        self, conversation: Any, turn: Turn, *, reservation: Reservation | None = None
    ) -> StoredTurn:
        heading = Heading.of(conversation)
        if reservation is not None and heading.id not in self._transcripts:
            return self.force(heading, turn)
        return super().append(conversation, turn, reservation=reservation)


@breaks("test_a_turn_appended_again_is_written_once")
class WritesAgainWhatItWrote(_AppendsAnyway):
    def __init__(self) -> None:
        super().__init__()
        self.written: set[str] = set()

    def append(
        self, conversation: Any, turn: Turn, *, reservation: Reservation | None = None
    ) -> StoredTurn:
        if reservation is not None and reservation.turn_id in self.written:
            return self.force(Heading.of(conversation), turn)
        stored = super().append(conversation, turn, reservation=reservation)
        self.written.add(stored.turn_id)
        return stored


@breaks("test_a_late_turn_that_nobody_overtook_is_written")
class RefusesALateTurn(Store):
    def append(
        self, conversation: Any, turn: Turn, *, reservation: Reservation | None = None
    ) -> StoredTurn:
        heading = Heading.of(conversation)
        held = self._held.get(heading.id)
        if reservation is not None and held is not None and held.until <= time.monotonic():
            raise ConversationConflict(heading.id, turn)
        return super().append(conversation, turn, reservation=reservation)


@breaks("test_a_turn_that_was_overtaken_is_a_conflict_and_writes_nothing")
class LosesTheTurnOfAConflict(Store):
    def append(self, conversation: Any, turn: Turn, **kwargs: Any) -> StoredTurn:
        try:
            return super().append(conversation, turn, **kwargs)
        except ConversationConflict as conflict:
            conflict.turn = None
            raise


@breaks("test_a_conversation_appears_with_its_first_turn")
class ShowsPlaceholders(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        reservation = super().reserve(conversation_id, **kwargs)
        if reservation.placeholder:
            self._transcripts[reservation.conversation_id].open(self._tick())
        return reservation


@breaks("test_a_dead_first_turn_is_taken_over")
class NeverTakesOverAPlaceholder(Store):
    def _hold(self, reservation: Reservation) -> Reservation:
        held = self._held.get(reservation.conversation_id)
        if held is not None and self._opened(reservation.conversation_id) is None:
            raise ConversationBusy(reservation.conversation_id, since=held.since, retry_after=1)
        return super()._hold(reservation)


@breaks("test_a_conversation_may_be_opened_where_a_first_turn_died")
class OpensNothingOverADeadFirstTurn(Store):
    def create(self, conversation_id: str | None = None, **kwargs: Any) -> StoredConversation:
        if conversation_id in self._transcripts:
            raise ConversationConflict(str(conversation_id))
        return super().create(conversation_id, **kwargs)


@breaks("test_a_conversation_may_be_opened_where_a_first_turn_died")
class LeavesAnOpenedConversationToTheDead(Store):
    def create(self, conversation_id: str | None = None, **kwargs: Any) -> StoredConversation:
        held = self._held.get(str(conversation_id))
        stored = super().create(conversation_id, **kwargs)
        if held is not None:
            self._held[stored.id] = held
        return stored


@breaks("test_a_message_of_usual_size_may_begin_a_turn")
class TakesShortMessagesAlone(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        message = kwargs.get("message")
        if message is not None and message.size > 65_535:
            raise TooLarge("The message is too long.")
        return super().reserve(conversation_id, **kwargs)


@breaks("test_a_second_turn_of_a_conversation_is_busy_at_once")
class CannotFindWhatItReserved(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        if conversation_id is not None and not kwargs.get("create"):
            self.load(conversation_id)
            if conversation_id in self._held:
                raise ConversationDoesNotExist(conversation_id)
        return super().reserve(conversation_id, **kwargs)
