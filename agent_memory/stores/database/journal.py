"""
The journal: what a running turn has done, kept apart from what was said.

Only turns that call tools write it. Each entry is guarded by the turn's token;
the append removes them. What is left of a dead worker's turn becomes a failed
turn when the conversation is next reserved or released, or is folded into the
paused turn that it had resumed, of which a call is claimed here before it runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from agent_memory.journals import JournalEntry, interrupted_turn
from agent_memory.messages import Message, Step, ToolCall, ToolResult
from agent_memory.models import ToolApproval
from agent_memory.participants import Participant
from agent_memory.records import Answered, Heading, Once, Reservation
from agent_memory.stores import codec
from agent_memory.stores.attachments import set_aside
from agent_memory.stores.database import attachments, files, queries, rows, turns
from agent_memory.stores.database.retrying import retried
from agent_memory.stores.database.transactions import durable


def write(using: str, reservation: Reservation, entry: JournalEntry, seconds: float) -> bool:
    """
    Write an entry and hold the reservation for so many seconds; False: it was lost.

    The first entry of a turn brings the files of its message, that of a
    conversation yet to be inserts its hidden row. A call
    of a paused turn is claimed; False: it may not run, or was claimed before.
    """
    values = {
        "id": reservation.conversation_id,
        "reservation": reservation.turn_id,
        "reserved_key": reservation.once.key if reservation.once else "",
        "milliseconds": round(seconds * 1000),
    }
    note = _claim if isinstance(entry.value, ToolCall) else _note
    tries = count()
    first = not (reservation.journalled or reservation.paused)
    begun_with = [entry.user] if first and entry.user else []

    def work() -> bool:
        again = bool(next(tries))
        with durable(using):
            if reservation.new and not (again and _mark(using, values)):
                if entry.heading is None:  # the step before it was refused
                    return False
                turns.insert_placeholder(using, entry.heading, values, journalled=True)
            elif not reservation.new and not _mark(using, values):
                return False
            attachments.keep(
                using,
                reservation.conversation_id,
                begun_with,
                rows.local(datetime.now(UTC)),
                places,
                new=reservation.new and not again,
            )
            noted = note(using, reservation, entry, again=again)
            if not noted:
                transaction.set_rollback(True, using=using)
        return noted

    kept = files.written(using, reservation.conversation_id, begun_with, new=reservation.new)
    try:
        with kept as places:
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


def _note(using: str, reservation: Reservation, entry: JournalEntry, *, again: bool) -> bool:
    """Write the row of an entry, unless an earlier try has; a call that has a result is done."""
    held = reservation.conversation_id, reservation.turn_id
    written = queries.journal.rows(using, id=held[0], turn_id=held[1]) if again else ()
    if (entry.step, entry.index) in (row[:2] for row in written):
        return True
    row = {
        "conversation_id": reservation.conversation_id,
        "turn_id": reservation.turn_id,
        "step": entry.step,
        "index": entry.index,
        "entry": codec.encode(_entry_data(entry, reservation)),
        "created_at": rows.local(datetime.now(UTC)),
    }
    queries.journal_entry.run(using, row)
    if reservation.paused is not None and isinstance(entry.value, ToolResult):
        _approval(using, reservation, entry).filter(claim=reservation.turn_id).update(status="done")
    return True


def _claim(using: str, reservation: Reservation, entry: JournalEntry, *, again: bool) -> bool:
    """Claim an approved call; tell whether it may run, also when an earlier try has claimed it."""
    approval, token = _approval(using, reservation, entry), reservation.turn_id
    if approval.filter(status="approved").update(status="claimed", claim=token):
        return True
    return again and approval.filter(status="claimed", claim=token).exists()


def _approval(
    using: str, reservation: Reservation, entry: JournalEntry
) -> QuerySet[ToolApproval, ToolApproval]:
    assert reservation.paused is not None
    return ToolApproval.objects.using(using).filter(
        message=reservation.paused.stored.assistant_message_id,
        step=entry.step,
        index=entry.index,
    )


def record(using: str, conversation_id: str, token: str, *, hidden: bool) -> Answered:
    """
    Make a failed turn of what a dead worker journalled, in a transaction that has its place.

    A call without a result may have run. ``hidden``: it opens the conversation.
    """
    found = queries.journal.rows(using, id=conversation_id, turn_id=token)
    heading, turn = interrupted_turn(_entries(using, conversation_id, found))
    told = next(json.loads(text) for _, index, text in reversed(found) if index == -1)
    reservation = Reservation(
        conversation_id,
        token,
        placeholder=hidden,
        once=Once(*told["once"]) if told["once"] else None,
        begun_at=datetime.fromisoformat(told["begun"]),
        journalled=True,
    )
    made = turns.make(using, heading, turn, reservation)
    stored = turns.write_turn(using, heading, turn, reservation, made)
    assert stored is not None
    return Answered(turn, stored)


def entries(using: str, conversation_id: str, token: str) -> list[JournalEntry]:
    """Return what a turn has noted."""
    found = queries.journal.rows(using, id=conversation_id, turn_id=token)
    return list(_entries(using, conversation_id, found))


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
        "user": codec.encode_items(set_aside(reservation.conversation_id, entry.user.content)),
        "participant": heading.participant and [heading.participant.type, heading.participant.key],
        "agent": heading.agent,
        "title": [heading.title, heading.title_source],
        "once": once and [once.key, once.fingerprint],
        "begun": reservation.begun_at.isoformat(),
    }


def _entries(using: str, conversation_id: str, found: Sequence[rows.Row]) -> Iterator[JournalEntry]:
    user: Message | None = None
    for step, index, text in found:
        data = json.loads(text)
        codec.check_format(data["format"])
        if index == -1:
            if user is None:
                said = [codec.parts_value(data["user"])]
                user = Message("user", *attachments.with_bytes(using, conversation_id, said))
            heading = Heading(
                conversation_id,
                Participant(*data["participant"]) if data["participant"] else None,
                data["agent"],
                *data["title"],
            )
            yield JournalEntry(step, index, codec.step_value(data["step"]), heading, user)
        else:
            result = ToolResult.model_validate(data["result"], extra="ignore")
            yield JournalEntry(step, index, result)
