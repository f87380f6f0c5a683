"""
Tool calls that wait for a person: what is asked, what is decided, what becomes of it.

Deciding and running are two things. A decision settles one call, once; when
nothing is undecided, whoever resumes the turn runs it on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import JsonValue, TypeAdapter

from agent_memory.exceptions import ApprovalMismatch
from agent_memory.messages import ToolCall, ToolResult, Turn
from agent_memory.participants import Participant

ApprovalStatus = Literal[
    "pending", "approved", "denied", "expired", "claimed", "done", "interrupted"
]

EVERY_OTHER = "*"
"""The key of the decision on all calls that no other key names."""

DENIED = "This call was not approved, and was not run."
EXPIRED = "The approval of this call expired, and it was not run."

_arguments = TypeAdapter(dict[str, JsonValue])


@dataclass(frozen=True, slots=True)
class PendingApproval:
    """A tool call that waits for a decision; ``id`` is that of the call within its pause."""

    id: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Approve:
    """Run the call as it was asked."""


@dataclass(frozen=True, slots=True)
class Deny:
    """
    Do not run the call.

    With a text, which the model is told, the turn goes on; a turn of which all
    calls are denied without one ends without a further answer.
    """

    text: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise ValueError(f"Deny() takes a text, not {type(self.text).__name__}.")


@dataclass(frozen=True, slots=True)
class Edit:
    """Run the call with other arguments, all of them: they are not merged."""

    arguments: dict[str, Any]

    def __post_init__(self) -> None:
        try:
            _arguments.validate_python(self.arguments, strict=True)
            json.dumps(self.arguments, allow_nan=False)
        except ValueError:
            raise ValueError("Edit() takes a dict of JSON-able arguments by name.") from None


Decision = Approve | Deny | Edit
Decisions = Mapping[str, Decision]


@dataclass(frozen=True, slots=True)
class Approval:
    """
    One gated call of a paused turn, and what became of it.

    ``step`` and ``index`` tell which call of the turn. ``status``: ``pending``
    until decided; ``approved``, ``denied`` or ``expired`` then; ``claimed`` by
    the worker that starts the tool, ``done`` with its result, ``interrupted``
    when the worker died in between. ``edited`` are the arguments to run, where a
    person changed them; ``text`` is what a denial tells the model.
    """

    step: int
    index: int
    asked: PendingApproval
    status: ApprovalStatus = "pending"
    edited: dict[str, Any] | None = None
    text: str = ""
    decided_by: Participant | None = None
    decided_at: datetime | None = None
    note: str = ""

    @property
    def is_undecided(self) -> bool:
        """Whether it waits, or has expired without a decision."""
        return self.status == "pending"

    @property
    def refusal(self) -> ToolResult | None:
        """The result of a call that must not run, or ``None``."""
        if self.status == "denied":
            return ToolResult(value=self.text or DENIED, denied=True)
        if self.status == "expired":
            return ToolResult(value=EXPIRED, denied=True)
        return None

    @property
    def ends_the_turn(self) -> bool:
        """Whether the model need not hear of it."""
        return self.status == "expired" or (self.status == "denied" and not self.text)

    def has_expired(self, now: datetime) -> bool:
        """Tell whether nobody decided in time."""
        expires_at = self.asked.expires_at
        return self.is_undecided and expires_at is not None and expires_at <= now


def pending(
    approvals: Iterable[Approval], now: datetime | None = None
) -> tuple[PendingApproval, ...]:
    """Return what still waits, and has not expired."""
    moment = now or datetime.now(UTC)
    return tuple(
        approval.asked
        for approval in approvals
        if approval.is_undecided and not approval.has_expired(moment)
    )


def asked_in(turn: Turn, described: Iterable[PendingApproval] = ()) -> tuple[Approval, ...]:
    """
    Return the approvals that a paused turn asks for: the gated calls of its last step.

    ``described`` tells more of them than the turn does, such as when they expire.
    """
    if not turn.steps:
        return ()
    known = {each.id: each for each in described}
    return tuple(
        Approval(len(turn.steps) - 1, index, known.get(call.id) or of_call(call))
        for index, call in enumerate(turn.steps[-1].tool_calls())
        if call.approval_reason is not None and call.result is None
    )


def of_call(call: ToolCall, expires_at: datetime | None = None) -> PendingApproval:
    """Return what a gated call asks for."""
    return PendingApproval(
        call.id, call.name, call.arguments, call.approval_reason or "", expires_at
    )


def match(waiting: Iterable[PendingApproval], decisions: object) -> dict[str, Decision]:
    """
    Return the decision on each call that one is made on, by its id.

    ``"*"`` decides on every call that no other key names. Raises
    ``ApprovalMismatch`` for an id that does not wait, and ``ValueError`` for what
    is no decision.
    """
    waiting = tuple(waiting)
    ids = [each.id for each in waiting]
    if not isinstance(decisions, Mapping) or not decisions:
        raise ValueError('Decisions are {call_id: Approve() / Deny("why") / Edit({...})}.')
    for call_id, decision in decisions.items():
        if not isinstance(call_id, str):
            raise ValueError(f"A call id is text, not {type(call_id).__name__}.")
        if not isinstance(decision, Approve | Deny | Edit):
            raise ValueError(
                f"A decision is Approve(), Deny() or Edit({{...}}), not {decision!r:.80}."
            )
        if call_id not in ids and call_id != EVERY_OTHER:
            raise ApprovalMismatch(
                f"No call {call_id!r:.80} waits for a decision: it is unknown, decided or "
                f"expired. {_waiting(ids)}",
                waiting,
            )
    if EVERY_OTHER in decisions and not ids:
        raise ApprovalMismatch("No call waits for a decision.", ())
    rest = decisions.get(EVERY_OTHER)
    found = {call_id: decisions.get(call_id, rest) for call_id in ids}
    return {call_id: decision for call_id, decision in found.items() if decision is not None}


def decided(
    approval: Approval,
    decision: Decision,
    *,
    by: Participant | None,
    note: str,
    at: datetime,
) -> Approval:
    """Return an approval with the decision on it."""
    approval = replace(approval, decided_by=by, decided_at=at, note=note)
    match decision:
        case Approve():
            return replace(approval, status="approved")
        case Edit(arguments):
            return replace(approval, status="approved", edited=arguments)
        case Deny(text):
            return replace(approval, status="denied", text=text)


def _waiting(ids: list[str]) -> str:
    return f"What waits: {', '.join(ids)}." if ids else "Nothing waits."
