"""Taking the reservation of a conversation, and telling what stood in the way."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.db import IntegrityError, transaction

from agent_memory import conf
from agent_memory.exceptions import (
    ApprovalsPending,
    ConversationBusy,
    ConversationConflict,
    ConversationDoesNotExist,
)
from agent_memory.records import Heading, Reservation
from agent_memory.stores.database import queries, rows

ATTEMPTS = 5


def reserve(
    using: str, heading: Heading, turn_id: str, *, must_own: bool, create: bool
) -> Reservation:
    """
    Take a conversation's reservation for the participant of a heading.

    A new id gets a hidden row at once, where ``create`` allows it. Raises as
    ``ConversationStore.reserve()`` does.
    """
    reservation, values = _begin(using, heading, turn_id)
    owner: queries.Owner = "anybody"
    if must_own:
        owner = "nobody" if heading.participant is None else "participant"
    for _ in range(ATTEMPTS):
        row = queries.reserve(owner, create).run(using, **values)
        if row is not None:
            return fill(reservation, row, using)
        if _raise_obstacle(using, values, must_own=must_own, create=create):
            continue
        if _insert_placeholder(using, heading, values):
            reservation.placeholder = True
            reservation.next_position = 0
            reservation.participant = heading.participant
            return reservation
    raise ConversationConflict(heading.id)


def take(using: str, heading: Heading, turn_id: str) -> Reservation:
    """Take it inside the transaction of a direct append, which creates what is not there."""
    reservation, values = _begin(using, heading, turn_id)
    for _ in range(ATTEMPTS):
        row = queries.reserve("anybody", create=True).run(using, **values)
        if row is not None:
            return fill(reservation, row, using)
        if not _raise_obstacle(using, values, must_own=False, create=True):
            reservation.new = True
            return reservation
    raise ConversationConflict(heading.id)


def fill(reservation: Reservation, row: rows.Row, using: str) -> Reservation:
    """Tell a reservation what ``RESERVED`` columns say; an empty row says nothing yet."""
    if row:
        reservation.next_position, type_id, key, reservation.title_source, opened_at = row
        reservation.participant = rows.participant_value(type_id, key, using)
        reservation.placeholder = opened_at is None
    return reservation


def _begin(using: str, heading: Heading, turn_id: str) -> tuple[Reservation, dict[str, Any]]:
    reservation = Reservation(heading.id, turn_id)
    return reservation, {
        "id": heading.id,
        "reservation": reservation.turn_id,
        "milliseconds": round(conf.setting("RESERVATION_SECONDS") * 1000),
        **rows.participant_columns(heading.participant, using),
    }


def _raise_obstacle(using: str, values: dict[str, Any], *, must_own: bool, create: bool) -> bool:
    """
    Raise what stood in the way, ownership first.

    Returns False when there is no such conversation and it may be created, and
    True when nothing stands in the way any more.
    """
    conversation_id = values["id"]
    found = queries.obstacle.rows(using, id=conversation_id)
    if not found:
        if not create:
            raise ConversationDoesNotExist(conversation_id)
        return False
    opened_at, type_id, key, paused_position, since, until, now = found[0]
    owned = (type_id, key) == (values["participant_type_id"], values["participant_key"])
    if (must_own and not owned) or (opened_at is None and not create):
        raise ConversationDoesNotExist(conversation_id)
    if paused_position is not None:
        raise ApprovalsPending("The conversation waits for approvals.")
    if until > now:
        raise ConversationBusy(
            conversation_id,
            since=datetime.fromtimestamp(since / 1000, UTC),
            retry_after=(until - now) / 1000,
        )
    return True


def _insert_placeholder(using: str, heading: Heading, values: dict[str, Any]) -> bool:
    """Write the hidden row of a conversation to be; False: somebody was faster."""
    moment = rows.local(datetime.now(UTC))
    row = rows.conversation_row(heading, using, moment=moment, opened=False)
    try:
        with transaction.atomic(using):
            queries.placeholder.run(
                using,
                row | {"reservation": values["reservation"]},
                milliseconds=values["milliseconds"],
            )
    except IntegrityError:
        return False
    return True
