"""Putting away what a dead worker left: a turn of its own, or the rest of a paused one."""

from __future__ import annotations

from django.db import transaction

from agent_memory.records import Answered
from agent_memory.stores.database import journal, queries, settling


def bury(
    using: str, conversation_id: str, token: str, *, paused: bool, hidden: bool = False
) -> Answered | None:
    """
    Record a dead worker's turn as failed and return it, or fold it into the paused one.

    Nothing happens when somebody else was faster, or the worker was alive after
    all. Whoever calls it tries again. ``hidden``: the turn opens its conversation.
    """
    with transaction.atomic(using):  # a direct append may have one open
        taken = queries.bury.run(using, id=conversation_id, reservation=token, milliseconds=60_000)
        if taken is None:
            return None
        if paused:
            settling.fold(using, conversation_id, token)
            return None
        return journal.record(using, conversation_id, token, hidden=hidden)
