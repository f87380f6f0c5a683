"""What a conversation is doing, by the clock of its database."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet, TextChoices
from django.utils.translation import gettext_lazy as _

from agent_memory.models import ToolApproval
from agent_memory.stores.database.rows import local
from agent_memory.stores.database.terms import DatabaseMilliseconds


class State(TextChoices):
    """The values of the filter by status, the most pressing first."""

    ANSWERING = "answering", _("answering now")
    WAITING = "waiting", _("waits for approval")
    DECIDED = "decided", _("decided, not resumed")
    INTERRUPTED = "interrupted", _("interrupted")
    OPEN = "open", _("open")


_now = DatabaseMilliseconds()
_idle = Q(reserved_until__lte=_now)
_paused = Q(paused_position__isnull=False)


def _awaited() -> Exists:
    """Whether a paused turn has a call on which somebody can still decide."""
    return Exists(
        ToolApproval.objects.waiting().filter(
            message__conversation=OuterRef("pk"), message__position=OuterRef("paused_position") + 1
        )
    )


def in_state(state: str) -> Q | None:
    """Return the condition of a state, ``None`` for what is none."""
    conditions: dict[str, Any] = {
        # Most are free, and the database need not ask its clock for them.
        State.ANSWERING: Q(reserved_until__gt=0) & Q(reserved_until__gt=_now),
        State.WAITING: _paused & _idle & _awaited(),
        State.DECIDED: _paused & _idle & ~_awaited(),
        State.INTERRUPTED: Q(reserved_until__gt=0) & _idle & ~_paused,
        State.OPEN: Q(reserved_until=0) & ~_paused,
    }
    return conditions[State(state)] if state in State else None


def with_clock(conversations: QuerySet[Any]) -> Any:
    """Return conversations with what ``state_of()`` needs of the clock, and of their approvals."""
    return conversations.annotate(clock=DatabaseMilliseconds(), awaited=_awaited())


def state_of(conversation: Any) -> State:
    """Return the state of a conversation that was read ``with_clock()``."""
    if conversation.reserved_until > conversation.clock:
        return State.ANSWERING
    if conversation.paused_position is not None:
        return State.WAITING if conversation.awaited else State.DECIDED
    return State.INTERRUPTED if conversation.reserved_until else State.OPEN


def answering_since(conversation: Any) -> datetime | None:
    """Return when the turn began that a conversation read ``with_clock()`` is answering."""
    if state_of(conversation) is not State.ANSWERING:
        return None
    return local(datetime.fromtimestamp(conversation.reserved_since / 1000, UTC))
