"""Giving a reservation up without a turn."""

from __future__ import annotations

from agent_memory.records import Reservation
from agent_memory.stores.database import attachments, queries, settling
from agent_memory.stores.database.transactions import durable


def release(using: str, reservation: Reservation) -> None:
    """
    Free a conversation, and remove what the turn left: its journal, a hidden row.

    What was noted while a paused turn was resumed is folded into it. A stale
    token changes nothing.
    """
    held = {"id": reservation.conversation_id, "reservation": reservation.turn_id}
    if reservation.journalled:
        with durable(using):
            if queries.renew.run(using, **held, milliseconds=60_000) is None:
                return
            if reservation.paused is not None:
                settling.fold(using, reservation.conversation_id, reservation.turn_id)
                return
            queries.drop_journal.run(using, id=reservation.conversation_id)
            attachments.drop_unused(using, reservation.conversation_id)
            _free(using, reservation, held)
    else:
        _free(using, reservation, held)


def _free(using: str, reservation: Reservation, held: dict[str, str]) -> None:
    if reservation.placeholder:
        queries.drop_placeholder.run(using, **held)
    else:
        queries.release.run(using, **held)
