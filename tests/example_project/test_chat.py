"""The web chat over HTTP: whose conversations one sees, and how they are shown."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import AsyncClient, Client
from django.urls import reverse

from agent_memory import conversation_store
from agent_memory.messages import (
    ImagePart,
    Message,
    RefusalPart,
    Step,
    TextPart,
    ToolCall,
    ToolResult,
    Turn,
)
from agent_memory.participants import Participant
from agent_memory.records import Heading
from example_project.chat.models import Team
from tests.example_project.chatting import message, post, said, talk
from tests.example_project.conftest import logged_in
from tests.files import PNG

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.urls("example_project.urls"),
    pytest.mark.usefixtures("project"),
]

POSTS = ("ask", "aask", "decide", "adecide", "stop", "rename", "delete")
GETS = ("page", "messages", "conversations")
HOSTILE = "<script>alert(1)</script>'\"</pre>\u202e<img src=x>"
HOSTILE_IDS = (
    "..",
    "a/b/../c",
    "?x=1&y=2#z",
    "\"><script>alert(1)</script>'",
    "\u202e\U0001f600 {{ 7 }}",
    "x" * 255,
)


# Who sees what.


@pytest.mark.parametrize("view", [*POSTS, *GETS])
def test_only_who_has_signed_in_is_answered(view: str) -> None:
    if view in GETS:
        response = Client().get(reverse(f"chat:{view}"))
    elif view.startswith("a") and view != "ask":
        response = async_to_sync(AsyncClient().post)(reverse(f"chat:{view}"), message())
    else:
        response = Client().post(reverse(f"chat:{view}"), message())
    assert response.status_code == 302
    assert "login" in response.headers["Location"]


@pytest.mark.parametrize("view", [*POSTS, "page", "messages"])
@pytest.mark.parametrize("whose", ["bob", "team", "nobody"])
def test_a_conversation_of_another_is_as_one_that_is_not_there(
    ada: User, view: str, whose: str
) -> None:
    owners: dict[str, Any] = {
        "bob": User.objects.create_user("bob"),
        "team": Team.objects.create(name="Others", pk=ada.pk),
        "nobody": None,
    }
    talk("secret", owners[whose])
    for conversation_id in ("secret", "missing"):
        data = message(conversation=conversation_id, title="Mine", call="1", decision="approve")
        if view in ("aask", "adecide"):
            assert post(view, data)[0].status_code == 404
        else:
            client = logged_in("ada")
            url = reverse(f"chat:{view}")
            response = client.get(url, data) if view in GETS else client.post(url, data)
            assert response.status_code == 404
    assert said("secret") == ["Question 0", "Answer 0."]
    assert conversation_store.get("secret").title == ""  # type: ignore[union-attr]


def test_the_page_lists_what_is_ones_own_and_the_teams(ada: User, team: Team) -> None:
    talk("own", ada, title="Of ada")
    talk("team's", team, title="Of the team")
    talk("foreign", User.objects.create_user("bob"), title="Of bob")
    page = logged_in("ada").get("/").content.decode()
    assert "Of ada" in page
    assert "Of the team" in page
    assert "&lt;b&gt;Support&lt;/b&gt;" in page
    assert "Of bob" not in page
    assert logged_in("ada").get("/", {"conversation": "team's"}).status_code == 200


def test_a_page_takes_as_many_queries_for_many_messages_and_conversations_as_for_few(
    ada: User, team: Team, django_assert_num_queries
) -> None:
    client = logged_in("ada")
    talk("few", ada)
    client.get("/", {"conversation": "few"})  # the cache of content types
    for number in range(30):
        talk(f"other {number}", ada)
    talk("many", team, turns=30)
    # Session, user, teams, a list of each owner, conversation, messages, held, what waits.
    for conversation_id in ("few", "many"):
        with django_assert_num_queries(10):
            client.get("/", {"conversation": conversation_id})


@pytest.mark.parametrize("conversation_id", HOSTILE_IDS)
def test_a_conversation_of_any_id_is_listed_and_opened(ada: User, conversation_id: str) -> None:
    talk(conversation_id, ada, title=conversation_id)
    client = logged_in("ada")
    listed = client.get("/")
    assert b"<script>alert" not in listed.content
    found = conversation_store.list_conversations(ada).items[0].id
    opened = client.get("/", {"conversation": found})
    assert opened.status_code == 200
    assert b"Answer 0." in opened.content
    assert b"<script>alert" not in opened.content
    assert client.post("/rename/", {"conversation": found, "title": "New"}).status_code == 302
    assert client.post("/delete/", {"conversation": found}).status_code == 302
    assert conversation_store.get(conversation_id) is None


@pytest.mark.parametrize(
    "query",
    [
        {"conversation": "\0"},
        {"conversation": "x" * 256},
        {"conversation": "own", "cursor": "x"},
        {"conversation": "own", "cursor": "9" * 400},
    ],
)
def test_an_id_or_a_cursor_that_cannot_be_is_a_bad_request(ada: User, query: Any) -> None:
    talk("own", ada)
    assert logged_in("ada").get("/messages/", query).status_code == 400


def test_a_list_goes_on_by_its_cursor(ada: User) -> None:
    for number in range(25):
        talk(f"c{number}", ada, title=f"Title {number}")
    client = logged_in("ada")
    cursor = conversation_store.list_conversations(ada, per_page=20).next_cursor
    rest = client.get("/conversations/", {"owner": "user", "cursor": cursor}).content
    assert b"Title 0" in rest
    assert b"Title 5" not in rest
    assert client.get("/conversations/", {"cursor": "x"}).status_code == 400
    assert client.get("/conversations/", {"owner": "team-1"}).status_code == 404


@pytest.mark.parametrize(
    "result", [None, ToolResult(value={"items": f"{HOSTILE}\ud800"}, failed=True)]
)
def test_a_call_of_any_name_and_arguments_is_shown_as_text(
    ada: User, result: ToolResult | None
) -> None:
    odd = f"{HOSTILE}\ud800"
    files = (ImagePart(url=f"http://evil.example/{HOSTILE}"), ImagePart(data=PNG, file_name=odd))
    call = ToolCall(
        id=f"{HOSTILE} 1",
        name=HOSTILE,
        arguments={"items": odd, odd: [1, {"keys": None}]},
        approval_reason=HOSTILE,
        result=result,
    )
    turn = Turn(
        user=Message("user", (TextPart(text=odd), *files)),
        steps=(Step(items=(TextPart(text=odd), RefusalPart(text=odd), call)),),
        status="paused" if result is None else "failed",
    )
    conversation_store.append(Heading("own", Participant.of(ada), "coach"), turn)
    html = logged_in("ada").get("/", {"conversation": "own"}).content.decode()
    assert ("Waits for your approval" in html) is (result is None)
    assert html.count("&lt;script&gt;") >= 5
    assert "<script>" not in html
    assert html.count("<img") == 1  # the file that is stored here


# Titles, and the end.


def test_a_conversation_is_renamed_and_deleted(ada: User, team: Team) -> None:
    talk("team's", team)
    client = logged_in("ada")
    client.post("/rename/", {"conversation": "team's", "title": " After "})
    assert conversation_store.get("team's").title == "After"  # type: ignore[union-attr]
    response = client.post("/delete/", {"conversation": "team's"}, follow=True)
    assert b"The conversation was deleted." in response.content
    assert conversation_store.get("team's") is None


@pytest.mark.parametrize("title", ["", "  ", "x" * 256, "a\0b"])
def test_a_title_that_cannot_be_is_told_in_words(ada: User, title: str) -> None:
    talk("own", ada, title="Before")
    response = logged_in("ada").post(
        "/rename/", {"conversation": "own", "title": title}, follow=True
    )
    assert b'class="notice error"' in response.content
    assert conversation_store.get("own").title == "Before"  # type: ignore[union-attr]
