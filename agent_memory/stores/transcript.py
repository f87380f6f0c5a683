"""One conversation held as values, for stores that have no rows."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from datetime import datetime

from agent_memory.exceptions import ConversationConflict, TurnFailed
from agent_memory.journals import JournalEntry
from agent_memory.messages import Message, Turn, Usage
from agent_memory.participants import Participant
from agent_memory.records import (
    NO_USAGE,
    Answered,
    Heading,
    MessagePage,
    Once,
    Page,
    Reservation,
    StoredConversation,
    StoredMessage,
    StoredTurn,
    TitleSource,
    new_id,
)
from agent_memory.stores.cursors import message_cursor

Speakers = tuple[Participant | None, str]


@dataclass(slots=True)
class Transcript:
    """
    A conversation, or a placeholder while ``opened_at`` is not set.

    ``messages`` holds the leading messages and then two a turn, in the order of
    their positions. ``spoke`` tells when a participant and an agent last spoke
    here, as the number of that turn. ``journal`` is that of the turn which runs
    under ``journalled``. What comes out is a copy.
    """

    id: str
    participant: Participant | None = None
    agent: str = ""
    title: str = ""
    title_source: TitleSource = ""
    opened_at: datetime | None = None
    last_activity: datetime | None = None
    leading: tuple[Message, ...] = ()
    turns: list[Turn] = field(default_factory=list)
    messages: list[StoredMessage] = field(default_factory=list)
    usage: Usage = NO_USAGE
    spoke: dict[Speakers, int] = field(default_factory=dict)
    keys: dict[str, tuple[str, Answered]] = field(default_factory=dict)
    journal: list[JournalEntry] = field(default_factory=list)
    journalled: Reservation | None = None

    @property
    def next_position(self) -> int:
        return 2 * len(self.turns)

    @property
    def is_hidden(self) -> bool:
        """Whether nothing was said or done here yet."""
        return self.opened_at is None and self.journalled is None

    def open(self, now: datetime, leading: tuple[Message, ...] = ()) -> None:
        """Make a placeholder a conversation."""
        self.opened_at = self.last_activity = now
        self.leading = leading
        self.messages = [
            StoredMessage(
                id=new_id(),
                role=message.role,
                content=message.text,
                created_at=now,
                position=position,
                parts=message.content,
            )
            for position, message in enumerate(leading, start=-len(leading))
        ]

    def add(
        self,
        turn: Turn,
        heading: Heading,
        reservation: Reservation,
        *,
        ended: datetime,
        number: int,
    ) -> StoredTurn:
        """Add a turn, the ``number``-th of its store; its key is kept, its journal dropped."""
        user, assistant = _stored(turn, heading, self.next_position, reservation.begun_at, ended)
        stored = StoredTurn(
            self.id, reservation.turn_id, user.id, assistant.id, created=self.opened_at is None
        )
        usage = self.usage + turn.usage + turn.title_usage
        if self.opened_at is None:
            self.open(ended)
        self.messages += user, assistant
        self.turns.append(turn)
        self.last_activity = ended
        self.usage = usage
        self.spoke[heading.participant, heading.agent] = number
        if heading.title and not (self.title or self.title_source):
            self.title, self.title_source = heading.title, heading.title_source
        if reservation.once is not None:
            answered = Answered(turn, replace(stored, created=False))
            self.keys[reservation.once.key] = reservation.once.fingerprint, answered
        self.drop_journal()
        return stored

    def note(self, entry: JournalEntry, reservation: Reservation) -> None:
        """Note what a turn is about to do or has done."""
        self.journal.append(entry)
        self.journalled = reservation

    def drop_journal(self) -> None:
        self.journal, self.journalled = [], None

    def answered(self, once: Once | None) -> Answered | None:
        """Return the turn that a key has; raises ``TurnFailed``, and for another message."""
        if once is None or once.key not in self.keys:
            return None
        fingerprint, answered = self.keys[once.key]
        if fingerprint != once.fingerprint:
            raise ConversationConflict(
                self.id,
                message="This idempotency key stands for another message: give each its own.",
            )
        answered = copy.deepcopy(answered)
        if answered.turn.status == "failed":
            raise TurnFailed(answered.turn)
        return answered

    def window(self, keep_last_turns: int) -> tuple[Message, ...]:
        """Return the leading messages and those of the last turns, 0 meaning all."""
        turns = self.turns[-keep_last_turns:]
        return copy.deepcopy(
            (*self.leading, *(message for turn in turns for message in turn.messages))
        )

    def page(self, size: int, below: int | None) -> MessagePage:
        """Return a page of the messages below a position, newest first."""
        # The first message stands at -len(leading), so positions are indexes moved by that.
        end = len(self.messages)
        if below is not None:
            end = max(min(below + len(self.leading), end), 0)
        read = self.messages[max(end - size - 1, 0) : end]
        return Page.of(copy.deepcopy(read[::-1]), size, message_cursor)

    def stored(self) -> StoredConversation:
        assert self.opened_at is not None
        assert self.last_activity is not None
        return StoredConversation(
            id=self.id,
            participant=self.participant,
            agent=self.agent,
            title=self.title,
            title_source=self.title_source,
            opened_at=self.opened_at,
            last_activity=self.last_activity,
            turns=len(self.turns),
            usage=self.usage,
        )


def _stored(
    turn: Turn, heading: Heading, position: int, begun: datetime, ended: datetime
) -> tuple[StoredMessage, StoredMessage]:
    """Return the two messages of a turn as they are read back."""
    user = StoredMessage(
        id=new_id(),
        role="user",
        content=turn.user.text,
        created_at=begun,
        position=position,
        parts=turn.user.content,
        agent=heading.agent,
        participant=heading.participant,
    )
    assistant = StoredMessage(
        id=new_id(),
        role="assistant",
        content=turn.text,
        created_at=ended,
        position=position + 1,
        steps=tuple(step.model_copy(update={"replay": None}) for step in turn.steps),
        usage=turn.usage,
        status=turn.status,
        meta={"error": turn.error.model_dump(exclude_defaults=True)} if turn.error else {},
        agent=heading.agent,
    )
    return user, assistant
