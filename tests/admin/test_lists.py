"""Lists of the admin: how far they look, and how they are narrowed."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.test import Client

from agent_memory.admin import lists
from agent_memory.messages import Message, Turn, TurnError
from agent_memory.participants import Participant
from agent_memory.records import Heading
from agent_memory.stores.database import DatabaseConversationStore
from tests.testapp.models import Team

pytestmark = pytest.mark.django_db

CONVERSATIONS = "/admin/agent_memory/conversation/"
MESSAGES = "/admin/agent_memory/conversationmessage/"

store = DatabaseConversationStore()


def talk(conversation_id: str, participant: Any = None, agent: str = "", **turn: Any) -> None:
    store.append(
        Heading(conversation_id, Participant.of(participant), agent),
        Turn(user=Message("user", "Hello"), **turn),
    )


def changelist(client: Client, url: str, **query: str) -> Any:
    response = client.get(url, query)
    assert response.status_code == 200
    return response.context["cl"]


def found(client: Client, url: str, **query: str) -> list[Any]:
    return sorted(row.pk for row in changelist(client, url, **query).result_list)


def choices(client: Client, url: str, title: str) -> list[str]:
    """Return what a filter offers beside all."""
    shown = changelist(client, url)
    (one,) = [spec for spec in shown.filter_specs if spec.title == title]
    return [str(choice["display"]) for choice in one.choices(shown)][1:]


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let lists look no further than three rows."""
    monkeypatch.setattr(lists, "MAX_LISTED", 3)


@pytest.mark.usefixtures("three")
def test_a_list_looks_no_further_than_its_bound_and_says_so(admin_client: Client) -> None:
    for number in range(5):
        talk(f"conversation-{number}")
    shown = changelist(admin_client, CONVERSATIONS)
    assert shown.paginator.count == 3
    assert shown.title == "The first 3 conversations; search or filter for others"


@pytest.mark.usefixtures("three")
def test_a_list_that_shows_all_does_not_say_otherwise(admin_client: Client) -> None:
    talk("one")
    talk("two")
    shown = changelist(admin_client, CONVERSATIONS)
    assert shown.paginator.count == 2
    assert shown.title == "Select conversation to view"


def test_a_page_beyond_the_last_leads_back_to_the_list(admin_client: Client) -> None:
    for number in range(51):
        talk(f"conversation-{number}")
    assert len(found(admin_client, CONVERSATIONS)) == 50
    assert len(found(admin_client, CONVERSATIONS, p="2")) == 1
    assert admin_client.get(CONVERSATIONS, {"p": "3"}).status_code == 302


def test_conversations_are_narrowed_to_an_agent(admin_client: Client) -> None:
    talk("one", agent="shop.Coach")
    talk("two", agent="shop.Clerk")
    talk("three")
    assert choices(admin_client, CONVERSATIONS, "agent") == ["shop.Clerk", "shop.Coach"]
    assert found(admin_client, CONVERSATIONS, agent="shop.Coach") == ["one"]
    assert found(admin_client, CONVERSATIONS, agent="unknown") == []


def test_a_filter_offers_what_the_newest_rows_hold(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "RECENT", 1)
    talk("1", agent="older")
    talk("2", agent="newer")
    assert choices(admin_client, CONVERSATIONS, "agent") == ["newer"]
    assert found(admin_client, CONVERSATIONS, agent="older") == ["1"]


def test_conversations_are_narrowed_to_a_kind_of_participant(
    admin_client: Client, customers: ContentType
) -> None:
    talk("user", User.objects.create_user("ann"))
    talk("team", Team.objects.create(name="Red"))
    talk("customer", Participant("shop.customer", "C-17"))
    talk("nobody")
    offered = choices(admin_client, CONVERSATIONS, "participant")
    assert sorted(offered) == sorted(
        ["Authentication and Authorization | user", "Testapp | team", str(customers), "nobody"]
    )
    for value, expected in {
        "auth.user": ["user"],
        "testapp.team": ["team"],
        "shop.customer": ["customer"],
        "-": ["nobody"],
        "no such": [],
    }.items():
        assert found(admin_client, CONVERSATIONS, participant_model=value) == expected


def test_messages_are_narrowed_to_a_role_and_a_status(admin_client: Client) -> None:
    store.create("zero", leading=[Message("system", "Be kind.")])
    talk("one")
    talk("two", status="failed", error=TurnError(code="ProviderUnavailable"))
    roles = ["assistant", "developer", "system", "user"]
    assert choices(admin_client, MESSAGES, "role") == roles
    assert choices(admin_client, MESSAGES, "status") == ["completed", "failed", "paused"]
    assert len(found(admin_client, MESSAGES, role="system")) == 1
    assert len(found(admin_client, MESSAGES, role="user")) == 2
    assert len(found(admin_client, MESSAGES, role="assistant", status="failed")) == 1
    assert len(found(admin_client, MESSAGES)) == 5
