"""
A paused turn as every store treats it: who must wait, what is decided, how it goes on and ends.

Approvals are those of the turn's last pause, in the order of its calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from agent_memory import conf
from agent_memory.approvals import (
    EVERY_OTHER,
    Approval,
    Decisions,
    PendingApproval,
    asked_in,
    decided,
    match,
    pending,
)
from agent_memory.exceptions import (
    ApprovalMismatch,
    ApprovalNotResumable,
    ApprovalsPending,
    ConversationConflict,
)
from agent_memory.messages import ToolResult, Turn, TurnError, Usage
from agent_memory.participants import Participant
from agent_memory.records import Reservation
from agent_memory.storable import is_storable

Approvals = tuple[Approval, ...]

DISCARDED = TurnError(code="Discarded")
"""What a paused turn died of that was given up when a tool of it had started."""


def blocked(conversation_id: str, approvals: Approvals, now: datetime) -> ApprovalsPending:
    """Return what a prompt gets while a turn is paused."""
    waiting = pending(approvals, now)
    if waiting:
        todo = (
            f"waits for a decision on {', '.join(each.id for each in waiting)}. Decide, and go on"
        )
    else:
        todo = "has a paused turn of which everything is decided. Go on"
    return ApprovalsPending(
        f"Conversation {conversation_id!r} {todo} with agent.resume(), or drop the turn with "
        "agent.discard_pending().",
        waiting,
    )


def not_resumable(conversation_id: str) -> ApprovalNotResumable:
    return ApprovalNotResumable(f"No turn of conversation {conversation_id!r} is paused.")


def check_appends(reservation: Reservation, turn: Turn) -> None:
    """Raise ``ConversationConflict`` for the reservation of a resume, under which no turn begins."""
    if reservation.paused is not None:
        raise ConversationConflict(
            reservation.conversation_id,
            turn,
            message="This reservation is for going on with a paused turn: settle() writes what "
            "became of it, append() a turn of its own.",
        )


def check_note(note: object) -> str:
    """Return a note that every store can hold; raises ``ValueError`` for anything else."""
    if not isinstance(note, str):
        raise ValueError(f"A note is text, not {type(note).__name__}.")
    if not is_storable(note):
        raise ValueError("A note holds neither NUL nor lone surrogates.")
    return note


def decide(
    conversation_id: str,
    approvals: Approvals | None,
    decisions: Decisions,
    *,
    by: Participant | None,
    note: str,
    at: datetime,
) -> Approvals:
    """
    Return the approvals that decisions settle, as they are then.

    ``None`` as approvals: nothing is paused. Raises as ``ConversationStore.decide()`` does.
    """
    waiting = pending(approvals or (), at)
    try:
        chosen = match(waiting, decisions)
    except ApprovalMismatch:
        if approvals is None and decisions.keys() == {EVERY_OTHER}:
            raise not_resumable(conversation_id) from None
        raise
    return tuple(
        decided(approval, chosen[approval.asked.id], by=by, note=note, at=at)
        for approval in approvals or ()
        if approval.asked.id in chosen and approval.is_undecided and not approval.has_expired(at)
    )


def expired(approvals: Approvals, now: datetime) -> Approvals:
    """Return approvals of which each that nobody decided in time has expired."""
    return tuple(
        replace(approval, status="expired") if approval.has_expired(now) else approval
        for approval in approvals
    )


def is_wholly_expired(approvals: Approvals) -> bool:
    """Tell whether no call may run and one has expired: nobody need come back to the turn."""
    statuses = {approval.status for approval in approvals}
    return "expired" in statuses and statuses <= {"expired", "denied"}


def refused(turn: Turn, approvals: Approvals) -> Turn:
    """Return a paused turn as completed: the calls that must not run have results that say so."""
    results: dict[int, dict[int, ToolResult]] = {}
    for approval in approvals:
        if (refusal := approval.refusal) is not None:
            results.setdefault(approval.step, {})[approval.index] = refusal
    steps = tuple(
        step.with_results(results.get(number, {})) for number, step in enumerate(turn.steps)
    )
    return turn.model_copy(update={"steps": steps, "status": "completed"})


def claimed(approvals: Approvals, step: int, index: int) -> Approvals | None:
    """Return approvals with that of one call claimed; ``None``: it may not run, or runs already."""
    place = step, index
    may_run = {(each.step, each.index) for each in approvals if each.status == "approved"}
    if place not in may_run:
        return None
    return tuple(
        replace(each, status="claimed") if (each.step, each.index) == place else each
        for each in approvals
    )


def done(turn: Turn, approvals: Approvals) -> Approvals:
    """Return approvals of which each approved call that has a result is done."""
    results = {
        (number, index)
        for number, step in enumerate(turn.steps)
        for index, call in enumerate(step.tool_calls())
        if call.result is not None
    }
    return tuple(
        replace(each, status="done")
        if each.status in ("approved", "claimed") and (each.step, each.index) in results
        else each
        for each in approvals
    )


def paused_again(
    turn: Turn, approvals: Approvals, described: Iterable[PendingApproval] = ()
) -> Approvals:
    """Return the approvals of a turn that pauses: those of a further pause, if it asks anew."""
    known = {(each.step, each.index) for each in approvals}
    asked = asked_in(turn, described)
    further = tuple(each for each in asked if (each.step, each.index) not in known)
    return further or done(turn, approvals)


def has_started(turn: Turn, approvals: Approvals) -> bool:
    """Tell whether a tool of a paused turn has run, or may have."""
    return any(not result.denied for result in turn.tool_results()) or any(
        approval.status in ("claimed", "done", "interrupted") for approval in approvals
    )


def discarded(turn: Turn) -> Turn:
    """Return a paused turn as the failed one that is kept of it when it is given up."""
    return turn.model_copy(update={"status": "failed", "error": DISCARDED})


def without_replay(turn: Turn) -> Turn:
    """Return a turn as it is kept: opaque blocks are only those of a paused one, by default."""
    if turn.status == "paused" or all(step.replay is None for step in turn.steps):
        return turn
    if conf.setting("KEEP_REPLAY"):
        return turn
    steps = tuple(step.model_copy(update={"replay": None}) for step in turn.steps)
    return turn.model_copy(update={"steps": steps})


def grown(before: Turn, after: Turn) -> Usage:
    """Return the tokens that a turn took since it was written."""
    old, new = before.usage + before.title_usage, after.usage + after.title_usage
    return Usage(**{name: getattr(new, name) - getattr(old, name) for name in Usage.model_fields})
