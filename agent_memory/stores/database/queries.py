"""The named statements of a turn's hot path, and those that say why one did not match."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from django.db import models
from django.db.models import Case, Exists, F, FilteredRelation, Func, OuterRef, Q, Value, When
from django.db.models.functions import Coalesce, Greatest

from agent_memory.models import (
    Conversation,
    ConversationAttachment,
    ConversationMessage,
    ToolApproval,
    TurnJournal,
)
from agent_memory.stores.database.statements import Delete, Insert, Param, Select, Update

Owner = Literal["anybody", "nobody", "participant"]

TOTALS = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")

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
    return Param(name, model._meta.get_field(name))  # type: ignore[arg-type]


def mine() -> models.QuerySet[Conversation]:
    """The conversation that a token holds."""
    return Conversation.objects.filter(
        id=of(Conversation, "id"), reservation=of(Conversation, "reservation")
    )


RESERVED = ("next_position", "participant_type_id", "participant_key", "title_source", "opened_at")


@cache
def reserve(owner: Owner, keyed: bool) -> Update:
    """
    Take a free, expired or own reservation; give back ``RESERVED``.

    Not free is a dead placeholder, which nobody owns, and what expired with
    entries in the journal: they are dropped and buried first. ``keyed``: nor is
    a conversation that has a turn of this key.
    """

    def build() -> Any:
        free = Q(
            reserved_until__lte=DatabaseMilliseconds(), journalled=False, opened_at__isnull=False
        )
        found = Conversation.objects.filter(
            free | Q(reservation=of(Conversation, "reservation")),
            id=of(Conversation, "id"),
            paused_position__isnull=True,
        )
        if keyed:
            found = found.filter(
                ~Exists(
                    ConversationMessage.objects.filter(
                        conversation=OuterRef("pk"),
                        idempotency_key=of(Conversation, "reserved_key"),
                    )
                )
            )
        if owner == "nobody":
            found = found.filter(participant_type__isnull=True)
        elif owner == "participant":
            found = found.filter(
                participant_type=Param("participant_type_id", integer),
                participant_key=of(Conversation, "participant_key"),
            )
        changes = {
            "reservation": of(Conversation, "reservation"),
            "reserved_since": DatabaseMilliseconds(),
            "reserved_until": DatabaseMilliseconds() + Param("milliseconds", integer),
            "reserved_key": of(Conversation, "reserved_key"),
        }
        return found, changes, RESERVED

    return Update(build)


placeholder = Insert(
    lambda: (
        Conversation,
        1,
        {
            "reserved_since": DatabaseMilliseconds(),
            "reserved_until": DatabaseMilliseconds() + Param("milliseconds", integer),
        },
    )
)

conversation = Insert(lambda: (Conversation, 1, {}))

turn_rows = Insert(lambda: (ConversationMessage, 2, {}))

obstacle = Select(
    lambda: Conversation.objects.filter(id=of(Conversation, "id")).values_list(
        "opened_at",
        "participant_type_id",
        "participant_key",
        "paused_position",
        "reserved_since",
        "reserved_until",
        "reservation",
        "reserved_key",
        "journalled",
        DatabaseMilliseconds(),
    )
)

renew = Update(
    lambda: (
        mine(),
        {"reserved_until": DatabaseMilliseconds() + Param("milliseconds", integer)},
        (),
    )
)

FREE: dict[str, Any] = {
    "reservation": Value(""),
    "reserved_since": Value(0),
    "reserved_until": Value(0),
    "reserved_key": Value(""),
    "journalled": Value(False),
}

release = Update(lambda: (mine(), FREE, ()))

drop_placeholder = Delete(lambda: mine().filter(opened_at__isnull=True))

lock = Update(lambda: (Conversation.objects.filter(id=of(Conversation, "id")), FREE, ()))


@cache
def append(titled: bool) -> Update:
    """Count a turn in and end its reservation."""

    def build() -> Any:
        changes: dict[str, Any] = {}
        if titled:
            changes["title"] = Case(
                When(title_source="", then=of(Conversation, "title")), default=F("title")
            )
            changes["title_source"] = Case(
                When(title_source="", then=of(Conversation, "title_source")),
                default=F("title_source"),
            )
        return mine(), changes | _counted_in(), ()

    return Update(build)


def _counted_in() -> dict[str, Any]:
    return {
        "next_position": F("next_position") + 2,
        "turn_count": F("turn_count") + 1,
        "last_activity": of(Conversation, "last_activity"),
        "opened_at": Coalesce(F("opened_at"), of(Conversation, "last_activity")),
        **{name: F(name) + of(Conversation, name) for name in TOTALS},
        **FREE,
    }


position = Select(
    lambda: Conversation.objects.filter(id=of(Conversation, "id")).values_list("next_position")
)

WINDOW = ("position", "role", "status", "format", "parts", "steps")


def _window() -> Any:
    rows = ConversationMessage.objects.filter(conversation=of(Conversation, "id"))
    led = rows.filter(position__lt=0).values_list(*WINDOW)
    return (
        rows.filter(position__gte=Param("first", integer)).values_list(*WINDOW).union(led, all=True)
    )


window = Select(_window)
"""Two ranges of the unique index, in no order: an OR of them would read the whole conversation."""


def _counters_and_window() -> Any:
    end = Coalesce(F("paused_position"), F("next_position"))
    first = Greatest(end - Param("rows", integer), Value(0))
    found = Conversation.objects.filter(id=of(Conversation, "id"))
    columns = (*RESERVED, *(f"win__{name}" for name in WINDOW))
    turns = Q(messages__position__gte=first, messages__position__lt=end)
    led = Q(messages__position__lt=0)
    return (
        found.annotate(win=FilteredRelation("messages", condition=turns))
        .values_list(*columns)
        .union(
            found.annotate(win=FilteredRelation("messages", condition=led))
            .filter(win__isnull=False)
            .values_list(*columns),
            all=True,
        )
    )


counters_and_window = Select(_counters_and_window)
"""``RESERVED`` and ``WINDOW`` at once; a conversation without turns has one row of nulls."""

latest = Select(
    lambda: (
        ConversationMessage.objects.filter(
            participant_type=Param("participant_type_id", integer),
            participant_key=of(Conversation, "participant_key"),
            agent=of(Conversation, "agent"),
        )
        .order_by("-id")
        .values_list("conversation_id")[:1]
    )
)

turn_of = Select(
    lambda: (
        ConversationMessage.objects.filter(
            conversation=of(Conversation, "id"),
            position__gte=of(ConversationMessage, "position"),
            turn_id=of(ConversationMessage, "turn_id"),
        )
        .order_by("position")
        .values_list("id", "status", "error_code")
    )
)

keyed_position = Select(
    lambda: ConversationMessage.objects.filter(
        conversation=of(Conversation, "id"),
        idempotency_key=of(ConversationMessage, "idempotency_key"),
    ).values_list("position", "fingerprint")
)

TURN = ("id", "turn_id", "status", "format", "parts", "steps", "meta")

turn_at = Select(
    lambda: (
        ConversationMessage.objects.filter(
            conversation=of(Conversation, "id"),
            position__gte=of(ConversationMessage, "position"),
            position__lte=of(ConversationMessage, "position") + 1,
        )
        .order_by("position")
        .values_list(*TURN)
    )
)

journal_mark = Update(
    lambda: (
        mine(),
        {
            "journalled": Value(True),
            "reserved_until": DatabaseMilliseconds() + Param("milliseconds", integer),
        },
        (),
    )
)

journal_entry = Insert(lambda: (TurnJournal, 1, {}))

journal = Select(
    lambda: (
        TurnJournal.objects.filter(
            conversation=of(Conversation, "id"), turn_id=of(TurnJournal, "turn_id")
        )
        .order_by("step", "index")
        .values_list("step", "index", "entry")
    )
)

drop_journal = Delete(lambda: TurnJournal.objects.filter(conversation=of(Conversation, "id")))


bury = Update(
    lambda: (
        mine().filter(journalled=True, reserved_until__lte=DatabaseMilliseconds()),
        {"reserved_until": DatabaseMilliseconds() + Param("milliseconds", integer)},
        (),
    )
)
"""Take the place of a worker that is dead, if it is."""

PAGE = (
    "id",
    "position",
    "role",
    "content",
    "created_at",
    "parts",
    "steps",
    "meta",
    "status",
    "format",
    "agent",
    "participant_type_id",
    "participant_key",
    *TOTALS,
)


@cache
def page(rows: int) -> Select:
    """So many messages below a position, newest first."""
    return Select(
        lambda: (
            ConversationMessage.objects.filter(
                conversation=of(Conversation, "id"),
                position__lt=of(ConversationMessage, "position"),
            )
            .order_by("-position")
            .values_list(*PAGE)[:rows]
        )
    )


everything = (
    Delete(lambda: ToolApproval.objects.filter(message__in=_messages().values("id"))),
    Delete(lambda: TurnJournal.objects.filter(conversation=of(Conversation, "id"))),
    Delete(lambda: ConversationAttachment.objects.filter(conversation=of(Conversation, "id"))),
    Delete(lambda: _messages()),
    Delete(lambda: Conversation.objects.filter(id=of(Conversation, "id"))),
)
"""All rows of a conversation, in the order in which they may go."""


def _messages() -> models.QuerySet[ConversationMessage]:
    return ConversationMessage.objects.filter(conversation=of(Conversation, "id"))
