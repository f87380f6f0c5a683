"""
The journal: what a running turn has done, kept apart from what was said.

Only turns that call tools write it. Each entry is guarded by the turn's token;
the append removes them. What is left of a dead worker's turn becomes a failed
turn when the conversation is next reserved or released.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any

from django.db import IntegrityError, transaction

from agent_memory.journals import JournalEntry, interrupted_turn
from agent_memory.messages import Message, Step, ToolResult, Turn
from agent_memory.participants import Participant
from agent_memory.records import (
    Heading,
    Once,
    Reservation,
)
from agent_memory.stores import codec
from agent_memory.stores.database import queries, rows
from agent_memory.stores.database.retrying import retried
from agent_memory.stores.database.transactions import durable
from agent_memory.stores.database.turns import insert_placeholder, write_turn


def write(using: str, reservation: Reservation, entry: JournalEntry, seconds: float) -> bool:
    """
    Write an entry and hold the reservation for so many seconds; False: it was lost.

    The first entry of a conversation yet to be inserts its hidden row.
    """
    values = {
        "id": reservation.conversation_id,
        "reservation": reservation.turn_id,
        "reserved_key": reservation.once.key if reservation.once else "",
        "milliseconds": round(seconds * 1000),
    }
    row = {
        "conversation_id": reservation.conversation_id,
        "turn_id": reservation.turn_id,
        "step": entry.step,
        "index": entry.index,
        "entry": codec.encode(_entry_data(entry, reservation)),
        "created_at": rows.local(datetime.now(UTC)),
    }
    tries = count()

    def work() -> bool:
        again = bool(next(tries))
        with durable(using):
            if reservation.new and not (again and _mark(using, values)):
                if entry.heading is None:  # the step before it was refused
                    return False
                insert_placeholder(using, entry.heading, values, journalled=True)
            elif not reservation.new and not _mark(using, values):
                return False
            if not (again and _is_written(using, row)):
                queries.journal_entry.run(using, row)
        return True

    try:
        written = retried(using, work)
    except IntegrityError:  # somebody else opened the conversation
        return False
    if written and reservation.new:
        reservation.new, reservation.placeholder, reservation.next_position = False, True, 0
    reservation.journalled = reservation.journalled or written
    return written


def _mark(using: str, values: dict[str, Any]) -> bool:
    marked = queries.journal_mark.run(
        using, **{name: values[name] for name in ("id", "reservation", "milliseconds")}
    )
    return marked is not None


def _is_written(using: str, row: dict[str, Any]) -> bool:
    found = queries.journal.rows(using, id=row["conversation_id"], turn_id=row["turn_id"])
    return any((step, index) == (row["step"], row["index"]) for step, index, _ in found)


def bury(using: str, conversation_id: str, token: str) -> None:
    """
    Make a failed turn of what a dead worker journalled, in one transaction.

    A call without a result may have run. Nothing happens when somebody else
    was faster, or the worker was alive after all. Whoever calls it tries again.
    """
    with transaction.atomic(using):  # a direct append may have one open
        taken = queries.bury.run(using, id=conversation_id, reservation=token, milliseconds=60_000)
        if taken is None:
            return
        entries = queries.journal.rows(using, id=conversation_id, turn_id=token)
        heading, turn, reservation = _read(conversation_id, token, entries)
        write_turn(using, heading, turn, reservation)


def _entry_data(entry: JournalEntry, reservation: Reservation) -> dict[str, Any]:
    if isinstance(entry.value, ToolResult):
        return {"format": codec.FORMAT, "result": entry.value.model_dump(exclude_defaults=True)}
    assert isinstance(entry.value, Step)
    assert entry.heading is not None
    assert entry.user is not None
    heading, once = entry.heading, reservation.once
    return {
        "format": codec.FORMAT,
        "step": codec.step_data(entry.value),
        "user": codec.encode_items(entry.user.content),
        "participant": heading.participant and [heading.participant.type, heading.participant.key],
        "agent": heading.agent,
        "title": [heading.title, heading.title_source],
        "once": once and [once.key, once.fingerprint],
        "begun": reservation.begun_at.isoformat(),
    }


def _read(
    conversation_id: str, token: str, found: Sequence[rows.Row]
) -> tuple[Heading, Turn, Reservation]:
    """Return the turn that rows tell of, with its heading and its reservation."""
    entries, told = [], {}
    for step, index, text in found:
        data = json.loads(text)
        codec.check_format(data["format"])
        if index == -1:
            told = data
            heading = Heading(
                conversation_id,
                Participant(*data["participant"]) if data["participant"] else None,
                data["agent"],
                *data["title"],
            )
            user = Message.model_validate({"content": data["user"]}, extra="ignore")
            entries.append(JournalEntry(step, index, codec.step_value(data["step"]), heading, user))
        else:
            result = ToolResult.model_validate(data["result"], extra="ignore")
            entries.append(JournalEntry(step, index, result))
    heading, turn = interrupted_turn(entries)
    reservation = Reservation(
        conversation_id,
        token,
        once=Once(*told["once"]) if told["once"] else None,
        begun_at=datetime.fromisoformat(told["begun"]),
        journalled=True,
    )
    return heading, turn, reservation
