"""Statements that are compiled once: what is bound to them later, on each database."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import connection, models
from django.db.models import F, Value
from django.db.models.functions import Concat, Length
from django.test.utils import CaptureQueriesContext

from agent_memory.models import Conversation
from agent_memory.records import Heading
from agent_memory.stores.database import readings, rows
from agent_memory.stores.database.statements import Param, Select, Update
from agent_memory.stores.database.terms import integer, of

pytestmark = pytest.mark.django_db

ODD = "50%s of %(id)s, 'quoted', :id and ?"


@pytest.fixture
def conversation() -> Conversation:
    row = rows.conversation_row(Heading(ODD), "default", moment=datetime.now(UTC), opened=True)
    return Conversation.objects.create(**row | {"next_position": 7})


def test_what_is_bound_is_what_was_given_whatever_its_signs(conversation):
    found = Conversation.objects.filter(id=of(Conversation, "id"))
    remainder = F("next_position") % Param("divisor", integer)
    named = Concat(F("id"), Value(ODD), Param("divisor", integer), output_field=models.TextField())
    read = Select(
        lambda: found.annotate(rest=remainder, named=named).values_list("id", "rest", "named")
    )
    assert read.rows("default", id=ODD, divisor=4) == [(ODD, 3, f"{ODD}{ODD}4")]
    assert read.rows("default", id="another", divisor=4) == []


def test_nothing_may_be_bound_and_columns_be_assigned_in_order(conversation):
    wide = of(Conversation, "paused_position")
    found = Conversation.objects.filter(id=of(Conversation, "id"), title=of(Conversation, "title"))
    change = Update(lambda: (found, {"paused_position": wide, "title": Length("id")}, ()))
    assert change.run("default", id=ODD, title="", paused_position=None) is not None
    conversation.refresh_from_db()
    assert (conversation.paused_position, conversation.title) == (None, str(len(ODD)))


def test_a_value_that_is_missing_is_named():
    with pytest.raises(KeyError, match="rows"):
        readings.last_turns.rows("default", id=ODD)


def test_who_reads_along_sees_the_values(conversation):
    with CaptureQueriesContext(connection) as queries:
        readings.last_turns.rows("default", id="the-one", rows=3)
    (query,) = queries
    assert "the-one" in query["sql"]
    assert "%(" not in query["sql"]
