"""Approvals as rows: written with the turn that asks, read by its last pause, settled one by one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db.models import F

from agent_memory.approvals import Approval, PendingApproval
from agent_memory.models import ToolApproval
from agent_memory.records import readable
from agent_memory.stores import codec
from agent_memory.stores.database import rows

CALL = ("id", "name", "arguments", "reason")

COLUMNS = (
    "step",
    "index",
    "asked",
    "expires_at",
    "status",
    "arguments_used",
    "denial",
    "decided_by_type_id",
    "decided_by_key",
    "decided_at",
    "note",
)


def insert(
    using: str, message_id: int, agent: str, asked: Iterable[Approval], now: datetime
) -> None:
    """Write the approvals that a turn asks for; ``message_id`` is that of its answer."""
    ToolApproval.objects.using(using).bulk_create(
        ToolApproval(
            message_id=message_id,
            step=each.step,
            index=each.index,
            call_id=readable(each.asked.id)[:255],
            tool=readable(each.asked.name)[:255],
            reason=readable(each.asked.reason),
            asked=codec.encode({name: getattr(each.asked, name) for name in CALL}),
            agent=agent,
            expires_at=each.asked.expires_at and rows.local(each.asked.expires_at),
            created_at=now,
        )
        for each in asked
    )


def of_pause(using: str, conversation_id: str) -> tuple[Approval, ...]:
    """Return the approvals of a paused turn's last pause, in the order of its calls."""
    found = (
        ToolApproval.objects.using(using)
        .filter(
            message__conversation=conversation_id,
            message__position=F("message__conversation__paused_position") + 1,
        )
        .order_by("step", "index")
        .values_list(*COLUMNS)
    )
    approvals = [_value(row, using) for row in found]
    return tuple(each for each in approvals if each.step == approvals[-1].step)


def change(
    using: str, message_id: int, before: Iterable[Approval], after: Iterable[Approval]
) -> bool:
    """
    Write what became of approvals; tell whether all had the status that they had before.

    Those that had not stay as they are.
    """
    known = {(each.step, each.index): each for each in before}
    changed = [each for each in after if each != known[each.step, each.index]]
    written = [
        ToolApproval.objects.using(using)
        .filter(
            message_id=message_id,
            step=each.step,
            index=each.index,
            status=known[each.step, each.index].status,
        )
        .update(**_columns(each, using))
        for each in changed
    ]
    return all(written)


def _columns(approval: Approval, using: str) -> dict[str, Any]:
    by = rows.participant_columns(approval.decided_by, using)
    return {
        "status": approval.status,
        "arguments_used": "" if approval.edited is None else codec.encode(approval.edited),
        "denial": codec.encode(approval.text) if approval.text else "",
        "decided_by_type_id": by["participant_type_id"],
        "decided_by_key": by["participant_key"],
        "decided_at": approval.decided_at and rows.local(approval.decided_at),
        "note": approval.note,
    }


def _value(row: rows.Row, using: str) -> Approval:
    step, index, asked, expires_at, status, used, denial, type_id, key, decided_at, note = row
    call = json.loads(asked)
    return Approval(
        step,
        index,
        PendingApproval(
            **{name: call[name] for name in CALL},
            expires_at=expires_at and rows.aware(expires_at),
        ),
        status,
        edited=json.loads(used) if used else None,
        text=json.loads(denial) if denial else "",
        decided_by=rows.participant_value(type_id, key, using),
        decided_at=decided_at and rows.aware(decided_at),
        note=note,
    )
