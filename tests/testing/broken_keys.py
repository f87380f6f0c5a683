"""Stores that break one promise of idempotency keys each."""

from __future__ import annotations

import copy
import unicodedata
from dataclasses import replace
from typing import Any

from agent_memory.exceptions import (
    ConversationBusy,
    ConversationConflict,
    TurnFailed,
)
from agent_memory.messages import Message, Turn
from agent_memory.records import Answered, Once, Reservation, StoredTurn, new_id
from agent_memory.stores.inmemory import InMemoryConversationStore
from tests.testing.broken import breaks

Store = InMemoryConversationStore


class _ChangesKeys(Store):
    """Reserves under another key than it is asked."""

    def change(self, once: Once | None, message: Message | None, new: bool) -> Once | None:
        raise NotImplementedError

    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        once, message = kwargs.get("once"), kwargs.get("message")
        kwargs["once"] = self.change(once, message, conversation_id is None)
        return super().reserve(conversation_id, **kwargs)


class _ChangesAnswers(Store):
    """Gives another answer than the one that is stored."""

    def change(self, answered: Answered, conversation_id: str, once: Once) -> Answered | None:
        raise NotImplementedError

    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        reservation = super().reserve(conversation_id, **kwargs)
        if reservation.answered is not None:
            assert conversation_id is not None
            reservation.answered = self.change(
                reservation.answered, conversation_id, kwargs["once"]
            )
        return reservation


# What was stored.


@breaks(
    "test_a_key_finds_the_turn_that_it_has_and_where_it_was_written",
    "test_a_running_turn_says_whether_it_has_the_same_key",
)
class KnowsNoKeys(_ChangesKeys):
    def change(self, once: Once | None, message: Message | None, new: bool) -> Once | None:
        return None


@breaks("test_a_key_finds_the_turn_that_it_has_and_where_it_was_written")
class KeepsKeysInOneProcess(Store):
    def reopened(self) -> Store:
        other = copy.copy(self)
        other._transcripts = {
            name: replace(kept, keys={}) for name, kept in self._transcripts.items()
        }
        return other


@breaks("test_a_key_finds_the_turn_that_it_has_and_where_it_was_written")
class AnswersWithTheLastTurn(_ChangesAnswers):
    def change(self, answered: Answered, conversation_id: str, once: Once) -> Answered | None:
        return replace(answered, turn=self._transcripts[conversation_id].turns[-1].turn)


@breaks("test_a_key_finds_the_turn_that_it_has_and_where_it_was_written")
class DoesNotKnowWhereItWroteTheTurn(_ChangesAnswers):
    def change(self, answered: Answered, conversation_id: str, once: Once) -> Answered | None:
        return replace(answered, stored=replace(answered.stored, user_message_id=None))


@breaks("test_a_turn_that_is_found_holds_and_changes_nothing")
class HoldsWhatItAnswers(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        reservation = super().reserve(conversation_id, **kwargs)
        return self._hold(reservation) if reservation.answered else reservation


@breaks("test_a_turn_that_is_found_holds_and_changes_nothing")
class TakesAnAnswerForActivity(_ChangesAnswers):
    def change(self, answered: Answered, conversation_id: str, once: Once) -> Answered | None:
        self._transcripts[conversation_id].last_activity = self._tick()
        return answered


@breaks("test_a_key_is_answered_while_another_turn_runs")
class IsBusyBeforeItAnswers(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        if held := self._held.get(str(conversation_id)):
            raise ConversationBusy(str(conversation_id), since=held.since, retry_after=1)
        return super().reserve(conversation_id, **kwargs)


@breaks("test_the_first_turn_of_a_conversation_keeps_its_key")
class ForgetsTheKeyOfAConversationYetToBe(_ChangesKeys):
    def change(self, once: Once | None, message: Message | None, new: bool) -> Once | None:
        return None if new else once


@breaks("test_the_first_turn_of_a_conversation_keeps_its_key")
class ForgetsTheKeyOfAPlaceholder(Store):
    def append(
        self, conversation: Any, turn: Turn, *, reservation: Reservation | None = None
    ) -> StoredTurn:
        if reservation is not None and reservation.placeholder:
            reservation = replace(reservation, once=None)
        return super().append(conversation, turn, reservation=reservation)


@breaks("test_a_failed_turn_is_raised_for_its_key_and_not_run_again")
class RunsAFailedTurnAgain(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        try:
            return super().reserve(conversation_id, **kwargs)
        except TurnFailed:
            return super().reserve(conversation_id, **{**kwargs, "once": None})


@breaks("test_a_failed_turn_is_raised_for_its_key_and_not_run_again")
class AnswersWithAFailedTurn(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        try:
            return super().reserve(conversation_id, **kwargs)
        except TurnFailed as failed:
            assert conversation_id is not None
            answered = Answered(failed.turn, StoredTurn(conversation_id, "turn"))
            return Reservation(conversation_id, "token", answered=answered)


@breaks("test_what_a_caller_does_to_a_turn_that_is_found_changes_nothing_stored")
class SharesItsAnswers(_ChangesAnswers):
    def change(self, answered: Answered, conversation_id: str, once: Once) -> Answered | None:
        return replace(answered, turn=self._transcripts[conversation_id].keys[once.key].turn)


@breaks("test_what_a_caller_does_to_a_turn_that_is_found_changes_nothing_stored")
class SharesItsFailures(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        try:
            return super().reserve(conversation_id, **kwargs)
        except TurnFailed as failed:
            kept = self._transcripts[str(conversation_id)].keys
            failed.turn = kept[kwargs["once"].key].turn
            raise


# What was not.


class _ChangesBusy(Store):
    def change(self, busy: ConversationBusy, running: str | None, asked: str | None) -> bool:
        raise NotImplementedError

    def _hold(self, reservation: Reservation) -> Reservation:
        held = self._held.get(reservation.conversation_id)
        try:
            return super()._hold(reservation)
        except ConversationBusy as busy:
            assert held is not None
            asked = reservation.once and reservation.once.key
            busy.same_message = self.change(busy, held.key, asked)
            raise


@breaks("test_a_running_turn_says_whether_it_has_the_same_key")
class TakesNoKeyForAKey(_ChangesBusy):
    def change(self, busy: ConversationBusy, running: str | None, asked: str | None) -> bool:
        return running == asked


@breaks("test_a_running_turn_says_whether_it_has_the_same_key")
class TakesAnyKeyForTheSame(_ChangesBusy):
    def change(self, busy: ConversationBusy, running: str | None, asked: str | None) -> bool:
        return None not in (running, asked)


@breaks("test_a_key_is_that_of_the_turn_that_runs_and_of_none_before")
class KeepsTheKeyOfTheDead(Store):
    def _hold(self, reservation: Reservation) -> Reservation:
        before = self._held.get(reservation.conversation_id)
        super()._hold(reservation)
        if before is not None and before.key:
            self._held[reservation.conversation_id].key = before.key
        return reservation


@breaks("test_a_key_of_which_nothing_was_stored_is_free_again")
class UsesAKeyUpAtOnce(Store):
    def __init__(self) -> None:
        super().__init__()
        self.used: set[tuple[str | None, str]] = set()

    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        reservation = super().reserve(conversation_id, **kwargs)
        once = kwargs.get("once")
        if once is not None and reservation.answered is None:
            if (conversation_id, once.key) in self.used:
                raise ConversationConflict(reservation.conversation_id)
            self.used.add((conversation_id, once.key))
        return reservation


@breaks("test_a_cleared_conversation_has_no_keys")
class KeepsTheKeysOfTheCleared(Store):
    def __init__(self) -> None:
        super().__init__()
        self.left: dict[str, Any] = {}

    def clear(self, conversation_id: str) -> None:
        if kept := self._transcripts.get(conversation_id):
            self.left[conversation_id] = kept.keys
        super().clear(conversation_id)

    def append(self, conversation: Any, turn: Turn, **kwargs: Any) -> StoredTurn:
        stored = super().append(conversation, turn, **kwargs)
        kept = self._transcripts[stored.conversation_id]
        kept.keys.update(self.left.pop(stored.conversation_id, {}))
        return stored


# Which message, which conversation, which key.


@breaks("test_a_key_stands_for_one_message_alone")
class LooksAtNoMessage(_ChangesKeys):
    def change(self, once: Once | None, message: Message | None, new: bool) -> Once | None:
        return once and replace(once, fingerprint="same")


@breaks("test_a_key_stands_for_one_message_alone")
class LooksAtTheTextAlone(_ChangesKeys):
    def change(self, once: Once | None, message: Message | None, new: bool) -> Once | None:
        return once and replace(once, fingerprint=message.text if message else "")


@breaks("test_a_key_stands_for_one_message_alone")
class LooksAtTheWayAMessageWasGiven(_ChangesKeys):
    def change(self, once: Once | None, message: Message | None, new: bool) -> Once | None:
        return once and replace(once, fingerprint=new_id())


@breaks("test_a_key_stands_for_one_message_alone")
class TellsOfALostReservation(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        try:
            return super().reserve(conversation_id, **kwargs)
        except ConversationConflict as conflict:
            raise ConversationConflict(conflict.conversation_id) from None


@breaks("test_a_key_stands_for_one_message_alone")
class RefusesAnotherMessageOnlyWhenIdle(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        try:
            return super().reserve(conversation_id, **kwargs)
        except ConversationConflict as conflict:
            self._hold(Reservation(conflict.conversation_id, "token"))
            self._held.pop(conflict.conversation_id)
            raise


@breaks("test_each_conversation_has_keys_of_its_own")
class SharesKeys(Store):
    def append(self, conversation: Any, turn: Turn, **kwargs: Any) -> StoredTurn:
        stored = super().append(conversation, turn, **kwargs)
        keys = self._transcripts[stored.conversation_id].keys
        for kept in self._transcripts.values():
            kept.keys |= keys
        return stored

    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        reservation = super().reserve(conversation_id, **kwargs)
        if reservation.once is not None:
            for kept in self._transcripts.values():
                reservation.answered = reservation.answered or kept.answered(reservation.once)
        return reservation


@breaks("test_keys_that_look_alike_are_keys_of_their_own")
class StripsKeys(_ChangesKeys):
    def change(self, once: Once | None, message: Message | None, new: bool) -> Once | None:
        return once and replace(once, key=once.key.strip())


@breaks("test_keys_that_look_alike_are_keys_of_their_own")
class LowercasesKeys(_ChangesKeys):
    def change(self, once: Once | None, message: Message | None, new: bool) -> Once | None:
        return once and replace(once, key=once.key.lower())


@breaks("test_keys_that_look_alike_are_keys_of_their_own")
class NormalisesKeys(_ChangesKeys):
    def change(self, once: Once | None, message: Message | None, new: bool) -> Once | None:
        return once and replace(once, key=unicodedata.normalize("NFC", once.key))


@breaks("test_two_turns_without_a_key_are_two_turns")
class TakesAnEqualMessageForTheSame(_ChangesKeys):
    def change(self, once: Once | None, message: Message | None, new: bool) -> Once | None:
        return once or (message and Once.of("none", message))


@breaks("test_a_foreign_conversation_never_tells_of_its_keys")
class TellsStrangersOfItsKeys(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        if kept := self._transcripts.get(str(conversation_id)):
            kept.answered(kwargs.get("once"))
        return super().reserve(conversation_id, **kwargs)


@breaks("test_a_foreign_conversation_never_tells_of_its_keys")
class TellsStrangersOfARunningKey(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        once, held = kwargs.get("once"), self._held.get(str(conversation_id))
        if once is not None and held is not None and held.key == once.key:
            self._hold(Reservation(str(conversation_id), "token", once=once))
        return super().reserve(conversation_id, **kwargs)
