"""Reservations as whoever runs a site sees them: which are held, and by workers that died."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from agent_memory.models import Conversation
from agent_memory.participants import Participant
from agent_memory.stores.database import burying, queries, rows
from agent_memory.stores.database.retrying import retried
from agent_memory.stores.database.terms import DatabaseMilliseconds
from agent_memory.stores.database.transactions import durable

State = Literal["running", "expired", "interrupted", "unopened"]


@dataclass(frozen=True, slots=True)
class HeldReservation:
    """
    A conversation that a turn has reserved; ``token`` is the id of that turn.

    ``state``: ``running`` until its time has passed. Then it is ``interrupted``
    when tools were begun, ``unopened`` when it was to open the conversation,
    and otherwise ``expired``, which the next turn just takes over.
    """

    conversation_id: str
    token: str
    participant: Participant | None
    agent: str
    since: datetime
    until: datetime
    state: State


def reservations(using: str, conversation_id: str | None = None) -> Iterator[HeldReservation]:
    """Yield the reservations of all conversations, or of one, the oldest first."""
    found = Conversation.objects.using(using).exclude(reservation="")
    if conversation_id is not None:
        found = found.filter(id=conversation_id)
    for row in found.order_by("reserved_since", "id").values_list(
        "id",
        "reservation",
        "participant_type_id",
        "participant_key",
        "agent",
        "reserved_since",
        "reserved_until",
        "journalled",
        "opened_at",
        DatabaseMilliseconds(),
    ):
        name, token, type_id, key, agent, since, until, journalled, opened_at, now = row
        state: State = "expired"
        if until > now:
            state = "running"
        elif journalled:
            state = "interrupted"
        elif opened_at is None:
            state = "unopened"
        yield HeldReservation(
            name,
            token,
            rows.participant_value(type_id, key, using),
            agent,
            datetime.fromtimestamp(since / 1000, UTC),
            datetime.fromtimestamp(until / 1000, UTC),
            state,
        )


def end(using: str, held: HeldReservation, *, although_running: bool) -> bool:
    """
    End a reservation that was seen; what its tools did is recorded as if it had died.

    Tells whether it was still there: held by the same turn, and, unless
    ``although_running``, past its time. A worker that is alive after all gets
    ``ConversationConflict``.
    """

    def work() -> bool:
        with durable(using):
            return cut_off(
                using, held.conversation_id, held.token, although_running=although_running
            )

    return retried(using, work)


def cut_off(using: str, conversation_id: str, token: str, *, although_running: bool = True) -> bool:
    """End a reservation inside a transaction that is open. See end()."""
    seen = Conversation.objects.using(using).filter(id=conversation_id, reservation=token)
    if not although_running:
        seen = seen.filter(reserved_until__lte=DatabaseMilliseconds())
    if not seen.update(reserved_until=1):
        return False
    journalled, opened_at, paused = seen.values_list(
        "journalled", "opened_at", "paused_position"
    ).get()
    if journalled:
        burying.bury(using, conversation_id, token, paused=paused is not None)
    else:
        statement = queries.release if opened_at else queries.drop_placeholder
        statement.run(using, id=conversation_id, reservation=token)
    return True
