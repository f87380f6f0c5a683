"""Writing a turn so that it stands there once: whole, in order, and only for who may."""

from __future__ import annotations

from itertools import count

from django.db import IntegrityError, transaction

from agent_memory.exceptions import ConversationConflict
from agent_memory.messages import Turn
from agent_memory.records import Heading, Reservation, StoredTurn, new_id
from agent_memory.stores.database import queries, reserving, rows
from agent_memory.stores.database.retrying import retried
from agent_memory.stores.database.transactions import durable
from agent_memory.stores.database.turns import stored_turn, write_turn

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
                stored = write_turn(using, heading, turn, reservation)
        except IntegrityError:
            if not reservation.new:
                raise
            stored = None
        stored = stored or _written(using, heading, turn, reservation)
        if stored is None:
            raise ConversationConflict(heading.id, turn)
        return stored

    return retried(using, work)


def append_directly(using: str, heading: Heading, turn: Turn) -> StoredTurn:
    """
    Write a turn with a reservation of its own; may join a transaction of the caller's.

    A heading that names the turn's id makes it one that may stand there, or be journalled.
    """
    turn_id = heading.turn_id or new_id()
    wanted = reserving.Wanted(using, heading, turn_id, create=True)
    tries = count(bool(heading.turn_id))

    def work() -> StoredTurn:
        if next(tries) and (
            stored := _written(using, heading, turn, Reservation(heading.id, turn_id))
        ):
            return stored
        for _ in range(ATTEMPTS):
            try:
                with transaction.atomic(using):
                    taken = reserving.take(wanted)
                    taken.once, taken.journalled = heading.once, bool(heading.turn_id)
                    stored = write_turn(using, heading, turn, taken)
            except IntegrityError:
                continue  # another one opened the conversation in between
            if stored is not None:
                return stored
        raise ConversationConflict(heading.id, turn)

    return retried(using, work)


def _written(
    using: str, heading: Heading, turn: Turn, reservation: Reservation
) -> StoredTurn | None:
    """
    Return a turn that an earlier, unseen commit has written.

    Raises ``ConversationConflict`` when it stands there in another form.
    """
    found = queries.turn_of.rows(
        using,
        id=heading.id,
        turn_id=reservation.turn_id,
        position=reservation.next_position or 0,
    )
    if not found:
        return None
    form = turn.status, rows.error_code(turn)
    if len(found) != 2 or found[1][1:] != form:
        raise ConversationConflict(heading.id, turn)
    return stored_turn(reservation, found[0][0], found[1][0])
