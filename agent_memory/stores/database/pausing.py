"""A paused turn as its rows tell it, for whoever holds its conversation."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from django.db.models import F

from agent_memory.models import Conversation, ConversationMessage
from agent_memory.records import PausedTurn, StoredTurn
from agent_memory.stores import pauses
from agent_memory.stores.database import approvals, rows
from agent_memory.stores.database.readings import TURN


def read(using: str, conversation_id: str) -> PausedTurn:
    """Return the paused turn of a conversation. Raises ``UnsupportedFormat``."""
    paused = F("conversation__paused_position")
    said, answered = (
        ConversationMessage.objects.using(using)
        .filter(conversation=conversation_id, position__gte=paused, position__lte=paused + 1)
        .order_by("position")
        .values_list(*TURN, "replay")
    )
    return PausedTurn(
        rows.with_replay(rows.turn(said, answered, conversation_id, using), answered[-1]),
        StoredTurn(conversation_id, said[1], str(said[0]), str(answered[0])),
        approvals.of_pause(using, conversation_id),
    )


def read_in_time(using: str, conversation_id: str) -> PausedTurn:
    """
    Return the paused turn of a conversation that the transaction holds.

    What nobody decided in time has expired then.
    """
    paused = read(using, conversation_id)
    found = pauses.expired(paused.approvals, datetime.now(UTC))
    if found != paused.approvals:
        approvals.change(using, answer_id(paused), paused.approvals, found)
        count = len([each for each in found if each not in paused.approvals])
        count_down(using, conversation_id, count)
    return replace(paused, approvals=found)


def message_id(using: str, conversation_id: str) -> int | None:
    """Return the id of the row that holds the steps of the paused turn, if one is."""
    found = ConversationMessage.objects.using(using).filter(
        conversation=conversation_id, position=F("conversation__paused_position") + 1
    )
    return found.values_list("id", flat=True).first()


def answer_id(paused: PausedTurn) -> int:
    """Return the id of the row that holds the steps of a turn that was read."""
    assert paused.stored.assistant_message_id is not None
    return int(paused.stored.assistant_message_id)


def count_down(using: str, conversation_id: str, count: int) -> None:
    """Count so many calls as undecided no more."""
    Conversation.objects.using(using).filter(id=conversation_id).update(
        undecided_count=F("undecided_count") - count
    )
