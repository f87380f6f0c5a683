"""The named statements that read turns: windows, pages, and what stands under a key or a token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from django.db.models import F, FilteredRelation, Q, Value
from django.db.models.functions import Coalesce, Greatest, NullIf

from agent_memory.models import Conversation, ConversationMessage
from agent_memory.stores.database.statements import Constant, Param, Select
from agent_memory.stores.database.terms import MAX_INTEGER, RESERVED, TOTALS, integer, of

WINDOW = ("position", "status", "format", "content")
LED = ("position", "role", "format", "content")
"""
The same of a message before all turns, where its role stands for a status. Such a message has a
negative position; of turns, users have even ones and assistants odd ones.
"""


def _columns(names: Sequence[str], of_row: str = "") -> list[Any]:
    """Return columns, and behind them an answer's steps, or the parts of any other message."""
    items = Coalesce(NullIf(F(f"{of_row}parts"), Constant("[]")), F(f"{of_row}steps"))
    return [*(f"{of_row}{name}" for name in names), items]


def _window() -> Any:
    rows = ConversationMessage.objects.filter(conversation=of(Conversation, "id"))
    led = rows.filter(position__lt=0)
    turns = rows.filter(position__gte=Param("first", integer), position__lt=Param("end", integer))
    return turns.values_list(*_columns(WINDOW)).union(led.values_list(*_columns(LED)), all=True)


window = Select(_window)
"""Two ranges of the unique index, in no order: an OR of them would read the whole conversation."""


def _last_turns(also: Sequence[str]) -> Any:
    end = Coalesce(F("paused_position"), F("next_position"))
    first = Greatest(end - Param("rows", integer), Value(0))
    found = Conversation.objects.filter(id=of(Conversation, "id"))
    led = found.annotate(win=FilteredRelation("messages", condition=Q(messages__position__lt=0)))
    if not also:
        led = led.filter(win__isnull=False)
    turns = found.annotate(
        win=FilteredRelation(
            "messages", condition=Q(messages__position__gte=first, messages__position__lt=end)
        )
    ).filter(win__isnull=False)
    nothing = [Constant(None) for _ in also]
    return led.values_list(*also, *_columns(LED, "win__")).union(
        turns.values_list(*nothing, *_columns(WINDOW, "win__")), all=True
    )


last_turns = Select(lambda: _last_turns(()))
"""The window of a conversation that nobody holds."""

counters_and_last_turns = Select(lambda: _last_turns(RESERVED))
"""
The same behind ``RESERVED``, for which turns have nulls: to repeat them takes as long as to read them.

A conversation that no message leads has a row of them and of nulls.
"""

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

keyed_position = Select(
    lambda: ConversationMessage.objects.filter(
        conversation=of(Conversation, "id"),
        idempotency_key=of(ConversationMessage, "idempotency_key"),
    ).values_list("position", "fingerprint")
)

TURN = ("id", "turn_id", "status", "format", "content", "parts", "steps", "meta")

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


HOLES = 100
"""How many rows that somebody deleted by hand may be missing from what is read at once."""


def lower_ends(below: int | None, rows: int) -> Iterator[int]:
    """
    Yield from where on to seek so many rows below a position: nearby, then anywhere.

    The positions of a conversation follow each other. To a range with one end MariaDB
    walks from the newest message, where the conversation is a large part of its table.
    """
    if below is not None and (nearby := below - rows - HOLES) > 0:
        yield nearby
    yield -MAX_INTEGER


@cache
def page(rows: int) -> Select:
    """So many messages below a position and from another one on, newest first."""
    return Select(
        lambda: (
            ConversationMessage.objects.filter(
                conversation=of(Conversation, "id"),
                position__lt=of(ConversationMessage, "position"),
                position__gte=Param("lowest", integer),
            )
            .order_by("-position")
            .values_list(*PAGE)[:rows]
        )
    )
