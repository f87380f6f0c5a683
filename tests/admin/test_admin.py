"""The admin: conversations and messages to be read, by whoever may, whatever they hold."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from django.utils.http import urlencode

from agent_memory.messages import (
    Message,
    ProviderToolCall,
    Step,
    TextPart,
    ToolCall,
    ToolResult,
    Turn,
    TurnError,
)
from agent_memory.models import Conversation, ConversationMessage
from agent_memory.participants import Participant
from agent_memory.records import Heading
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
from tests.testapp.models import Team

pytestmark = pytest.mark.django_db

AWKWARD_IDS = [
    "a/b",
    "a?b=c#d",
    "_2F",
    "50%",
    "a b",
    "line\nbreak",
    "\u00e9\U0001f600",
    "add",
    '"',
    "'",
]


@pytest.fixture
def looker(client: Client) -> Iterator[Client]:
    """Return the client of a member of staff who may view conversations and nothing else."""
    user = User.objects.create_user("looker", is_staff=True)
    names = ["view_conversation", "view_conversationmessage"]
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    client.force_login(user)
    return client


# Who may do what.


@pytest.mark.parametrize("url", [CONVERSATIONS, MESSAGES])
def test_who_may_view_sees_the_lists(looker: Client, url: str) -> None:
    talk("one", title="Chairs")
    assert "Chairs" in seen(looker.get(url))


def test_who_may_view_sees_the_pages_of_a_conversation_and_a_message(looker: Client) -> None:
    talk("one", title="Chairs")
    assert "Chairs" in seen(looker.get(conversation_page("one")))
    assert "Hello" in seen(looker.get(message_page(role="user")))


def test_staff_without_the_permission_sees_nothing(client: Client) -> None:
    talk("one")
    client.force_login(User.objects.create_user("blind", is_staff=True))
    for url in (CONVERSATIONS, MESSAGES, conversation_page("one"), message_page(role="user")):
        assert client.get(url).status_code == 403


def test_the_permission_to_view_conversations_does_not_show_messages(client: Client) -> None:
    talk("one")
    user = User.objects.create_user("half", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_conversation"))
    client.force_login(user)
    assert client.get(CONVERSATIONS).status_code == 200
    assert client.get(MESSAGES).status_code == 403
    assert client.get(message_page(role="user")).status_code == 403
    page = seen(client.get(conversation_page("one")))
    assert "not what was said in it" in page
    assert "Hello" not in page
    for name in ("json", "markdown"):
        url = reverse(f"admin:agent_memory_conversation_{name}", args=["one"])
        assert url not in page
        assert client.get(url).status_code == 403
    args = ["one", "some-attachment"]
    url = reverse("admin:agent_memory_conversation_attachment", args=args)
    assert client.get(url).status_code == 403


@pytest.mark.parametrize("kind", ["conversation", "conversationmessage"])
def test_nobody_adds_or_changes_here_not_even_a_superuser(admin_client: Client, kind: str) -> None:
    talk("one", title="Chairs")
    page = conversation_page("one") if kind == "conversation" else message_page(role="user")
    before = list(Conversation.objects.values()), list(ConversationMessage.objects.values())
    assert admin_client.post(f"/admin/agent_memory/{kind}/add/", {"id": "two"}).status_code == 403
    assert admin_client.post(page, {"title": "Tables", "content": "x"}).status_code == 403
    after = list(Conversation.objects.values()), list(ConversationMessage.objects.values())
    assert after == before


def test_nobody_deletes_a_message_not_even_a_superuser(admin_client: Client) -> None:
    talk("one")
    delete = message_page(role="user").replace("/change/", "/delete/")
    assert admin_client.post(delete, {"post": "yes"}).status_code == 403
    selected = ConversationMessage.objects.values_list("pk", flat=True)[0]
    action = {"action": "delete_selected", "_selected_action": selected, "post": "yes"}
    admin_client.post(MESSAGES, action)
    assert ConversationMessage.objects.count() == 2


# Pages of one conversation and one message.


@pytest.mark.parametrize("conversation_id", AWKWARD_IDS)
def test_a_conversation_of_any_id_has_a_page_that_the_list_leads_to(
    admin_client: Client, conversation_id: str
) -> None:
    talk(conversation_id, title="Chairs")
    listed = admin_client.get(CONVERSATIONS).content.decode()
    found = re.search(r'<th class="field-heading"><a href="([^"]*)">Chairs</a>', listed)
    assert found
    response = admin_client.get(html.unescape(found[1]))
    assert response.context["original"].pk == conversation_id


@pytest.mark.parametrize("conversation_id", ["unknown", "a\0b", "x" * 300, "..", "%ff"])
@pytest.mark.parametrize("page", ["change", "json", "markdown", "attachment"])
def test_an_id_without_a_conversation_is_not_found(
    admin_client: Client, conversation_id: str, page: str
) -> None:
    args = [quote(conversation_id), *(["x"] if page == "attachment" else [])]
    url = reverse(f"admin:agent_memory_conversation_{page}", args=args)
    assert admin_client.get(url).status_code == 404


def test_a_conversation_without_a_title_is_named_by_its_id(admin_client: Client) -> None:
    talk("conversation-17")
    talk("conversation-18", title="   ")
    page = admin_client.get(CONVERSATIONS).content.decode()
    assert ">conversation-17</a></th>" in page
    assert ">conversation-18</a></th>" in page


def test_the_page_of_a_message_shows_text_status_tokens_and_tool_calls(
    admin_client: Client,
) -> None:
    talk("one", answer="It is blue.")
    page = seen(admin_client.get(message_page(role="assistant")))
    assert "It is blue." in page
    assert "Status: completed" in page
    assert "Input tokens: 17" in page
    assert "Output tokens: 4" in page
    call = (
        '{ "id": "1", "name": "look", "arguments": { "at": "sky" }, "result": { "value": "blue" } }'
    )
    assert call in page


def test_the_page_of_a_message_shows_its_json_whole(admin_client: Client) -> None:
    step = Step(items=(TextPart(text="Blue."),))
    store.append("one", Turn(user=Message("user", "Which?"), steps=(step,)))
    for role, text in (("user", "Which?"), ("assistant", "Blue.")):
        page = seen(admin_client.get(message_page(role=role)))
        assert f'"type": "text", "text": "{text}"' in page


def test_the_page_of_a_message_shows_what_a_turn_failed_with(admin_client: Client) -> None:
    turn = Turn(
        user=Message("user", "Hello"), status="failed", error=TurnError(code="ProviderUnavailable")
    )
    store.append("one", turn)
    page = seen(admin_client.get(message_page(role="assistant")))
    assert "Status: failed" in page
    assert "ProviderUnavailable" in page


def test_the_page_of_a_message_shows_calls_that_the_provider_ran(admin_client: Client) -> None:
    step = Step(items=(ProviderToolCall(name="web_search", data={"query": "chairs"}),))
    store.append("one", Turn(user=Message("user", "Hello"), steps=(step,)))
    page = seen(admin_client.get(message_page(role="assistant")))
    assert '{ "name": "web_search", "data": { "query": "chairs" } }' in page


def test_texts_of_every_kind_are_escaped(admin_client: Client) -> None:
    call = ToolCall(
        id=HOSTILE, name=HOSTILE, arguments={HOSTILE: HOSTILE}, result=ToolResult(value=HOSTILE)
    )
    step = Step(items=(TextPart(text=HOSTILE), call), provider=HOSTILE, model=HOSTILE)
    turn = Turn(
        user=Message("user", HOSTILE),
        steps=(step,),
        status="failed",
        error=TurnError(code=HOSTILE, request_id=HOSTILE),
    )
    team = Team.objects.create(name="x")
    heading = Heading(HOSTILE, Participant.of(team), HOSTILE, HOSTILE, "person")
    store.append(heading, turn)
    User.objects.create_user(HOSTILE)
    talk("two", User.objects.get(username=HOSTILE), agent=HOSTILE)
    pages = [
        CONVERSATIONS,
        MESSAGES,
        f"{CONVERSATIONS}?{urlencode({'agent': HOSTILE, 'q': HOSTILE})}",
        f"{CONVERSATIONS}?{urlencode({'participant_model': HOSTILE})}",
        conversation_page(HOSTILE),
        message_page(role="user", conversation=HOSTILE),
        message_page(role="assistant", conversation=HOSTILE),
    ]
    for url in pages:
        response = admin_client.get(url)
        assert HOSTILE in seen(response), url
        page = response.content.decode()
        assert "<script>alert" not in page
        assert "&amp;amp;" in page


def test_a_row_that_no_version_can_read_is_shown_as_it_is_stored(admin_client: Client) -> None:
    talk("one")
    page = message_page(role="assistant")
    for stored in ("no JSON <b>", '[{"items": 7}]', "[" * 100_000, '{"huge": ' + "9" * 5000 + "}"):
        ConversationMessage.objects.filter(role="assistant").update(steps=stored)
        response = admin_client.get(page)
        assert re.sub(r"\s", "", stored[:1000]) in re.sub(r"\s", "", seen(response))
        assert "They cannot be read" in seen(response)


def test_what_hides_in_a_stored_value_is_shown_and_breaks_no_page(admin_client: Client) -> None:
    call = ToolCall(id="1", name="look", result=ToolResult(value="\ud800 and \u202emore"))
    store.append("one", Turn(user=Message("user", "\udfff!"), steps=(Step(items=(call,)),)))
    assert "\\ud800 and \\u202emore" in seen(admin_client.get(message_page(role="assistant")))
    assert "\ufffd!" in seen(admin_client.get(message_page(role="user")))
