"""Turns as values, where they stand, and the messages they are read back as."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent_memory.approvals import Approval
from agent_memory.messages import Turn
from agent_memory.participants import Participant
from agent_memory.records import Heading, Once, StoredMessage, StoredTurn, new_id
from agent_memory.stores.attachments import set_aside

Speakers = tuple[Participant | None, str]


@dataclass(slots=True, eq=False)
class KeptTurn:
    """
    A turn where it stands, the ``number``-th of its store.

    ``approvals`` are what became of the calls that a paused one waits for.
    """

    turn: Turn
    stored: StoredTurn
    speakers: Speakers
    number: int
    once: Once | None = None
    approvals: tuple[Approval, ...] = ()


def messages_of(
    turn: Turn, heading: Heading, position: int, begun: datetime, ended: datetime
) -> tuple[StoredMessage, StoredMessage]:
    """Return the two messages of a turn as they are read back."""
    user = StoredMessage(
        id=new_id(),
        role="user",
        content=turn.user.text,
        created_at=begun,
        position=position,
        parts=set_aside(heading.id, turn.user.content),
        agent=heading.agent,
        participant=heading.participant,
    )
    assistant = StoredMessage(
        id=new_id(),
        role="assistant",
        created_at=ended,
        position=position + 1,
        agent=heading.agent,
        **answer_of(turn),
    )
    return user, assistant


def answer_of(turn: Turn) -> dict[str, Any]:
    """Return what an assistant's message tells of its turn."""
    return {
        "content": turn.text,
        "steps": tuple(step.model_copy(update={"replay": None}) for step in turn.steps),
        "usage": turn.usage,
        "status": turn.status,
        "meta": {"error": turn.error.model_dump(exclude_defaults=True)} if turn.error else {},
    }
