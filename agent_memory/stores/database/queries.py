"""The named statements that reserve and write, and those that say why one did not match."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from django.db import models
from django.db.models import Case, Exists, F, OuterRef, Q, Value, When
from django.db.models.functions import Coalesce

from agent_memory.models import (
    Conversation,
    ConversationAttachment,
    ConversationMessage,
    ToolApproval,
    TurnJournal,
)
from agent_memory.stores.database.statements import (
    Constant,
    Delete,
    Insert,
    Param,
    Select,
    Update,
)
from agent_memory.stores.database.terms import (
    ANSWERED,
    ASKED,
    FREE,
    RESERVED,
    TOTALS,
    DatabaseMilliseconds,
    integer,
    mine,
    of,
)

Owner = Literal["anybody", "nobody", "participant"]


@cache
def reserve(owner: Owner, keyed: bool, paused: bool) -> Update:
    """
    Take a free, expired or own reservation; give back ``RESERVED``.

    Not free is a dead placeholder, which nobody owns, and what expired with
    entries in the journal: they are dropped and buried first. ``keyed``: nor is
    a conversation that has a turn of this key. ``paused``: one with a paused
    turn is meant, else one without.
    """

    def build() -> Any:
        free = Q(
            reserved_until__lte=DatabaseMilliseconds(), journalled=False, opened_at__isnull=False
        )
        found = Conversation.objects.filter(
            free | Q(reservation=of(Conversation, "reservation")),
            id=of(Conversation, "id"),
            paused_position__isnull=not paused,
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
        [
            {
                "reserved_since": DatabaseMilliseconds(),
                "reserved_until": DatabaseMilliseconds() + Param("milliseconds", integer),
            }
        ],
    )
)

conversation = Insert(lambda: (Conversation, [{}]))

turn_rows = Insert(
    lambda: (
        ConversationMessage,
        [
            {name: Constant(value) for name, value in columns.items()}
            for columns in (ASKED, ANSWERED)
        ],
    )
)
"""What is the same in all rows stands in the statement: psycopg keeps none of over 50 values."""


@cache
def attachments(count: int) -> Insert:
    """So many rows of attachments, with their bytes."""
    return Insert(lambda: (ConversationAttachment, [{}] * count), apart=True)


places = Select(
    lambda: (
        ConversationAttachment.objects.filter(conversation=of(Conversation, "id"))
        .exclude(stored_name="")
        .values_list("storage", "stored_name")
    )
)
"""The files of a conversation in a storage."""

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

release = Update(lambda: (mine(), FREE, ()))

drop_placeholder = Delete(lambda: mine().filter(opened_at__isnull=True))

lock = Update(lambda: (Conversation.objects.filter(id=of(Conversation, "id")), FREE, ()))


reserved = Select(
    lambda: Conversation.objects.filter(id=of(Conversation, "id")).values_list(*RESERVED)
)
"""What ``reserve`` gives back, where the database has no way to."""


@cache
def append(titled: bool, paused: bool) -> Update:
    """Count a turn in and end its reservation."""

    def build() -> Any:
        changes: dict[str, Any] = {}
        if paused:
            changes["paused_position"] = F("next_position")
            changes["undecided_count"] = of(Conversation, "undecided_count")
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

turn_of = Select(
    lambda: (
        ConversationMessage.objects.filter(
            conversation=of(Conversation, "id"),
            position__gte=of(ConversationMessage, "position"),
            turn_id=of(ConversationMessage, "turn_id"),
        )
        .order_by("position")
        .values_list("position", "id", "status", "error_code")
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

journal_entry = Insert(lambda: (TurnJournal, [{}]))

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

everything = (
    Delete(lambda: ToolApproval.objects.filter(message__conversation=of(Conversation, "id"))),
    Delete(lambda: TurnJournal.objects.filter(conversation=of(Conversation, "id"))),
    Delete(lambda: ConversationAttachment.objects.filter(conversation=of(Conversation, "id"))),
    Delete(lambda: _messages()),
    Delete(lambda: Conversation.objects.filter(id=of(Conversation, "id"))),
)
"""All rows of a conversation, in the order in which they may go."""


def _messages() -> models.QuerySet[ConversationMessage]:
    return ConversationMessage.objects.filter(conversation=of(Conversation, "id"))
