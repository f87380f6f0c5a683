"""What was said in one conversation, by whom, and whose it is."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from datetime import datetime

from agent_memory.approvals import asked_in, pending
from agent_memory.exceptions import ConversationConflict, TurnFailed
from agent_memory.journals import INTERRUPTION, JournalEntry
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
from agent_memory.stores import pauses
from agent_memory.stores.attachments import attachment_id, files_of, set_aside, unknown
from agent_memory.stores.cursors import message_cursor
from agent_memory.stores.kept import KeptTurn, Speakers, answer_of, messages_of


@dataclass(slots=True)
class Said:
    """
    What was said in a conversation, which is a placeholder while ``opened_at`` is not set.

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
    turns: list[KeptTurn] = field(default_factory=list)
    messages: list[StoredMessage] = field(default_factory=list)
    usage: Usage = NO_USAGE
    spoke: dict[Speakers, int] = field(default_factory=dict)
    keys: dict[str, KeptTurn] = field(default_factory=dict)
    journal: list[JournalEntry] = field(default_factory=list)
    journalled: Reservation | None = None

    @property
    def next_position(self) -> int:
        return 2 * len(self.turns)

    @property
    def is_hidden(self) -> bool:
        """Whether nothing was said or done here yet."""
        return self.opened_at is None and self.journalled is None

    @property
    def paused(self) -> KeptTurn | None:
        """The turn that waits for a person, which is the last one."""
        last = self.turns[-1] if self.turns else None
        return last if last is not None and last.turn.status == "paused" else None

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
                parts=set_aside(self.id, message.content),
            )
            for position, message in enumerate(leading, start=-len(leading))
        ]

    # Turns.

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
        user, assistant = messages_of(
            turn, heading, self.next_position, reservation.begun_at, ended
        )
        stored = StoredTurn(self.id, reservation.turn_id, user.id, assistant.id)
        kept = KeptTurn(
            pauses.without_replay(turn),
            stored,
            (heading.participant, heading.agent),
            number,
            reservation.once,
            copy.deepcopy(asked_in(turn, heading.approvals)) if turn.status == "paused" else (),
        )
        usage = self.usage + turn.usage + turn.title_usage
        created = self.opened_at is None
        if created:
            self.open(ended)
        self.messages += user, assistant
        self.turns.append(kept)
        self.touch(len(self.turns) - 1)
        self.last_activity = ended
        self.usage = usage
        self.spoke[kept.speakers] = number
        if heading.title and not (self.title or self.title_source):
            self.title, self.title_source = heading.title, heading.title_source
        if kept.once is not None:
            self.keys[kept.once.key] = kept
        self.drop_journal()
        return replace(stored, created=created)

    def rewrite(self, kept: KeptTurn, turn: Turn, *, ended: datetime) -> None:
        """Put another form of a turn in its place: same position, same messages."""
        index = self.turns.index(kept)
        at = len(self.leading) + 2 * index + 1
        answer = replace(self.messages[at], **answer_of(turn))
        usage = self.usage + pauses.grown(kept.turn, turn)
        self.messages[at], kept.turn = answer, pauses.without_replay(turn)
        self.usage, self.last_activity = usage, ended
        self.touch(index)

    def touch(self, index: int) -> None:
        """Hear of a turn that is new or has another form."""

    def find(self, turn_id: str) -> KeptTurn | None:
        """Return a turn by its id."""
        return next((kept for kept in self.turns if kept.stored.turn_id == turn_id), None)

    def finish(self, kept: KeptTurn, turn: Turn, *, ended: datetime) -> StoredTurn:
        """
        Put a turn in the place of what was recorded of it while its worker was thought dead.

        Raises ``ConversationConflict`` where another form of it stands already,
        and for a paused turn, whose conversation has gone on.
        """
        if kept.turn != pauses.without_replay(turn):
            if kept.turn.error != INTERRUPTION or turn.status == "paused":
                raise ConversationConflict(self.id, turn)
            self.rewrite(kept, turn, ended=ended)
        return kept.stored

    def drop_journal(self) -> None:
        self.journal, self.journalled = [], None

    # Whose it is.

    def transfer(self, owner: Participant | None) -> None:
        """Hand it over; what nobody said in a conversation of nobody's goes with it."""
        before, self.participant = self.participant, owner
        if before is None:
            self._reattribute(None, owner)

    def anonymise(self, gone: Participant) -> None:
        """Make nobody of a participant."""
        if self.participant == gone:
            self.participant = None
        self._reattribute(gone, None)
        if self.paused is not None:
            self.paused.approvals = tuple(
                replace(each, decided_by=None) if each.decided_by == gone else each
                for each in self.paused.approvals
            )

    def _reattribute(self, old: Participant | None, new: Participant | None) -> None:
        self.messages = [
            replace(message, participant=new)
            if message.role == "user" and message.position >= 0 and message.participant == old
            else message
            for message in self.messages
        ]
        for kept in self.turns:
            speaker, agent = kept.speakers
            if speaker == old:
                kept.speakers = new, agent
        self.spoke = {kept.speakers: kept.number for kept in self.turns}

    # Reading.

    def answered(self, once: Once | None) -> Answered | None:
        """Return the turn that a key has; raises ``TurnFailed``, and for another message."""
        kept = None if once is None else self.keys.get(once.key)
        if kept is None:
            return None
        if kept.once != once:
            raise ConversationConflict(
                self.id,
                message="This idempotency key stands for another message: give each its own.",
            )
        waiting = pending(kept.approvals)
        answered = copy.deepcopy(Answered(kept.turn, kept.stored, waiting))
        if answered.turn.status == "failed":
            raise TurnFailed(answered.turn)
        return answered

    def window(self, keep_last_turns: int) -> tuple[Message, ...]:
        """Return the leading messages and those of the last turns that ended, 0 meaning all."""
        end = len(self.turns) - (self.paused is not None)
        first = max(end - keep_last_turns, 0) if keep_last_turns else 0
        said = (message for kept in self.turns[first:end] for message in kept.turn.messages)
        return copy.deepcopy((*self.leading, *said))

    def page(self, size: int, below: int | None) -> MessagePage:
        """Return a page of the messages below a position, newest first."""
        # The first message stands at -len(leading), so positions are indexes moved by that.
        end = len(self.messages)
        if below is not None:
            end = max(min(below + len(self.leading), end), 0)
        read = self.messages[max(end - size - 1, 0) : end]
        return Page.of(copy.deepcopy(read[::-1]), size, message_cursor)

    def read_attachment(self, wanted: str) -> bytes:
        """Return the bytes of an attachment; raises ``AttachmentDoesNotExist``."""
        said = files_of((*self.leading, *(kept.turn.user for kept in self.turns)))
        for digest, part in said.items():
            if attachment_id(self.id, digest) == wanted:
                return part.data or b""
        raise unknown(wanted)

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
