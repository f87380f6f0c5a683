"""Stores that break one promise of the journal of a running turn each."""

from __future__ import annotations

from typing import Any

from agent_memory.exceptions import ConversationDoesNotExist
from agent_memory.journals import JournalEntry, interrupted_turn
from agent_memory.messages import Message, Turn
from agent_memory.records import (
    Reservation,
    StoredTurn,
)
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.stores.transcript import Transcript
from tests.testing.broken import breaks

Store = InMemoryConversationStore


@breaks("test_an_entry_in_the_journal_renews_and_is_refused_when_the_reservation_was_lost")
class RenewsNothingForAnEntry(Store):
    def journal(self, reservation: Reservation, entry: JournalEntry, seconds: float) -> bool:
        return super().journal(reservation, entry, 0)


@breaks("test_an_entry_in_the_journal_renews_and_is_refused_when_the_reservation_was_lost")
class RenewsForAMinuteAtLeast(Store):
    def journal(self, reservation: Reservation, entry: JournalEntry, seconds: float) -> bool:
        return super().journal(reservation, entry, max(60, seconds))


@breaks("test_an_entry_in_the_journal_renews_and_is_refused_when_the_reservation_was_lost")
class SaysAlwaysNoted(Store):
    def journal(self, reservation: Reservation, entry: JournalEntry, seconds: float) -> bool:
        return super().journal(reservation, entry, seconds) or True


@breaks("test_entries_are_no_part_of_the_conversation_while_the_turn_runs")
class ShowsEntriesAtOnce(Store):
    def load(self, conversation_id: str, **kwargs: Any) -> tuple[Message, ...]:
        loaded = super().load(conversation_id, **kwargs)
        kept = self._transcripts.get(conversation_id)
        if kept is not None and kept.journal:
            loaded += interrupted_turn(kept.journal)[1].messages
        return loaded


@breaks("test_entries_are_no_part_of_the_conversation_while_the_turn_runs")
class TakesItsTitleAtOnce(Store):
    def journal(self, reservation: Reservation, entry: JournalEntry, seconds: float) -> bool:
        kept = self._transcripts.get(reservation.conversation_id)
        if kept is not None and entry.heading is not None:
            kept.title = entry.heading.title
        return super().journal(reservation, entry, seconds)


@breaks("test_the_first_entry_reserves_a_conversation_yet_to_be")
class HidesAConversationThatWasReserved(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        kept = self._transcripts.get(str(conversation_id))
        if kept is not None and kept.opened_at is None and not kwargs.get("create"):
            raise ConversationDoesNotExist(kept.id)
        return super().reserve(conversation_id, **kwargs)


@breaks("test_the_first_entry_reserves_a_conversation_yet_to_be")
class NotesNothingOfAConversationYetToBe(Store):
    def journal(self, reservation: Reservation, entry: JournalEntry, seconds: float) -> bool:
        return reservation.new or super().journal(reservation, entry, seconds)


@breaks("test_the_first_entry_reserves_a_conversation_yet_to_be")
class OpensAConversationByAnEntry(Store):
    def journal(self, reservation: Reservation, entry: JournalEntry, seconds: float) -> bool:
        noted = super().journal(reservation, entry, seconds)
        kept = self._transcripts.get(reservation.conversation_id)
        if kept is not None and kept.opened_at is None:
            kept.open(self._tick())
        return noted


@breaks(
    "test_a_turn_that_is_appended_leaves_no_entries",
    "test_a_first_turn_that_is_appended_leaves_no_entries",
)
class KeepsEntriesOfWhatIsAppended(Store):
    def append(
        self, conversation: Any, turn: Turn, *, reservation: Reservation | None = None
    ) -> StoredTurn:
        kept = self._transcripts.get(reservation.conversation_id) if reservation else None
        entries = kept.journal if kept else []
        stored = super().append(conversation, turn, reservation=reservation)
        if kept is not None and entries:
            kept.journal, kept.journalled = entries, reservation
        return stored


@breaks(
    "test_a_turn_that_is_given_up_leaves_no_entries",
    "test_a_first_turn_that_is_given_up_leaves_neither_entries_nor_a_conversation",
)
class KeepsEntriesOfWhatIsGivenUp(Store):
    def release(self, reservation: Reservation) -> None:
        kept = self._transcripts.get(reservation.conversation_id)
        entries = kept.journal if kept else []
        super().release(reservation)
        if kept is not None and entries:
            kept.journal, kept.journalled = entries, reservation
            self._transcripts[kept.id] = kept


@breaks("test_a_first_turn_that_is_given_up_leaves_neither_entries_nor_a_conversation")
class OpensWhatIsGivenUp(Store):
    def release(self, reservation: Reservation) -> None:
        kept = self._transcripts.get(reservation.conversation_id)
        super().release(reservation)
        if kept is not None and reservation.journalled:
            kept.open(self._tick())
            self._transcripts[kept.id] = kept


class _NotesWhatIsLost(Store):
    """Notes an entry somewhere although its turn was lost, and says that it was."""

    def found(self, reservation: Reservation) -> Transcript | None:
        raise NotImplementedError

    def journal(self, reservation: Reservation, entry: JournalEntry, seconds: float) -> bool:
        if super().journal(reservation, entry, seconds):
            return True
        if (kept := self.found(reservation)) is not None:
            kept.note(entry, reservation)
        return False


@breaks(
    "test_an_entry_of_a_turn_that_was_overtaken_changes_nothing",
    "test_an_entry_of_a_turn_that_was_given_up_changes_nothing",
)
class NotesForWhoeverHolds(_NotesWhatIsLost):
    def found(self, reservation: Reservation) -> Transcript | None:
        return self._transcripts.get(reservation.conversation_id)


@breaks("test_clear_removes_entries_and_no_later_one_brings_them_back")
class ResurrectsByAnEntry(_NotesWhatIsLost):
    def found(self, reservation: Reservation) -> Transcript | None:
        name = reservation.conversation_id
        return self._transcripts.setdefault(name, Transcript(name))


@breaks("test_clear_removes_entries_and_no_later_one_brings_them_back")
class KeepsEntriesOfTheCleared(Store):
    def __init__(self) -> None:
        super().__init__()
        self.left: dict[str, Transcript] = {}

    def clear(self, conversation_id: str) -> None:
        kept = self._transcripts.get(conversation_id)
        super().clear(conversation_id)
        if kept is not None and kept.journal:
            self.left[conversation_id] = kept

    def append(self, conversation: Any, turn: Turn, **kwargs: Any) -> StoredTurn:
        stored = super().append(conversation, turn, **kwargs)
        if (left := self.left.pop(stored.conversation_id, None)) is not None:
            kept = self._transcripts[stored.conversation_id]
            kept.journal, kept.journalled = left.journal, left.journalled
        return stored


@breaks("test_a_conversation_that_was_opened_meanwhile_takes_no_first_entry")
class OverwritesByAFirstEntry(Store):
    def journal(self, reservation: Reservation, entry: JournalEntry, seconds: float) -> bool:
        if reservation.new:
            self._transcripts.pop(reservation.conversation_id, None)
        return super().journal(reservation, entry, seconds)
