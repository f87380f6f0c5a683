"""What the named statements are made of: parameters, the database's clock, what a free row holds."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Func, Value

from agent_memory.models import Conversation
from agent_memory.stores.codec import FORMAT
from agent_memory.stores.database.statements import Param

MAX_INTEGER = 2**31 - 1
"""The largest that every database holds in a column of integers."""

TOTALS = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")

RESERVED = (
    "next_position",
    "paused_position",
    "participant_type_id",
    "participant_key",
    "title_source",
    "opened_at",
)
"""What a reservation tells of its conversation."""

FREE: dict[str, Any] = {
    "reservation": Value(""),
    "reserved_since": Value(0),
    "reserved_until": Value(0),
    "reserved_key": Value(""),
    "journalled": Value(False),
}

UNANSWERED: dict[str, Any] = {
    "steps": "[]",
    "meta": "{}",
    "replay": "",
    "status": "completed",
    "format": FORMAT,
    "model": "",
    "provider": "",
    "finish_reason": "",
    "error_code": "",
    **dict.fromkeys(TOTALS, 0),
}
"""What the row of a message holds that no agent has said."""

UNSAID: dict[str, Any] = {
    "participant_type_id": None,
    "participant_key": "",
    "idempotency_key": None,
    "fingerprint": "",
    "format": FORMAT,
}
"""What the row of a message holds that no participant has said in a turn."""

ASKED = {"role": "user", **UNANSWERED}
ANSWERED = {"role": "assistant", "parts": "[]", **UNSAID}
"""What the two rows of a turn hold in every turn, until it is settled."""

integer = models.BigIntegerField()


class DatabaseMilliseconds(Func):
    """Milliseconds since 1970 by the clock of the database node."""

    arity = 0
    output_field = models.BigIntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return "CAST(ROUND((JULIANDAY('NOW') - 2440587.5) * 86400000) AS INTEGER)", []

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return "(EXTRACT(EPOCH FROM CLOCK_TIMESTAMP()) * 1000)::bigint", []

    def as_mysql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000", []


def of(model: type[models.Model], name: str) -> Param:
    """Return a parameter of the type of the field that it is named after."""
    field = model._meta.get_field(name)
    assert isinstance(field, models.Field)
    return Param(name, field)


def mine() -> models.QuerySet[Conversation]:
    """The conversation that a token holds."""
    return Conversation.objects.filter(
        id=of(Conversation, "id"), reservation=of(Conversation, "reservation")
    )
