"""Stores that break one promise of turns that come late each."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from agent_memory.exceptions import ConversationConflict
from agent_memory.journals import JournalEntry, interrupted_turn
from agent_memory.messages import Turn
from agent_memory.records import Heading, Reservation, StoredTurn, new_id
from agent_memory.stores.inmemory import InMemoryConversationStore
from tests.testing.broken import breaks

Store = InMemoryConversationStore


@breaks("test_a_stalled_worker_that_was_overtaken_gets_its_turn_back")
class TakesAFailedFormForTheSameTurn(Store):
    def append(
        self, conversation: Any, turn: Turn, *, reservation: Reservation | None = None
    ) -> StoredTurn:
        try:
            return super().append(conversation, turn, reservation=reservation)
        except ConversationConflict as conflict:
            if turn.status != "failed" or reservation is None:
                raise
            return StoredTurn(conflict.conversation_id, reservation.turn_id)


@breaks("test_a_stalled_worker_that_was_overtaken_gets_its_turn_back")
class LetsAStalledWorkerNoteOn(Store):
    def journal(self, reservation: Reservation, entry: JournalEntry, seconds: float) -> bool:
        return super().journal(reservation, entry, seconds) or reservation.journalled


@breaks("test_a_late_worker_that_nobody_overtook_goes_on")
class RefusesTheEntryOfALateWorker(Store):
    def journal(self, reservation: Reservation, entry: JournalEntry, seconds: float) -> bool:
        held = self._held.get(reservation.conversation_id)
        if held is not None and held.until <= time.monotonic():
            return False
        return super().journal(reservation, entry, seconds)


@breaks("test_a_late_worker_that_nobody_overtook_goes_on")
class WritesADeadTurnBesideTheLateOne(Store):
    def append(
        self, conversation: Any, turn: Turn, *, reservation: Reservation | None = None
    ) -> StoredTurn:
        kept = self._transcripts.get(Heading.of(conversation).id)
        if kept is not None and kept.journal and reservation is not None:
            held = self._held[kept.id]
            self._write(*interrupted_turn(kept.journal), replace(reservation, turn_id=new_id()))
            self._held[kept.id] = held
        return super().append(conversation, turn, reservation=reservation)


class _AppendsLateTurnsOtherwise(Store):
    """Does something else with a turn that comes without a reservation."""

    def late(self, heading: Heading, turn: Turn) -> StoredTurn | None:
        raise NotImplementedError

    def append(
        self, conversation: Any, turn: Turn, *, reservation: Reservation | None = None
    ) -> StoredTurn:
        heading = Heading.of(conversation)
        stored = self.late(heading, turn) if heading.turn_id and reservation is None else None
        return stored or super().append(conversation, turn, reservation=reservation)


@breaks("test_a_turn_that_could_not_be_stored_takes_the_place_of_what_was_recorded_of_it")
class AppendsALateTurnAtTheEnd(_AppendsLateTurnsOtherwise):
    def late(self, heading: Heading, turn: Turn) -> StoredTurn | None:
        return super().append(replace(heading, turn_id=""), turn)


@breaks("test_a_turn_that_could_not_be_stored_takes_the_place_of_what_was_recorded_of_it")
class RefusesALateTurnThatWasRecorded(_AppendsLateTurnsOtherwise):
    def late(self, heading: Heading, turn: Turn) -> StoredTurn | None:
        kept = self._transcripts.get(heading.id)
        if kept is not None and kept.find(heading.turn_id) is not None:
            raise ConversationConflict(heading.id, turn)
        return None


@breaks("test_a_turn_that_could_not_be_stored_takes_the_place_of_what_was_recorded_of_it")
class CountsALateTurnTwice(_AppendsLateTurnsOtherwise):
    def late(self, heading: Heading, turn: Turn) -> StoredTurn | None:
        kept = self._transcripts[heading.id]
        if (written := kept.find(heading.turn_id)) is not None and written.turn != turn:
            kept.usage += written.turn.usage
        return None


@breaks("test_a_turn_takes_the_place_of_nothing_else")
class OverwritesWhateverWasWritten(_AppendsLateTurnsOtherwise):
    def late(self, heading: Heading, turn: Turn) -> StoredTurn | None:
        kept = self._transcripts[heading.id]
        if (written := kept.find(heading.turn_id)) is None:
            return None
        kept.rewrite(written, turn, ended=self._tick())
        return written.stored


@breaks("test_a_turn_takes_the_place_of_nothing_else")
class TakesAnyFormForTheSameTurn(_AppendsLateTurnsOtherwise):
    def late(self, heading: Heading, turn: Turn) -> StoredTurn | None:
        written = self._transcripts[heading.id].find(heading.turn_id)
        died = written is not None and written.turn.error is not None
        if written is None or (died and written.turn.error.code == "Interrupted"):  # type: ignore[union-attr]  # a dead turn has one
            return None
        return written.stored


@breaks("test_a_turn_that_pauses_takes_the_place_of_nothing")
class PausesInThePast(_AppendsLateTurnsOtherwise):
    def late(self, heading: Heading, turn: Turn) -> StoredTurn | None:
        kept = self._transcripts[heading.id]
        written = kept.find(heading.turn_id)
        if written is None or turn.status != "paused":
            return None
        kept.rewrite(written, turn, ended=self._tick())
        return written.stored


# The rest of a turn that was paused.


@breaks("test_the_rest_of_a_turn_that_could_not_be_stored_is_appended_later")
class KnowsNoRestOfATurn(_AppendsLateTurnsOtherwise):
    def late(self, heading: Heading, turn: Turn) -> StoredTurn | None:
        if heading.settles:
            raise ConversationConflict(heading.id, turn)
        return None


@breaks("test_the_rest_of_a_turn_that_could_not_be_stored_is_appended_later")
class AppendsTheRestOfATurnBehindIt(_AppendsLateTurnsOtherwise):
    def late(self, heading: Heading, turn: Turn) -> StoredTurn | None:
        if heading.settles:
            return self._write(heading, turn, Reservation(heading.id, new_id()))
        return None


@breaks("test_the_rest_of_a_turn_that_was_given_up_is_a_conflict")
class SettlesWhateverIsPaused(_AppendsLateTurnsOtherwise):
    def late(self, heading: Heading, turn: Turn) -> StoredTurn | None:
        kept = self._transcripts.get(heading.id)
        if heading.settles and kept is not None and kept.paused is not None:
            return kept.settle(turn, ended=self._tick())
        return None


@breaks("test_the_rest_of_a_turn_that_was_given_up_is_a_conflict")
class AppendsTheRestOfNothing(_AppendsLateTurnsOtherwise):
    def late(self, heading: Heading, turn: Turn) -> StoredTurn | None:
        if heading.settles and heading.id not in self._transcripts:
            return super().append(replace(heading, settles=""), turn)
        return None
