"""The rows of a turn, and the hidden row of a conversation whose first turn is running."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from agent_memory.messages import Turn
from agent_memory.records import Heading, Reservation, StoredTurn
from agent_memory.stores.database import queries, rows


def insert_placeholder(
    using: str, heading: Heading, values: dict[str, Any], *, journalled: bool = False
) -> None:
    """Write the hidden, reserved row of a conversation to be."""
    moment = rows.local(datetime.now(UTC))
    row = rows.conversation_row(heading, using, moment=moment, opened=False)
    held = {name: values[name] for name in ("reservation", "reserved_key")}
    queries.placeholder.run(
        using, row | held | {"journalled": journalled}, milliseconds=values["milliseconds"]
    )


def write_turn(
    using: str, heading: Heading, turn: Turn, reservation: Reservation
) -> StoredTurn | None:
    """
    Count a turn in and write its two rows, inside a transaction of the caller's.

    Returns ``None``, and writes nothing, when the reservation was lost.
    """
    now = rows.local(datetime.now(UTC))
    usage = rows.totals(turn.usage + turn.title_usage)
    position = reservation.next_position
    if reservation.new:
        row = rows.conversation_row(heading, using, moment=now, opened=True)
        queries.conversation.run(using, row | usage | {"next_position": 2, "turn_count": 1})
        position = 0
    else:
        counted = queries.append(bool(heading.title)).run(
            using,
            id=heading.id,
            reservation=reservation.turn_id,
            title=heading.title,
            title_source=heading.title_source,
            last_activity=now,
            **usage,
        )
        if counted is None:
            return None
        if position is None:
            ((following,),) = queries.position.rows(using, id=heading.id)
            position = following - 2
        if reservation.journalled:
            queries.drop_journal.run(using, id=heading.id)
    begun = rows.local(reservation.begun_at)
    user, assistant = rows.turn_rows(heading, turn, reservation, using, begun=begun, ended=now)
    user["position"], assistant["position"] = position, position + 1
    user_id, assistant_id = queries.turn_rows.run(using, user, assistant)
    return stored_turn(reservation, user_id, assistant_id)


def stored_turn(reservation: Reservation, user_id: int, assistant_id: int) -> StoredTurn:
    return StoredTurn(
        reservation.conversation_id,
        reservation.turn_id,
        str(user_id),
        str(assistant_id),
        created=reservation.new or reservation.placeholder,
    )
