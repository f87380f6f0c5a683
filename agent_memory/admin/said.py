"""What a row of a message holds, read one by one, so that a row too new spoils no other."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from agent_memory.admin.waiting import has_expired
from agent_memory.exceptions import UnsupportedFormat
from agent_memory.messages import StepItem, ToolCall
from agent_memory.models import ConversationMessage, ToolApproval
from agent_memory.records import StoredPart
from agent_memory.stores import codec

UNREADABLE = (UnsupportedFormat, ValueError, TypeError, RecursionError)


@dataclass(frozen=True, slots=True)
class Said:
    """
    The parts of a message and the items of its steps, each with the approval it needed.

    ``models`` are those that answered; ``error`` is what a failed turn died of.
    """

    parts: tuple[StoredPart, ...]
    items: tuple[tuple[StepItem, ToolApproval | None], ...]
    models: tuple[str, ...]
    error: dict[str, Any] | None


def said(row: ConversationMessage) -> Said | None:
    """Return what a row holds, ``None`` where this version cannot read it."""
    try:
        codec.check_format(row.format)
        (parts,) = codec.decode_parts([(row.parts, row.content)])
        (steps,) = codec.decode_steps([(row.steps, row.content)])
        error = dict(json.loads(row.meta)).get("error")
    except UNREADABLE:
        return None
    approvals = {(each.step, each.index): each for each in row.approvals.all()}
    items: list[tuple[StepItem, ToolApproval | None]] = []
    for number, step in enumerate(steps):
        calls = 0
        for item in step.items:
            is_call = isinstance(item, ToolCall)
            items.append((item, approvals.get((number, calls)) if is_call else None))
            calls += is_call
    models = dict.fromkeys(step.model for step in steps if step.model)
    return Said(parts, tuple(items), tuple(models), error)


def outcome_of(call: ToolCall, status: str, approval: ToolApproval | None) -> str:
    """
    Return what became of a call of a turn of some status.

    ``done``, ``failed`` and ``denied`` have a result; ``unanswered`` and
    ``interrupted`` will get none. Else it is the status of its approval.
    """
    if call.result is not None:
        if call.result.denied:
            return "denied"
        return "failed" if call.result.failed else "done"
    if status == "paused" and call.approval_reason is not None:
        if approval is None:
            return "pending"
        return "expired" if has_expired(approval) else approval.status
    if status == "failed" and call.approval_reason is None:
        return "interrupted"
    return "unanswered"
