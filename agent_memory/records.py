"""What goes in and out of a store beside messages: ids, times, pages, reservations."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Annotated, Any, Generic, Literal, TypeVar
from uuid import UUID, uuid5

from pydantic import Field, JsonValue

from agent_memory.approvals import Approval, PendingApproval
from agent_memory.messages import (
    Message,
    Part,
    ProviderToolCall,
    Role,
    Status,
    Step,
    ToolCall,
    ToolResult,
    Turn,
    Usage,
    Value,
)
from agent_memory.participants import Participant
from agent_memory.storable import MAX_LENGTH as MAX_LENGTH
from agent_memory.storable import check_conversation_id as check_conversation_id
from agent_memory.storable import check_text
from agent_memory.storable import check_title as check_title
from agent_memory.storable import readable as readable

if sys.version_info >= (3, 14):
    from uuid import uuid7
else:
    from uuid_utils import uuid7

TitleSource = Literal["", "prompt", "draft", "person"]

NAMESPACE = UUID("d5f1e9a4-6f0b-5c39-9d6e-3a1f7c2b8e40")
NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class Heading:
    """
    What a turn says of its conversation when it is appended.

    ``participant`` is who spoke, and the owner of a conversation that is new;
    ``agent`` is the label of who answered. A title is taken only while the
    conversation has none. ``approvals`` tell more of what a paused turn waits
    for than its calls do.

    ``turn_id`` and ``once`` are those of a turn that could not be stored; the
    database store, to which it may have been committed unseen, stores it once,
    however often it is appended. ``settles`` is the id of the paused turn of
    which it is the rest.
    """

    id: str
    participant: Participant | None = None
    agent: str = ""
    title: str = ""
    title_source: TitleSource = ""
    approvals: tuple[PendingApproval, ...] = ()
    turn_id: str = ""
    once: Once | None = None
    settles: str = ""

    def __post_init__(self) -> None:
        check_conversation_id(self.id)
        check_title(self.title)
        check_text("An agent's label", self.agent)

    @classmethod
    def of(cls, conversation: Heading | str) -> Heading:
        """Return a heading, made of a bare id where it is one."""
        return conversation if isinstance(conversation, Heading) else cls(conversation)


@dataclass(frozen=True, slots=True)
class Once:
    """
    An idempotency key and the message it stands for, as a fingerprint.

    At most one turn of a conversation is stored under a key.
    """

    key: str
    fingerprint: str

    @classmethod
    def of(cls, key: object, message: Message) -> Once:
        """Return the key of a message; raises ``ValueError`` for a key no store can hold."""
        if key == "":
            raise ValueError("An idempotency key cannot be empty; None is no key.")
        # Without defaults, so that a field of a later version changes no stored fingerprint.
        parts = [
            {"type": part.type, **part.model_dump(exclude_defaults=True)}
            for part in message.content
        ]
        said = json.dumps(parts, sort_keys=True, default=_digest)
        return cls(check_text("An idempotency key", key), sha256(said.encode()).hexdigest())

    def conversation_id(self, participant: Participant | None, agent: str) -> str:
        """Return the id of the conversation that a first message under this key opens."""
        owner = None if participant is None else (participant.type, participant.key)
        return str(uuid5(NAMESPACE, json.dumps([owner, agent, self.key])))


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()


@dataclass(slots=True)
class Reservation:
    """
    The right to write the next turn of one conversation.

    ``turn_id`` is the token. ``new``: the conversation has no row yet, its
    append creates it. ``placeholder``: it has a hidden row that failure
    removes. The other fields tell the conversation as it was when reserved;
    a database that cannot return them from the reserving statement fills them
    in with the first ``load()`` under this reservation. ``journalled``: the turn
    has entries in the journal, which its end removes.

    ``paused`` is the turn that a reservation with ``resume`` goes on with.
    ``buried`` is the failed turn that reserving made of what a dead worker left.

    With ``answered`` nothing is held: a turn under the same idempotency key is
    stored already.
    """

    conversation_id: str
    turn_id: str
    new: bool = False
    placeholder: bool = False
    next_position: int | None = None
    participant: Participant | None = None
    title_source: TitleSource = ""
    begun_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    once: Once | None = None
    journalled: bool = False
    paused: PausedTurn | None = None
    buried: Answered | None = None
    answered: Answered | None = None


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """
    Where a turn was written; ``created`` tells whether it opened the conversation.

    A store of three methods tells no ids of messages.
    """

    conversation_id: str
    turn_id: str
    user_message_id: str | None = None
    assistant_message_id: str | None = None
    created: bool = False


@dataclass(frozen=True, slots=True)
class Answered:
    """A turn that was stored before, and where; ``waiting`` is what a paused one waits for."""

    turn: Turn
    stored: StoredTurn
    waiting: tuple[PendingApproval, ...] = ()


@dataclass(frozen=True, slots=True)
class PausedTurn:
    """
    The turn of a conversation that waits for a person.

    ``turn`` has its replay blocks. ``approvals`` are those of its last pause, in
    the order of the calls; each call of it that has a result is done with.
    """

    turn: Turn
    stored: StoredTurn
    approvals: tuple[Approval, ...] = ()


class StoredAttachment(Value):
    """
    A file of a stored message, without its bytes: ``store.read_attachment()`` reads them.

    ``id`` is that of the bytes in their conversation, ``sha256`` (in hex) and
    ``size`` tell of them; ``kind`` is the type of the part, the rest its fields.
    """

    type: Literal["attachment"] = "attachment"
    kind: Literal["image", "document"]
    id: str
    sha256: str
    size: int
    media_type: str = ""
    file_name: str = ""
    provider_options: dict[str, JsonValue] = Field(default_factory=dict)


StoredPart = Annotated[Part | StoredAttachment, Field(discriminator="type")]


@dataclass(frozen=True)
class StoredMessage:
    """
    One message as it is read back.

    ``content`` is readable text, ``parts`` what was really said, files without
    their bytes; an assistant's ``steps`` hold its tool calls with their results.
    ``participant`` is who spoke, on user messages.
    """

    id: str
    role: Role
    content: str
    created_at: datetime
    position: int
    parts: tuple[StoredPart, ...] = ()
    steps: tuple[Step, ...] = ()
    usage: Usage = NO_USAGE
    status: Status = "completed"
    meta: dict[str, Any] = field(default_factory=dict)
    agent: str = ""
    participant: Participant | None = None

    @property
    def attachments(self) -> tuple[StoredAttachment, ...]:
        """The files whose bytes are stored, in the order of the parts."""
        return tuple(part for part in self.parts if isinstance(part, StoredAttachment))

    def tool_calls(self) -> tuple[ToolCall, ...]:
        """Return the calls of all steps, in order."""
        return tuple(call for step in self.steps for call in step.tool_calls())

    def provider_tool_calls(self) -> tuple[ProviderToolCall, ...]:
        """Return the calls that the provider ran itself, of all steps, in order."""
        return tuple(call for step in self.steps for call in step.provider_tool_calls())

    def tool_results(self) -> tuple[ToolResult, ...]:
        """Return the results that there are, in the order of their calls."""
        return tuple(call.result for call in self.tool_calls() if call.result is not None)


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """A conversation as it is read back, without its messages."""

    id: str
    participant: Participant | None
    agent: str
    title: str
    title_source: TitleSource
    opened_at: datetime
    last_activity: datetime
    turns: int
    usage: Usage = NO_USAGE


Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """Some items, newest first, and the cursor of the next page or ``None``."""

    items: tuple[Item, ...]
    next_cursor: str | None = None

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    @classmethod
    def of(cls, items: list[Item], per_page: int, cursor: Callable[[Item], str]) -> Page[Item]:
        """Make a page of up to ``per_page + 1`` items read; the one over tells of a next page."""
        shown = tuple(items[:per_page])
        return cls(shown, cursor(shown[-1]) if len(items) > per_page else None)


MessagePage = Page[StoredMessage]
ConversationPage = Page[StoredConversation]


def new_id() -> str:
    """Return a fresh UUIDv7 as text, for a conversation or a turn."""
    return str(uuid7())
