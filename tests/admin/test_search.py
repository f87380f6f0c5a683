"""Searching conversations, and the filter by what they are doing: what is found, and at what cost."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agent_memory.admin import search
from agent_memory.approvals import Approve
from agent_memory.models import Conversation
from agent_memory.participants import Participant
from tests.admin import talks
from tests.admin.saying import CONVERSATIONS, MESSAGES, store, talk
from tests.testapp.models import Team

pytestmark = pytest.mark.django_db


def found(client: Client, url: str = CONVERSATIONS, **query: str) -> list[Any]:
    response = client.get(url, query)
    assert response.status_code == 200
    return [row.pk for row in response.context["cl"].result_list]


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let searches read two rows."""
    monkeypatch.setattr(search, "MAX_SEARCHED", 2)


# Search.


def test_conversations_are_found_by_the_name_of_their_participant(admin_client: Client) -> None:
    ann = User.objects.create_user("ann", email="a@kiel.example", last_name="O'Neill")
    bob = User.objects.create_user("bob")
    talk("one", ann)
    talk("two", bob)
    talk("three", Team.objects.create(name="ann", pk=bob.pk))
    for term in ("ann", "ANN", "kiel.example", "o'neill"):
        assert found(admin_client, q=term) == ["one"]


def test_who_may_not_look_for_users_finds_no_conversation_by_their_name(client: Client) -> None:
    looker = User.objects.create_user("looker", is_staff=True)
    looker.user_permissions.add(Permission.objects.get(codename="view_conversation"))
    client.force_login(looker)
    ann = User.objects.create_user("ann")
    talk("one", ann)
    assert found(client, q="ann") == []
    assert found(client, q=str(ann.pk)) == ["one"]
    looker.user_permissions.add(Permission.objects.get(codename="view_user"))
    assert found(client, q="ann") == ["one"]


def test_a_key_finds_its_participants_of_any_model(admin_client: Client) -> None:
    talk("one", Participant("auth.user", "C-17"))
    talk("two", Participant("auth.group", "C-17"))
    talk("three", Participant("auth.group", "C-171"))
    assert sorted(found(admin_client, q=" C-17 ")) == ["one", "two"]


@pytest.mark.usefixtures("two")
def test_words_are_sought_in_the_newest_titles_and_in_all_on_demand(admin_client: Client) -> None:
    for number in range(4):
        talk(str(number), title="Chairs")
    assert found(admin_client, q="chairs") == ["3", "2"]
    assert found(admin_client, q="chairs", among="all") == ["3", "2", "1", "0"]
    page = admin_client.get(CONVERSATIONS, {"q": "chairs"}).content.decode()
    assert "the newest 2<" in page
    assert "?among=all&amp;q=chairs" in page
    assert "among=all" not in admin_client.get(CONVERSATIONS).content.decode()


@pytest.mark.usefixtures("two")
def test_ids_and_participants_are_found_however_old_they_are(admin_client: Client) -> None:
    talk("old", User.objects.create_user("ann"))
    for number in range(3):
        talk(str(number))
    assert found(admin_client, q="old") == ["old"]
    assert found(admin_client, q="ann") == ["old"]


@pytest.mark.usefixtures("two")
def test_words_are_sought_in_the_newest_messages_and_in_all_of_one_conversation(
    admin_client: Client,
) -> None:
    talk("one", prompt="Chairs")
    talk("two", prompt="Chairs")
    assert len(found(admin_client, MESSAGES, q="chairs")) == 1
    assert len(found(admin_client, MESSAGES, q="chairs", among="all")) == 2
    query = {"q": "chairs", "conversation__id__exact": "one"}
    assert len(found(admin_client, MESSAGES, **query)) == 1


def test_a_search_narrows_what_filters_have_left(admin_client: Client) -> None:
    talk("one", title="Chairs", agent="Coach")
    talk("two", title="Chairs", agent="Clerk")
    assert found(admin_client, q="chairs", agent="Clerk") == ["two"]
    assert found(admin_client, q="one", agent="Clerk") == []


@pytest.mark.parametrize(
    "term",
    ["%", "_", "\\", "'x", '"x', '"a b', "a" * 5000, "\u202e", "\U0001f600", "9" * 30, "é\u0301"],
)
def test_an_odd_search_finds_nothing_and_breaks_nothing(admin_client: Client, term: str) -> None:
    talk("one", User.objects.create_user("ann"), title="Chairs")
    talk("two", Team.objects.create(name="Red"))
    assert found(admin_client, q=term) == []


@pytest.mark.skipif(connection.vendor != "sqlite", reason="it asks SQLite for its plan")
def test_a_list_and_a_search_are_read_by_indexes(admin_client: Client) -> None:
    talk("one", User.objects.create_user("ann"), title="Chairs")
    for query in ({}, {"q": "chairs"}, {"q": "ann"}, {"state": "waiting"}):
        with CaptureQueriesContext(connection) as captured:
            found(admin_client, **query)
        queries = [each["sql"] for each in captured if "COUNT(" not in each["sql"]]
        theirs = [sql for sql in queries if 'FROM "agent_conversations"' in sql]
        assert theirs
        with connection.cursor() as cursor:
            for sql in theirs:
                cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
                plan = " ".join(row[3] for row in cursor.fetchall())
                assert "INDEX" in plan, sql
                if "IN (" not in sql and " OR " not in sql and "paused" not in sql:
                    assert "TEMP B-TREE" not in plan, sql


# What conversations are doing.


def test_conversations_are_narrowed_to_what_they_are_doing(admin_client: Client) -> None:
    ann = User.objects.create_user("ann")
    talks.rich(ann, key="waiting")
    talks.rich(ann, key="decided")
    store.decide("decided", {"*": Approve()})
    for name in ("answering", "interrupted", "open"):
        talk(name)
    store.reserve("answering")
    store.reserve("interrupted")
    Conversation.objects.filter(pk="interrupted").update(reserved_until=1)
    states = ["answering", "waiting", "decided", "interrupted", "open"]
    for state in states:
        assert found(admin_client, state=state) == [state]
    assert found(admin_client, state="no such") == []
    page = admin_client.get(CONVERSATIONS).content.decode()
    for state in states:
        assert page.count(f'data-state="{state}"') == 1
