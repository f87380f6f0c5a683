"""Writing a turn so that it stands there once: whole, in order, and only for who may."""

from __future__ import annotations

from itertools import count

from django.db import IntegrityError, transaction

from agent_memory.exceptions import ConversationConflict
from agent_memory.messages import Turn
from agent_memory.records import Heading, Reservation, StoredTurn, new_id
from agent_memory.stores.database import queries, reserving
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
                    taken = reserving.take(
                        reserving.Wanted(using, heading, reservation.turn_id, create=True)
                    )
                    stored = write_turn(using, heading, turn, taken)
            except IntegrityError:
                continue  # another one opened the conversation in between
            if stored is not None:
                return stored
        raise ConversationConflict(heading.id, turn)

    return retried(using, work)


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
    return stored_turn(reservation, found[0][0], found[1][0])
