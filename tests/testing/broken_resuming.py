"""Stores that break one promise of going on with a paused turn each."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from agent_memory.exceptions import (
    ApprovalNotResumable,
    ConversationConflict,
)
from agent_memory.journals import JournalEntry
from agent_memory.messages import Message, ToolCall, ToolResult, Turn
from agent_memory.records import PausedTurn, Reservation, StoredTurn
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.stores.transcript import Transcript
from tests.testing.broken import breaks
from tests.testing.broken_approvals import paused_in

Store = InMemoryConversationStore


class _ChangesResumes(Store):
    """Gives another turn to go on with than the one that is paused."""

    def change(self, paused: PausedTurn) -> PausedTurn:
        raise NotImplementedError

    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        reservation = super().reserve(conversation_id, **kwargs)
        if reservation.paused is not None:
            reservation.paused = self.change(reservation.paused)
        return reservation


class _JournalsOtherwise(Store):
    """Notes something else, or nothing, of a turn that is resumed."""

    def note(self, paused: Any, entry: JournalEntry) -> bool | None:
        raise NotImplementedError

    def journal(self, reservation: Reservation, entry: JournalEntry, seconds: float) -> bool:
        paused = paused_in(self, reservation.conversation_id)
        if paused is not None and self._is_token(reservation.conversation_id, reservation.turn_id):
            answer = self.note(paused, entry)
            if answer is not None:
                return answer
        return super().journal(reservation, entry, seconds)


# The right to go on.


@breaks("test_a_resume_gets_the_paused_turn_with_its_opaque_blocks")
class ForgetsOpaqueBlocks(_ChangesResumes):
    def change(self, paused: PausedTurn) -> PausedTurn:
        steps = tuple(step.model_copy(update={"replay": None}) for step in paused.turn.steps)
        return replace(paused, turn=paused.turn.model_copy(update={"steps": steps}))


@breaks("test_a_resume_gets_the_paused_turn_with_its_opaque_blocks")
class ResumesUnderTheIdOfTheTurn(_ChangesResumes):
    def change(self, paused: PausedTurn) -> PausedTurn:
        held = self._held[paused.stored.conversation_id]
        held.token = paused.stored.turn_id
        return paused

    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        reservation = super().reserve(conversation_id, **kwargs)
        if reservation.paused is not None:
            reservation.turn_id = reservation.paused.stored.turn_id
        return reservation


@breaks("test_a_resume_gets_the_paused_turn_with_its_opaque_blocks")
class NumbersStepsFromOne(_ChangesResumes):
    def change(self, paused: PausedTurn) -> PausedTurn:
        moved = (replace(each, step=each.step + 1) for each in paused.approvals)
        return replace(paused, approvals=tuple(moved))


@breaks("test_a_window_of_a_resume_ends_before_the_paused_turn")
class LoadsThePausedTurnForWhoeverResumes(Store):
    def load(
        self,
        conversation_id: str,
        *,
        keep_last_turns: int = 0,
        reservation: Reservation | None = None,
    ) -> tuple[Message, ...]:
        loaded = super().load(conversation_id, keep_last_turns=keep_last_turns)
        paused = None if reservation is None else reservation.paused
        return loaded if paused is None else (*loaded, *paused.turn.messages)


@breaks("test_nothing_is_resumed_where_nothing_is_paused")
class ResumesNothing(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        try:
            return super().reserve(conversation_id, **kwargs)
        except ApprovalNotResumable:
            return super().reserve(conversation_id, **{**kwargs, "resume": False})


@breaks("test_nothing_is_resumed_where_nothing_is_paused")
class HoldsWhatItDoesNotResume(Store):
    def _resume(self, transcript: Transcript, reservation: Reservation) -> None:
        if transcript.paused is None:
            self._held.pop(transcript.id, None)
            self._hold(reservation)
        super()._resume(transcript, reservation)


@breaks("test_a_turn_is_resumed_by_one_worker_at_a_time")
class LetsEveryWorkerResume(Store):
    def _resume(self, transcript: Transcript, reservation: Reservation) -> None:
        self._held.pop(transcript.id, None)
        super()._resume(transcript, reservation)


@breaks("test_a_resume_that_is_given_up_leaves_the_pause_as_it_was")
class DeniesWhatIsGivenUp(Store):
    def release(self, reservation: Reservation) -> None:
        super().release(reservation)
        if (paused := paused_in(self, reservation.conversation_id)) is not None:
            paused.approvals = tuple(
                replace(each, status="denied") if each.is_undecided else each
                for each in paused.approvals
            )


@breaks("test_a_resume_that_is_given_up_leaves_the_pause_as_it_was")
class DropsWhatIsGivenUp(Store):
    def release(self, reservation: Reservation) -> None:
        super().release(reservation)
        if paused_in(self, reservation.conversation_id) is not None:
            self._transcripts[reservation.conversation_id].discard(ended=self._tick())


@breaks("test_what_nobody_decided_in_time_has_expired_for_a_resume")
class LetsExpiredCallsWaitForAResume(_ChangesResumes):
    def change(self, paused: PausedTurn) -> PausedTurn:
        approvals = (
            replace(each, status="pending") if each.status == "expired" else each
            for each in paused.approvals
        )
        return replace(paused, approvals=tuple(approvals))


@breaks("test_what_nobody_decided_in_time_has_expired_for_a_resume")
class LetsDecidedCallsExpire(_ChangesResumes):
    def change(self, paused: PausedTurn) -> PausedTurn:
        approvals = (
            replace(each, status="expired") if each.asked.expires_at else each
            for each in paused.approvals
        )
        return replace(paused, approvals=tuple(approvals))


# Claims.


@breaks("test_an_approved_call_is_claimed_once")
class ClaimsAgain(_JournalsOtherwise):
    def note(self, paused: Any, entry: JournalEntry) -> bool | None:
        claimed = [each for each in paused.approvals if each.status in ("claimed", "done")]
        places = [(each.step, each.index) for each in claimed]
        again = isinstance(entry.value, ToolCall) and (entry.step, entry.index) in places
        return True if again else None


@breaks("test_an_approved_call_is_claimed_once", "test_a_claim_holds_the_conversation")
class OnlyRenewsForAClaim(Store):
    def journal(self, reservation: Reservation, entry: JournalEntry, seconds: float) -> bool:
        if isinstance(entry.value, ToolCall):
            return self.renew(reservation, 0)
        return super().journal(reservation, entry, seconds)


@breaks("test_a_call_that_nobody_approved_is_not_claimed")
class ClaimsWhatWasNotDenied(_JournalsOtherwise):
    def note(self, paused: Any, entry: JournalEntry) -> bool | None:
        if isinstance(entry.value, ToolCall):
            paused.approvals = tuple(
                replace(each, status="approved")
                if each.index == entry.index and each.status in ("pending", "expired")
                else each
                for each in paused.approvals
            )
        return None


@breaks("test_a_call_that_nobody_approved_is_not_claimed")
class ClaimsUnknownCalls(_JournalsOtherwise):
    def note(self, paused: Any, entry: JournalEntry) -> bool | None:
        places = [(each.step, each.index) for each in paused.approvals]
        unknown = (entry.step, entry.index) not in places
        return True if unknown and isinstance(entry.value, ToolCall) else None


@breaks("test_a_worker_that_was_overtaken_claims_and_settles_nothing")
class LetsAnOvertakenWorkerClaim(Store):
    def journal(self, reservation: Reservation, entry: JournalEntry, seconds: float) -> bool:
        kept = self._transcripts.get(reservation.conversation_id)
        if kept is not None and kept.paused is not None and isinstance(entry.value, ToolCall):
            return kept.note(entry, reservation)
        return super().journal(reservation, entry, seconds)


@breaks("test_a_worker_that_was_overtaken_claims_and_settles_nothing")
class LosesTheTurnThatItDoesNotSettle(Store):
    def settle(self, conversation: Any, turn: Turn | None, **kwargs: Any) -> StoredTurn | None:
        try:
            return super().settle(conversation, turn, **kwargs)
        except ConversationConflict as conflict:
            conflict.turn = None
            raise


@breaks("test_a_late_worker_that_nobody_overtook_settles")
class RefusesALateSettling(Store):
    def settle(
        self, conversation: Any, turn: Turn | None, *, reservation: Reservation
    ) -> StoredTurn | None:
        held = self._held.get(reservation.conversation_id)
        if held is not None and held.until <= time.monotonic():
            raise ConversationConflict(reservation.conversation_id, turn)
        return super().settle(conversation, turn, reservation=reservation)


@breaks("test_clear_wins_over_a_resume")
class SettlesWhatWasCleared(Store):
    def __init__(self) -> None:
        super().__init__()
        self.left: dict[str, Transcript] = {}

    def clear(self, conversation_id: str) -> None:
        if paused_in(self, conversation_id) is not None:
            self.left[conversation_id] = self._transcripts[conversation_id]
        super().clear(conversation_id)

    def settle(
        self, conversation: Any, turn: Turn | None, *, reservation: Reservation
    ) -> StoredTurn | None:
        if (left := self.left.pop(reservation.conversation_id, None)) is not None:
            self._transcripts[left.id] = left
            self._hold(reservation)
        return super().settle(conversation, turn, reservation=reservation)


@breaks("test_clear_wins_over_a_resume")
class KeepsClaimsOfTheCleared(Store):
    def journal(self, reservation: Reservation, entry: JournalEntry, seconds: float) -> bool:
        noted = super().journal(reservation, entry, seconds)
        return noted or (reservation.journalled and not isinstance(entry.value, ToolResult))
