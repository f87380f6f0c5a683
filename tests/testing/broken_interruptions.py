"""Stores that break one promise of what a dead worker leaves each."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

from agent_memory.exceptions import ConversationDoesNotExist
from agent_memory.journals import JournalEntry, interrupted_turn
from agent_memory.messages import Step, ToolCall, ToolResult, Turn, Usage
from agent_memory.records import (
    Heading,
    Reservation,
    StoredTurn,
)
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.stores.transcript import Transcript
from tests.testing.broken import breaks
from tests.testing.broken_histories import changed

Store = InMemoryConversationStore
Dead = tuple[Heading, Turn, Reservation]


class _ChangesTheDead(Store):
    """Records something else than what a dead worker noted."""

    def change(self, heading: Heading, turn: Turn, dead: Reservation) -> Dead:
        raise NotImplementedError

    def _bury(self, transcript: Transcript, reservation: Reservation) -> None:
        if transcript.journalled is not None:
            self._hold(reservation)
            heading, turn = interrupted_turn(transcript.journal)
            self._write(*self.change(heading, turn, transcript.journalled))


class _ChangesSteps(_ChangesTheDead):
    def step(self, step: Step) -> Step:
        raise NotImplementedError

    def change(self, heading: Heading, turn: Turn, dead: Reservation) -> Dead:
        steps = tuple(map(self.step, turn.steps))
        return heading, turn.model_copy(update={"steps": steps}), dead


# What is recorded.


@breaks(
    "test_a_dead_turn_is_recorded_as_failed_with_the_steps_that_it_noted",
    "test_a_dead_first_turn_that_noted_something_becomes_a_conversation",
)
class ForgetsTheDead(Store):
    def _bury(self, transcript: Transcript, reservation: Reservation) -> None:
        if transcript.journalled is not None:
            self._hold(reservation)
            self._held.pop(transcript.id)
            transcript.drop_journal()


@breaks("test_a_dead_turn_is_recorded_as_failed_with_the_steps_that_it_noted")
class RecordsTheFirstStepAlone(_ChangesTheDead):
    def change(self, heading: Heading, turn: Turn, dead: Reservation) -> Dead:
        return heading, turn.model_copy(update={"steps": turn.steps[:1]}), dead


@breaks("test_a_dead_turn_is_recorded_as_failed_with_the_steps_that_it_noted")
class DoesNotSayWhatTheDeadDiedOf(_ChangesTheDead):
    def change(self, heading: Heading, turn: Turn, dead: Reservation) -> Dead:
        return heading, turn.model_copy(update={"error": None}), dead


@breaks("test_calls_that_were_not_answered_are_told_as_interrupted")
class RecordsTheDeadAsCompleted(_ChangesTheDead):
    def change(self, heading: Heading, turn: Turn, dead: Reservation) -> Dead:
        return heading, turn.model_copy(update={"status": "completed"}), dead


@breaks("test_calls_that_were_not_answered_are_told_as_interrupted")
class DropsCallsThatWereNotAnswered(_ChangesSteps):
    def step(self, step: Step) -> Step:
        items = (i for i in step.items if not isinstance(i, ToolCall) or i.result is not None)
        return step.model_copy(update={"items": tuple(items)})


@breaks("test_results_are_found_on_their_calls_in_whatever_order_they_came")
class NumbersResultsAsTheyCome(Store):
    def journal(self, reservation: Reservation, entry: JournalEntry, seconds: float) -> bool:
        kept = self._transcripts.get(reservation.conversation_id)
        if kept is not None and entry.index >= 0:
            came = [noted for noted in kept.journal if noted.step == entry.step]
            entry = replace(entry, index=len(came) - 1)
        return super().journal(reservation, entry, seconds)


@breaks("test_results_are_found_on_their_calls_in_whatever_order_they_came")
class DropsResultsThatAreNull(_ChangesSteps):
    def step(self, step: Step) -> Step:
        items = (
            item.model_copy(update={"result": None})
            if isinstance(item, ToolCall) and item.result == ToolResult()
            else item
            for item in step.items
        )
        return step.model_copy(update={"items": tuple(items)})


@breaks("test_results_are_found_on_their_calls_in_whatever_order_they_came")
class KeepsTheValueOfAResultAlone(Store):
    def journal(self, reservation: Reservation, entry: JournalEntry, seconds: float) -> bool:
        if isinstance(entry.value, ToolResult):
            entry = replace(entry, value=ToolResult(value=entry.value.value))
        return super().journal(reservation, entry, seconds)


@breaks("test_every_text_name_and_number_of_a_dead_turn_comes_back_equal")
class ReplacesSurrogatesOfTheDead(_ChangesTheDead):
    def change(self, heading: Heading, turn: Turn, dead: Reservation) -> Dead:
        return heading, changed(turn, lambda text: text.replace("\\ud800", "\\ufffd")), dead


@breaks("test_every_text_name_and_number_of_a_dead_turn_comes_back_equal")
class SortsTheKeysOfTheDead(_ChangesTheDead):
    def change(self, heading: Heading, turn: Turn, dead: Reservation) -> Dead:
        return heading, changed(turn, lambda t: json.dumps(json.loads(t), sort_keys=True)), dead


@breaks("test_what_a_caller_does_to_an_entry_given_changes_nothing_stored")
class SharesItsEntries(Store):
    def journal(self, reservation: Reservation, entry: JournalEntry, seconds: float) -> bool:
        noted = super().journal(reservation, entry, seconds)
        if noted:
            self._transcripts[reservation.conversation_id].journal[-1] = entry
        return noted


@breaks("test_a_dead_turn_stands_in_its_place_without_a_gap_and_counts")
class LeavesAGapBesideTheDead(Store):
    def _bury(self, transcript: Transcript, reservation: Reservation) -> None:
        before = len(transcript.messages)
        super()._bury(transcript, reservation)
        transcript.messages[before:] = [
            replace(message, position=message.position + 1)
            for message in transcript.messages[before:]
        ]


@breaks("test_a_dead_turn_stands_in_its_place_without_a_gap_and_counts")
class CountsNoTokensOfTheDead(_ChangesSteps):
    def step(self, step: Step) -> Step:
        return step.model_copy(update={"usage": Usage()})


@breaks("test_a_dead_turn_is_recorded_once")
class RecordsTheDeadAgain(Store):
    def _bury(self, transcript: Transcript, reservation: Reservation) -> None:
        entries, dead = transcript.journal, transcript.journalled
        super()._bury(transcript, reservation)
        transcript.journal, transcript.journalled = entries, dead


@breaks("test_whoever_records_a_dead_turn_is_told_of_it")
class TellsNobodyOfTheDead(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        return replace(super().reserve(conversation_id, **kwargs), buried=None)


@breaks("test_whoever_records_a_dead_turn_is_told_of_it")
class TellsOfTheDeadUnderAnotherId(Store):
    def _bury(self, transcript: Transcript, reservation: Reservation) -> None:
        super()._bury(transcript, reservation)
        if (buried := reservation.buried) is not None:
            stored = replace(buried.stored, turn_id=reservation.turn_id)
            reservation.buried = replace(buried, stored=stored)


@breaks("test_any_worker_finds_a_dead_turn")
class KeepsTheJournalInOneProcess(Store):
    def reopened(self) -> Store:
        other = copy.copy(self)
        other._transcripts = {
            name: replace(kept, journal=[], journalled=None)
            for name, kept in self._transcripts.items()
        }
        return other


@breaks("test_append_without_a_reservation_finds_a_dead_turn_too")
class AppendsOverTheDead(Store):
    def append(
        self, conversation: Any, turn: Turn, *, reservation: Reservation | None = None
    ) -> StoredTurn:
        kept = self._transcripts.get(Heading.of(conversation).id)
        if kept is not None and reservation is None:
            kept.drop_journal()
        return super().append(conversation, turn, reservation=reservation)


# Whose it was.


@breaks("test_a_dead_turn_tells_who_spoke_and_to_which_agent")
class TakesTheOwnerForTheSpeaker(_ChangesTheDead):
    def change(self, heading: Heading, turn: Turn, dead: Reservation) -> Dead:
        owner = self._transcripts[heading.id].participant
        return replace(heading, participant=owner), turn, dead


@breaks("test_a_dead_turn_tells_who_spoke_and_to_which_agent")
class ForgetsTheAgentOfTheDead(_ChangesTheDead):
    def change(self, heading: Heading, turn: Turn, dead: Reservation) -> Dead:
        return replace(heading, agent=""), turn, dead


@breaks("test_a_dead_turn_keeps_its_key")
class ForgetsTheKeyOfTheDead(_ChangesTheDead):
    def change(self, heading: Heading, turn: Turn, dead: Reservation) -> Dead:
        return heading, turn, replace(dead, once=None)


@breaks("test_a_dead_turn_gives_its_title_to_a_conversation_that_has_none")
class ForgetsTheTitleOfTheDead(_ChangesTheDead):
    def change(self, heading: Heading, turn: Turn, dead: Reservation) -> Dead:
        return replace(heading, title="", title_source=""), turn, dead


@breaks("test_a_dead_turn_gives_its_title_to_a_conversation_that_has_none")
class TakesTheTitleOfTheDeadInstead(_ChangesTheDead):
    def change(self, heading: Heading, turn: Turn, dead: Reservation) -> Dead:
        self._transcripts[heading.id].title = heading.title
        return heading, turn, dead


# First turns.


@breaks("test_a_dead_first_turn_that_noted_something_becomes_a_conversation")
class DropsADeadFirstTurn(Store):
    def _living(self, conversation_id: str) -> Transcript | None:
        return self._opened(conversation_id) or (
            super()._living(conversation_id) if self._is_held(conversation_id) else None
        )


@breaks("test_a_dead_first_turn_that_noted_something_becomes_a_conversation")
class SaysThatTheNextTurnOpensIt(Store):
    def append(
        self, conversation: Any, turn: Turn, *, reservation: Reservation | None = None
    ) -> StoredTurn:
        stored = super().append(conversation, turn, reservation=reservation)
        return replace(stored, created=len(self._transcripts[stored.conversation_id].turns) < 3)


@breaks("test_a_dead_first_turn_that_noted_something_is_still_its_speakers")
class GivesADeadFirstTurnToAnybody(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        kept = self._transcripts.get(str(conversation_id))
        if kept is not None and kept.opened_at is None and not self._is_held(kept.id):
            kwargs["must_own"] = False
        return super().reserve(conversation_id, **kwargs)


@breaks("test_a_dead_first_turn_that_noted_something_is_still_its_speakers")
class HidesADeadFirstTurnFromItsSpeaker(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        kept = self._transcripts.get(str(conversation_id))
        if kwargs.get("must_own") and kept is not None and kept.opened_at is None:
            raise ConversationDoesNotExist(kept.id)
        return super().reserve(conversation_id, **kwargs)
