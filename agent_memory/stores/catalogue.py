"""Conversations that are held as transcripts: opened, named, handed over, listed and read."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, NamedTuple

from agent_memory.exceptions import (
    ConversationConflict,
    ConversationDoesNotExist,
    InvalidParticipant,
)
from agent_memory.history import check_keep_last_turns
from agent_memory.messages import Message
from agent_memory.participants import Participant
from agent_memory.records import (
    ConversationPage,
    Heading,
    MessagePage,
    Page,
    Reservation,
    StoredConversation,
    check_conversation_id,
    check_title,
)
from agent_memory.stores.attachments import unknown
from agent_memory.stores.cursors import (
    conversation_cursor,
)
from agent_memory.stores.keeping import Listing
from agent_memory.stores.kept import Speakers
from agent_memory.stores.transcripts import TranscriptStore


class Entry(NamedTuple):
    """What a list tells of a conversation, ``None`` for a placeholder, and who last spoke when."""

    id: str
    stored: StoredConversation | None
    spoke: dict[Speakers, int]


class Catalogue(TranscriptStore):
    """
    Base of a store of transcripts, of which it can tell what there is.

    A participant may also be any object with an ``id``: its type is the module
    and name of its class.
    """

    def _entries(self) -> Iterable[Entry]:
        """Return what there is, in any order."""
        raise NotImplementedError

    def load(
        self,
        conversation_id: str,
        *,
        keep_last_turns: int = 0,
        reservation: Reservation | None = None,
    ) -> tuple[Message, ...]:
        check_conversation_id(conversation_id)
        check_keep_last_turns(keep_last_turns)
        with self.working_on(conversation_id):
            transcript = self._transcripts.get(conversation_id)
            return () if transcript is None else transcript.window(keep_last_turns)

    def _create(self, heading: Heading, leading: tuple[Message, ...]) -> StoredConversation:
        messages = copy.deepcopy(leading)
        with self.working_on(heading.id):
            if self._living(heading.id) is not None:
                raise ConversationConflict(
                    heading.id, message=f"Conversation {heading.id!r} exists already."
                )
            transcript = self.new_transcript(heading.id, heading.participant, heading.agent)
            transcript.title, transcript.title_source = heading.title, heading.title_source
            transcript.open(self._tick(), messages)
            self._transcripts[heading.id] = transcript
            self._held.pop(heading.id, None)
            return transcript.stored()

    def get(self, conversation_id: str) -> StoredConversation | None:
        check_conversation_id(conversation_id)
        with self.working_on(conversation_id):
            transcript = self._opened(conversation_id)
            return None if transcript is None else transcript.stored()

    def rename(self, conversation_id: str, title: str) -> None:
        check_conversation_id(conversation_id)
        check_title(title)
        with self.working_on(conversation_id):
            transcript = self._opened(conversation_id)
            if transcript is None:
                raise ConversationDoesNotExist(conversation_id)
            transcript.title, transcript.title_source = title, "person"

    def transfer_conversation(self, conversation_id: str, participant: Any) -> None:
        check_conversation_id(conversation_id)
        owner = self.participant_of(participant)
        with self.working_on(conversation_id):
            transcript = self._opened(conversation_id)
            if transcript is None:
                raise ConversationDoesNotExist(conversation_id)
            transcript.transfer(owner)

    def _list(self, listing: Listing) -> ConversationPage:
        listed = [
            entry.stored
            for entry in self._entries()
            if entry.stored is not None
            and entry.stored.participant == listing.owner
            and listing.agent in (None, entry.stored.agent)
        ]
        listed.sort(key=lambda stored: (stored.last_activity, stored.id), reverse=True)
        if listing.after is not None:
            after = listing.after
            listed = [stored for stored in listed if (stored.last_activity, stored.id) < after]
        return Page.of(listed, listing.size, conversation_cursor)

    def latest_conversation_id(self, participant: Any, agent: str) -> str | None:
        speaker = self.participant_of(participant)
        if speaker is None:
            raise InvalidParticipant(
                "Nobody has no last conversation: pass a participant, or continue a "
                "conversation by its id."
            )
        spoke = [(entry.spoke.get((speaker, agent), 0), entry.id) for entry in self._entries()]
        number, conversation_id = max(spoke, default=(0, ""))
        return conversation_id if number else None

    def _page(self, conversation_id: str, size: int, below: int | None) -> MessagePage:
        with self.working_on(conversation_id):
            transcript = self._transcripts.get(conversation_id)
            return Page(()) if transcript is None else transcript.page(size, below)

    def read_attachment(self, conversation_id: str, attachment_id: str) -> bytes:
        check_conversation_id(conversation_id)
        with self.working_on(conversation_id):
            transcript = self._transcripts.get(conversation_id)
            if transcript is None:
                raise unknown(attachment_id)
            return transcript.read_attachment(attachment_id)

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
