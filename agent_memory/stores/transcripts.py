"""One turn at a time, over conversations that this process holds as values."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from agent_memory.approvals import Decisions, PendingApproval
from agent_memory.exceptions import ConversationConflict, ConversationDoesNotExist
from agent_memory.journals import JournalEntry, interrupted_turn
from agent_memory.messages import Turn
from agent_memory.participants import Participant
from agent_memory.records import (
    Answered,
    Heading,
    Reservation,
    StoredTurn,
    check_conversation_id,
    new_id,
)
from agent_memory.signals import approval_decided
from agent_memory.stores import pauses
from agent_memory.stores.base import ConversationStore
from agent_memory.stores.holding import Wanted
from agent_memory.stores.transcript import Transcript


class TranscriptStore(ConversationStore):
    """
    Base of a store that holds its conversations as transcripts: turns and their pauses.

    Every change is made under one lock.
    """

    append_ends_reservation = True

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._transcripts: dict[str, Transcript] = {}
        self._now = datetime.min.replace(tzinfo=UTC)

    @contextmanager
    def working_on(self, conversation_id: str) -> Iterator[None]:
        """Have a conversation as it is, and nobody else change it, until the end of the block."""
        with self._lock:
            yield

    def new_transcript(
        self, conversation_id: str, participant: Participant | None, agent: str
    ) -> Transcript:
        return Transcript(conversation_id, participant, agent)

    # Reserving.

    def _reserve(self, wanted: Wanted) -> Reservation:
        heading, conversation_id = wanted.heading, wanted.heading.id
        reservation = Reservation(conversation_id, new_id(), once=wanted.once)
        if wanted.new and not wanted.resume:
            reservation.new, reservation.next_position = True, 0
            reservation.participant = heading.participant
            return reservation
        with self.working_on(conversation_id):
            transcript = self._living(conversation_id)
            if transcript is None and wanted.create:
                transcript = self.new_transcript(
                    conversation_id, heading.participant, heading.agent
                )
            if (
                transcript is None
                or (transcript.is_hidden and not wanted.create)
                or (wanted.must_own and transcript.participant != heading.participant)
            ):
                raise ConversationDoesNotExist(conversation_id)
            if wanted.resume:
                self._resume(transcript, reservation)
            else:
                self._begin(transcript, reservation)
            if reservation.answered is None:
                reservation.placeholder = transcript.opened_at is None
                reservation.participant = transcript.participant
                reservation.title_source = transcript.title_source
                self._transcripts[conversation_id] = transcript
        return reservation

    def _begin(self, transcript: Transcript, reservation: Reservation) -> None:
        """Hold a conversation for its next turn, or tell of the turn that the key has."""
        reservation.answered = transcript.answered(reservation.once)
        if reservation.answered is None and transcript.paused is None:
            self._bury(transcript, reservation)
            reservation.answered = transcript.answered(reservation.once)
        if reservation.answered is not None:
            return
        ended = transcript.refused(datetime.now(UTC))
        self._hold(reservation)
        if ended is not None:
            transcript.settle(ended, ended=self._tick())
        reservation.next_position = transcript.next_position

    def _resume(self, transcript: Transcript, reservation: Reservation) -> None:
        """Hold a conversation for the turn that is paused."""
        if transcript.paused is None:
            raise pauses.not_resumable(transcript.id)
        self._hold(reservation)
        reservation.paused = transcript.resume(self._tick())
        reservation.next_position = transcript.next_position - 2

    def _bury(self, transcript: Transcript, reservation: Reservation) -> None:
        """
        Make a failed turn of what a dead worker journalled, for whoever comes next.

        Raises ``ConversationBusy`` while it is alive.
        """
        if transcript.journalled is not None:
            self._hold(reservation)
            reservation.buried = copy.deepcopy(self._record(transcript, transcript.journalled))

    def _record(self, transcript: Transcript, journalled: Reservation) -> Answered:
        heading, turn = interrupted_turn(transcript.journal)
        return Answered(turn, self._write(heading, turn, journalled))

    def _cut_off(self, transcript: Transcript) -> None:
        """End the turn that runs, as if its worker had died."""
        if transcript.paused is not None:
            transcript.fold(self._tick())
        elif transcript.journalled is not None:
            self._record(transcript, transcript.journalled)
        elif transcript.opened_at is None:
            del self._transcripts[transcript.id]
        self._held.pop(transcript.id, None)

    def renew(self, reservation: Reservation, seconds: float) -> bool:
        with self.working_on(reservation.conversation_id):
            return super().renew(reservation, seconds)

    def release(self, reservation: Reservation) -> None:
        conversation_id = reservation.conversation_id
        with self.working_on(conversation_id):
            if not self._is_token(conversation_id, reservation.turn_id):
                return
            transcript = self._transcripts[conversation_id]
            if transcript.paused is not None and transcript.journal:
                self.renew(reservation, 0)  # what it did is for the next one to find
                return
            del self._held[conversation_id]
            transcript.drop_journal()
            if transcript.opened_at is None:
                del self._transcripts[conversation_id]

    def journal(self, reservation: Reservation, entry: JournalEntry, seconds: float) -> bool:
        conversation_id = reservation.conversation_id
        with self.working_on(conversation_id):
            if reservation.new:
                heading = entry.heading
                if heading is None or conversation_id in self._transcripts:
                    return False
                self._transcripts[conversation_id] = self.new_transcript(
                    conversation_id, heading.participant, heading.agent
                )
                self._hold(reservation)
                reservation.new, reservation.placeholder = False, True
            if not self.renew(reservation, seconds):
                return False
            noted = self._transcripts[conversation_id].note(copy.deepcopy(entry), reservation)
            reservation.journalled = reservation.journalled or noted
        return noted

    # Writing.

    def append(
        self, conversation: Heading | str, turn: Turn, *, reservation: Reservation | None = None
    ) -> StoredTurn:
        heading = Heading.of(conversation)
        heading = replace(heading, participant=self.participant_of(heading.participant))
        turn = turn.model_copy(deep=True)
        with self.working_on(heading.id):
            if reservation is None:
                return self._append_directly(heading, turn)
            pauses.check_appends(reservation, turn)
            if not self._may_append(reservation, heading.id):
                raise ConversationConflict(heading.id, turn)
            return self._write(heading, turn, reservation)

    def _append_directly(self, heading: Heading, turn: Turn) -> StoredTurn:
        if heading.turn_id:  # a turn that could not be stored holds what it noted itself
            self.release(Reservation(heading.id, heading.turn_id))
        transcript = self._transcripts.get(heading.id)
        if heading.settles:
            if transcript is None or not transcript.is_paused_in(heading.settles):
                raise ConversationConflict(heading.id, turn)
            taken = self.reserve(heading.id, resume=True)
            stored = self.settle(heading, turn, reservation=taken)
            assert stored is not None
            return stored
        if transcript is not None and (written := transcript.find(heading.turn_id)):
            return transcript.finish(written, turn, ended=self._tick())
        taken = self.reserve(
            heading.id, participant=heading.participant, agent=heading.agent, create=True
        )
        try:
            named = replace(taken, turn_id=heading.turn_id or taken.turn_id, once=heading.once)
            return self._write(heading, turn, named)
        except BaseException:
            self.release(taken)
            raise

    def _write(self, heading: Heading, turn: Turn, reservation: Reservation) -> StoredTurn:
        transcript = self._transcripts.get(heading.id) or self.new_transcript(
            heading.id, heading.participant, heading.agent
        )
        ended = self._tick()
        number = round(ended.timestamp() * 1_000_000)
        stored = transcript.add(turn, heading, reservation, ended=ended, number=number)
        self._transcripts[heading.id] = transcript
        self._held.pop(heading.id, None)
        return stored

    # Turns that wait for a person.

    def pending_approvals_for(self, conversation_id: str) -> tuple[PendingApproval, ...]:
        check_conversation_id(conversation_id)
        with self.working_on(conversation_id):
            transcript = self._transcripts.get(conversation_id)
            return () if transcript is None else transcript.pending()

    def decide(
        self,
        conversation_id: str,
        decisions: Decisions,
        *,
        decided_by: Any = None,
        note: str = "",
    ) -> tuple[PendingApproval, ...]:
        check_conversation_id(conversation_id)
        by, note = self.participant_of(decided_by), pauses.check_note(note)
        with self.working_on(conversation_id):
            transcript = self._opened(conversation_id)
            if transcript is None:
                raise ConversationDoesNotExist(conversation_id)
            decided = transcript.decide(decisions, datetime.now(UTC), by=by, note=note)
            waiting = transcript.pending()
        for approval in decided:
            approval_decided.send_robust(
                type(self), conversation_id=conversation_id, approval=approval
            )
        return waiting

    def settle(
        self, conversation: Heading | str, turn: Turn | None, *, reservation: Reservation
    ) -> StoredTurn | None:
        heading = Heading.of(conversation)
        turn = None if turn is None else turn.model_copy(deep=True)
        with self.working_on(heading.id):
            transcript = self._transcripts.get(heading.id)
            held = self._is_token(heading.id, reservation.turn_id)
            if transcript is None or transcript.paused is None or not held:
                raise ConversationConflict(heading.id, turn)
            if turn is None:
                stored = transcript.discard(ended=self._tick())
            else:
                stored = transcript.settle(turn, heading.approvals, ended=self._tick())
            del self._held[heading.id]
        return stored

    # Who holds what.

    def _may_append(self, reservation: Reservation, conversation_id: str) -> bool:
        if reservation.new:
            return (
                reservation.conversation_id == conversation_id
                and conversation_id not in self._transcripts
            )
        return self._is_token(conversation_id, reservation.turn_id)

    def _is_token(self, conversation_id: str, turn_id: str) -> bool:
        held = self._held.get(conversation_id)
        return held is not None and held.token == turn_id

    def _is_held(self, conversation_id: str) -> bool:
        held = self._held.get(conversation_id)
        return held is not None and held.until > self._clock()

    def _opened(self, conversation_id: str) -> Transcript | None:
        """Return a conversation that is no placeholder."""
        transcript = self._transcripts.get(conversation_id)
        return None if transcript is None or transcript.opened_at is None else transcript

    def _living(self, conversation_id: str) -> Transcript | None:
        """Return a conversation, or a placeholder whose first turn runs or left a journal."""
        transcript = self._transcripts.get(conversation_id)
        if transcript is not None and transcript.is_hidden and not self._is_held(conversation_id):
            return None
        return transcript

    def _tick(self) -> datetime:
        """Return the time of this write, always later than that of the one before."""
        self._now = max(datetime.now(UTC), self._now + timedelta(microseconds=1))
        return self._now
