"""Writing a turn: the conversation's row counts it in, and two rows follow."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count

from django.db import IntegrityError, transaction

from agent_memory.exceptions import ConversationConflict
from agent_memory.messages import Turn
from agent_memory.records import Heading, Reservation, StoredTurn, new_id
from agent_memory.stores.database import queries, reserving, rows
from agent_memory.stores.database.retrying import retried
from agent_memory.stores.database.transactions import durable

ATTEMPTS = 5


def append(using: str, heading: Heading, turn: Turn, reservation: Reservation) -> StoredTurn:
    """
    Write a turn under its reservation, in a transaction that ends here.

    Raises ``ConversationConflict`` for a lost reservation and
    ``TransactionOpen`` inside a transaction of the caller's.
    """

    def work() -> StoredTurn:
        try:
            with durable(using):
                stored = _write(using, heading, turn, reservation)
        except IntegrityError:
            if not reservation.new:
                raise
            stored = None
        return stored or _written(using, heading, turn, reservation)

    return retried(using, work)


def append_directly(using: str, heading: Heading, turn: Turn) -> StoredTurn:
    """Write a turn with a reservation of its own; may join a transaction of the caller's."""
    reservation = Reservation(heading.id, new_id())
    tries = count()

    def work() -> StoredTurn:
        if next(tries):
            try:
                return _written(using, heading, turn, reservation)
            except ConversationConflict:
                pass  # no earlier try has come through
        for _ in range(ATTEMPTS):
            try:
                with transaction.atomic(using):
                    taken = reserving.take(using, heading, reservation.turn_id)
                    stored = _write(using, heading, turn, taken)
            except IntegrityError:
                continue  # another one opened the conversation in between
            if stored is not None:
                return stored
        raise ConversationConflict(heading.id, turn)

    return retried(using, work)


def _write(using: str, heading: Heading, turn: Turn, reservation: Reservation) -> StoredTurn | None:
    """Write the rows of a turn, if the reservation still holds."""
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
    begun = rows.local(reservation.begun_at)
    user, assistant = rows.turn_rows(
        heading, turn, reservation.turn_id, using, begun=begun, ended=now
    )
    user["position"], assistant["position"] = position, position + 1
    user_id, assistant_id = queries.turn_rows.run(using, user, assistant)
    return _stored(reservation, user_id, assistant_id)


def _written(using: str, heading: Heading, turn: Turn, reservation: Reservation) -> StoredTurn:
    """Return a turn that an earlier, unseen commit has written; else it is a conflict."""
    found = queries.turn_of.rows(
        using,
        id=heading.id,
        turn_id=reservation.turn_id,
        position=reservation.next_position or 0,
    )
    if len(found) != 2 or found[1][2] != turn.status:
        raise ConversationConflict(heading.id, turn)
    return _stored(reservation, found[0][0], found[1][0])


def _stored(reservation: Reservation, user_id: int, assistant_id: int) -> StoredTurn:
    return StoredTurn(
        reservation.conversation_id,
        reservation.turn_id,
        str(user_id),
        str(assistant_id),
        created=reservation.new or reservation.placeholder,
    )
