"""Conversations in the memory of this process: for tests and short-lived agents."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from agent_memory.exceptions import (
    ConversationConflict,
    ConversationDoesNotExist,
    InvalidParticipant,
)
from agent_memory.history import check_keep_last_turns, check_leading
from agent_memory.journals import JournalEntry, interrupted_turn
from agent_memory.messages import Message, Turn
from agent_memory.participants import Participant
from agent_memory.records import (
    ConversationPage,
    Heading,
    MessagePage,
    Once,
    Page,
    Reservation,
    StoredConversation,
    StoredTurn,
    check_conversation_id,
    check_title,
    new_id,
)
from agent_memory.signals import conversation_cleared
from agent_memory.stores.base import ConversationStore
from agent_memory.stores.cursors import (
    check_per_page,
    conversation_cursor,
    read_conversation_cursor,
    read_message_cursor,
)
from agent_memory.stores.transcript import Transcript


class InMemoryConversationStore(ConversationStore):
    """
    Keeps conversations in this process; a restart forgets them.

    Safe for threads and event loops. What goes in and out is copied, so nobody
    can change what is stored. A participant may also be any object with an
    ``id``: its type is the module and name of its class.
    """

    append_ends_reservation = True

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._transcripts: dict[str, Transcript] = {}
        self._now = datetime.min.replace(tzinfo=UTC)
        self._turns = 0

    def load(
        self,
        conversation_id: str,
        *,
        keep_last_turns: int = 0,
        reservation: Reservation | None = None,
    ) -> tuple[Message, ...]:
        check_conversation_id(conversation_id)
        check_keep_last_turns(keep_last_turns)
        with self._lock:
            transcript = self._transcripts.get(conversation_id)
            return () if transcript is None else transcript.window(keep_last_turns)

    def append(
        self, conversation: Heading | str, turn: Turn, *, reservation: Reservation | None = None
    ) -> StoredTurn:
        heading = Heading.of(conversation)
        heading = replace(heading, participant=self.participant_of(heading.participant))
        turn = turn.model_copy(deep=True)
        if reservation is not None:
            return self._append(heading, turn, reservation)
        with self._lock:
            if heading.turn_id:  # a turn that could not be stored holds what it noted itself
                self.release(Reservation(heading.id, heading.turn_id))
            reservation = self.reserve(
                heading.id, participant=heading.participant, agent=heading.agent, create=True
            )
            reservation.once = heading.once
            try:
                return self._append(heading, turn, reservation)
            except BaseException:
                self.release(reservation)
                raise

    def journal(self, reservation: Reservation, entry: JournalEntry, seconds: float) -> bool:
        conversation_id = reservation.conversation_id
        with self._lock:
            if reservation.new:
                heading = entry.heading
                if heading is None or conversation_id in self._transcripts:
                    return False
                self._transcripts[conversation_id] = Transcript(
                    conversation_id, heading.participant, heading.agent
                )
                self._hold(reservation)
                reservation.new, reservation.placeholder = False, True
            if not self.renew(reservation, seconds):
                return False
            self._transcripts[conversation_id].note(copy.deepcopy(entry), reservation)
            reservation.journalled = True
        return True

    def _bury(self, transcript: Transcript, reservation: Reservation) -> None:
        """
        Make a failed turn of what a dead worker journalled, for whoever comes next.

        Raises ``ConversationBusy`` while it is alive.
        """
        if transcript.journalled is not None:
            self._hold(reservation)
            self._write(*interrupted_turn(transcript.journal), transcript.journalled)

    def _append(self, heading: Heading, turn: Turn, reservation: Reservation) -> StoredTurn:
        with self._lock:
            if not self._may_append(reservation, heading.id):
                raise ConversationConflict(heading.id, turn)
            return self._write(heading, turn, reservation)

    def _write(self, heading: Heading, turn: Turn, reservation: Reservation) -> StoredTurn:
        transcript = self._transcripts.get(heading.id) or Transcript(
            heading.id, heading.participant, heading.agent
        )
        stored = transcript.add(
            turn, heading, reservation, ended=self._tick(), number=self._turns + 1
        )
        self._turns += 1
        self._transcripts[heading.id] = transcript
        self._held.pop(heading.id, None)
        return stored

    def clear(self, conversation_id: str) -> None:
        check_conversation_id(conversation_id)
        with self._lock:
            known = self._transcripts.pop(conversation_id, None)
            self._held.pop(conversation_id, None)
        if known is not None:
            conversation_cleared.send_robust(type(self), conversation_id=conversation_id)

    def reserve(
        self,
        conversation_id: str | None = None,
        *,
        participant: Any = None,
        must_own: bool = False,
        create: bool = False,
        agent: str = "",
        once: Once | None = None,
        message: Message | None = None,
        resume: bool = False,
    ) -> Reservation:
        new = conversation_id is None
        conversation_id = new_id() if conversation_id is None else conversation_id
        check_conversation_id(conversation_id)
        heading = Heading(conversation_id, self.participant_of(participant), agent)
        if new:
            return Reservation(
                conversation_id,
                new_id(),
                new=True,
                next_position=0,
                participant=heading.participant,
                once=once,
            )
        with self._lock:
            transcript = self._living(conversation_id)
            if transcript is None and create:
                transcript = Transcript(conversation_id, heading.participant, agent)
            if (
                transcript is None
                or (transcript.is_hidden and not create)
                or (must_own and transcript.participant != heading.participant)
            ):
                raise ConversationDoesNotExist(conversation_id)
            reservation = Reservation(conversation_id, new_id(), once=once)
            reservation.answered = transcript.answered(once)
            if reservation.answered is None:
                self._bury(transcript, reservation)
                reservation.answered = transcript.answered(once)
            if reservation.answered is None:
                self._hold(reservation)
                reservation.placeholder = transcript.opened_at is None
                reservation.next_position = transcript.next_position
                reservation.participant = transcript.participant
                reservation.title_source = transcript.title_source
                self._transcripts[conversation_id] = transcript
        return reservation

    def release(self, reservation: Reservation) -> None:
        with self._lock:
            if not self._is_token(reservation.conversation_id, reservation.turn_id):
                return
            del self._held[reservation.conversation_id]
            self._transcripts[reservation.conversation_id].drop_journal()
            if self._opened(reservation.conversation_id) is None:
                del self._transcripts[reservation.conversation_id]

    def create(
        self,
        conversation_id: str | None = None,
        *,
        participant: Any = None,
        agent: str = "",
        title: str = "",
        leading: Iterable[Message] = (),
    ) -> StoredConversation:
        if conversation_id is None:
            conversation_id = new_id()
        check_conversation_id(conversation_id)
        heading = Heading(
            conversation_id,
            self.participant_of(participant),
            agent,
            title,
            "person" if title else "",
        )
        messages = copy.deepcopy(check_leading(leading))
        with self._lock:
            if self._living(conversation_id) is not None:
                raise ConversationConflict(
                    conversation_id, message=f"Conversation {conversation_id!r} exists already."
                )
            transcript = Transcript(
                heading.id, heading.participant, agent, title, heading.title_source
            )
            transcript.open(self._tick(), messages)
            self._transcripts[conversation_id] = transcript
            self._held.pop(conversation_id, None)
            return transcript.stored()

    def get(self, conversation_id: str) -> StoredConversation | None:
        check_conversation_id(conversation_id)
        with self._lock:
            transcript = self._opened(conversation_id)
            return None if transcript is None else transcript.stored()

    def rename(self, conversation_id: str, title: str) -> None:
        check_conversation_id(conversation_id)
        check_title(title)
        with self._lock:
            transcript = self._opened(conversation_id)
            if transcript is None:
                raise ConversationDoesNotExist(conversation_id)
            transcript.title, transcript.title_source = title, "person"

    def list_conversations(
        self,
        participant: Any,
        *,
        agent: str | None = None,
        per_page: int | None = None,
        cursor: str | None = None,
    ) -> ConversationPage:
        owner = self.participant_of(participant)
        size = check_per_page(per_page)
        after = read_conversation_cursor(cursor)
        with self._lock:
            listed = [
                transcript.stored()
                for transcript in self._transcripts.values()
                if transcript.opened_at is not None
                and transcript.participant == owner
                and agent in (None, transcript.agent)
            ]
        listed.sort(key=lambda stored: (stored.last_activity, stored.id), reverse=True)
        if after is not None:
            listed = [stored for stored in listed if (stored.last_activity, stored.id) < after]
        return Page.of(listed, size, conversation_cursor)

    def latest_conversation_id(self, participant: Any, agent: str) -> str | None:
        speaker = self.participant_of(participant)
        if speaker is None:
            raise InvalidParticipant(
                "Nobody has no last conversation: pass a participant, or continue a "
                "conversation by its id."
            )
        with self._lock:
            spoke = [
                (transcript.spoke.get((speaker, agent), 0), transcript.id)
                for transcript in self._transcripts.values()
            ]
        number, conversation_id = max(spoke, default=(0, ""))
        return conversation_id if number else None

    def paginate_conversation_messages(
        self, conversation_id: str, *, per_page: int | None = None, cursor: str | None = None
    ) -> MessagePage:
        check_conversation_id(conversation_id)
        size = check_per_page(per_page)
        below = read_message_cursor(cursor)
        with self._lock:
            transcript = self._transcripts.get(conversation_id)
            return Page(()) if transcript is None else transcript.page(size, below)

    def participant_of(self, obj: Any) -> Participant | None:
        """Return the participant an object stands for, be it a plain one with an ``id``."""
        ready = obj is None or isinstance(obj, Participant)
        if ready or isinstance(obj, type) or hasattr(obj, "_meta") or not hasattr(obj, "id"):
            return super().participant_of(obj)
        if getattr(obj, "is_anonymous", False):
            return super().participant_of(obj)
        kind = obj.__class__
        if obj.id is None or not str(obj.id).strip():
            raise InvalidParticipant(
                f"This {kind.__name__} has no id to remember it by: give it one first."
            )
        return Participant(f"{kind.__module__}.{kind.__qualname__}", str(obj.id))

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

    def _is_held(self, conversation_id: str) -> bool:
        held = self._held.get(conversation_id)
        return held is not None and held.until > time.monotonic()

    def _tick(self) -> datetime:
        """Return the time of this write, always later than that of the one before."""
        self._now = max(datetime.now(UTC), self._now + timedelta(microseconds=1))
        return self._now
