"""Lists of conversations and of messages: what they cost, show and find."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agent_memory.messages import (
    Message,
)
from agent_memory.models import Conversation
from agent_memory.participants import Participant
from tests.admin.saying import (
    CONVERSATIONS,
    HOSTILE,
    MESSAGES,
    conversation_page,
    message_page,
    seen,
    store,
    talk,
)
from tests.testapp.models import Place, Team, Ticket

pytestmark = pytest.mark.django_db


# What lists cost.


def people(first: int, last: int) -> Iterator[Any]:
    """Yield participants of four models, the fourth of which are gone."""
    for index in range(first, last):
        yield User.objects.create_user(f"user{index}")
        yield Team.objects.create(name=f"team{index}")
        yield Ticket.objects.create()
        yield Participant("auth.group", str(1000 + index))


def queries_of(client: Client, url: str) -> list[str]:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert client.get(url).status_code == 200
    return [query["sql"] for query in captured.captured_queries]


@pytest.mark.parametrize(
    "url", [CONVERSATIONS, MESSAGES, f"{MESSAGES}?q=hello", f"{CONVERSATIONS}?q=chairs"]
)
def test_a_list_takes_as_many_queries_for_forty_rows_as_for_four(
    admin_client: Client, url: str
) -> None:
    for number, who in enumerate(people(0, 1)):
        talk(f"few-{number}", who, title="Chairs", agent="coach")
    queries_of(admin_client, url)  # content types are read once a process
    few = queries_of(admin_client, url)
    for number, who in enumerate(people(1, 10)):
        talk(f"many-{number}", who, title="Chairs", agent="coach")
    many = queries_of(admin_client, url)
    assert len(many) == len(few)
    assert len(few) <= (16 if "q=" in url else 11)


@pytest.mark.parametrize("url", [CONVERSATIONS, MESSAGES])
def test_a_list_loads_neither_steps_nor_bytes_nor_counts_a_whole_table(
    admin_client: Client, url: str
) -> None:
    talk("one")
    for query in queries_of(admin_client, url):
        for column in ("steps", "parts", "meta", "replay", "metadata"):
            assert not re.search(rf"[`\"]{column}[`\"]", query), query
        assert "agent_conversation_attachments" not in query
        assert "COUNT(" not in query or "LIMIT 5000" in query


def test_a_list_of_messages_loads_the_beginning_of_their_texts_only(admin_client: Client) -> None:
    talk("one", prompt=f"{'word ' * 30}{'hidden' * 1000}")
    response = admin_client.get(MESSAGES)
    assert "word word" in seen(response)
    assert "hiddenhidden" not in response.content.decode()


# What lists show.


def test_conversations_are_listed_latest_activity_first(admin_client: Client) -> None:
    for name in ("one", "two", "three"):
        talk(name)
    talk("one")
    listed = admin_client.get(CONVERSATIONS).context["cl"].result_list
    assert [row.pk for row in listed] == ["one", "three", "two"]


def test_a_conversation_that_is_merely_reserved_is_hidden(admin_client: Client) -> None:
    talk("spoken")
    store.reserve("reserved", create=True)
    assert Conversation.objects.count() == 2
    page = seen(admin_client.get(CONVERSATIONS))
    assert "spoken" in page
    assert "reserved" not in page
    assert admin_client.get(conversation_page("reserved")).status_code == 404


def test_a_participant_is_linked_to_its_own_page(admin_client: Client) -> None:
    user = User.objects.create_user("ann")
    group = Group.objects.create(name="Helpdesk", pk=user.pk)
    talk("one", user)
    talk("two", group)
    page = admin_client.get(CONVERSATIONS).content.decode()
    assert f'<a href="/admin/auth/user/{user.pk}/change/">user: ann</a>' in page
    assert f'<a href="/admin/auth/group/{user.pk}/change/">group: Helpdesk</a>' in page
    detail = admin_client.get(conversation_page("one")).content.decode()
    assert f'<a href="/admin/auth/user/{user.pk}/change/">user: ann</a>' in detail


def test_a_participant_without_a_page_of_its_own_is_shown_as_text(admin_client: Client) -> None:
    talk("one", Place.objects.create(code="Kiel"))
    page = admin_client.get(CONVERSATIONS).content.decode()
    assert "place: Place object (Kiel)</td>" in page


@pytest.mark.usefixtures("customers")
@pytest.mark.parametrize(
    ("participant", "shown"),
    [
        (Participant("auth.user", "999999"), "auth.user 999999"),
        (Participant("auth.user", "no number"), "auth.user no number"),
        (Participant("auth.user", "9" * 255), f"auth.user {'9' * 255}"),
        (Participant("testapp.ticket", "no uuid"), "testapp.ticket no uuid"),
        (Participant("shop.customer", "C-17"), "shop.customer C-17"),
        (Participant("auth.group", HOSTILE), f"auth.group {HOSTILE}"),
    ],
)
def test_a_participant_that_is_gone_or_never_was_is_shown_as_text(
    admin_client: Client, participant: Participant, shown: str
) -> None:
    talk("one", participant)
    for url in (CONVERSATIONS, MESSAGES, conversation_page("one"), message_page(role="user")):
        assert shown in seen(admin_client.get(url))


def test_a_conversation_leads_to_its_messages_in_their_order(admin_client: Client) -> None:
    store.create("a/b c", leading=[Message("system", "Be kind.")])
    talk("a/b c", prompt="First")
    talk("a/b c", prompt="Second")
    talk("other", prompt="Elsewhere")
    for url in (CONVERSATIONS, conversation_page("a/b c")):
        found = re.search(
            r'href="(/admin/agent_memory/conversationmessage/\?[^"]*b\+c)"',
            admin_client.get(url).content.decode(),
        )
        assert found
        listed = admin_client.get(html.unescape(found[1])).context["cl"].result_list
        assert [row.beginning for row in listed] == [
            "Be kind.",
            "First",
            "Fine.",
            "Second",
            "Fine.",
        ]


def test_a_message_leads_to_where_its_conversation_has_it(admin_client: Client) -> None:
    talk("a/b", title="Chairs")
    page = f"{conversation_page('a/b')}?before=20"
    link = f'<a href="{page}#message-0">Chairs</a>'
    assert link in admin_client.get(MESSAGES).content.decode()
    assert link in admin_client.get(message_page(role="user")).content.decode()
    assert 'id="message-0"' in admin_client.get(page).content.decode()


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("chairs", {"one"}),
        ("CHAIRS blue", {"one"}),
        ("two", {"two"}),
        ("tw", set()),
        ("Kiel", {"two"}),
        ("nothing", set()),
        ("%", set()),
    ],
)
def test_conversations_are_found_by_words_of_the_title_by_id_and_by_participant(
    admin_client: Client, search: str, found: set[str]
) -> None:
    talk("one", title="Blue Chairs")
    talk("two", Place.objects.create(code="Kiel"))
    listed = admin_client.get(CONVERSATIONS, {"q": search}).context["cl"].result_list
    assert {row.pk for row in listed} == found


def test_messages_are_found_by_their_words_in_either_case(admin_client: Client) -> None:
    talk("one", prompt="Where are my CHAIRS?", answer="Here.")
    talk("two", prompt="Hello", answer="Hello!")
    listed = admin_client.get(MESSAGES, {"q": "my chairs"}).context["cl"].result_list
    assert [row.conversation_id for row in listed] == ["one"]


def test_a_search_for_what_no_column_holds_finds_nothing(admin_client: Client) -> None:
    talk("one")
    for url in (CONVERSATIONS, MESSAGES):
        assert admin_client.get(url, {"q": "a\0b"}).status_code == 200
        assert list(admin_client.get(url, {"q": HOSTILE}).context["cl"].result_list) == []
