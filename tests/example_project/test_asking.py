"""What becomes of what is posted to the web chat: messages, files, decisions, a stop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.backends.sqlite3.base import DatabaseWrapper
from django.test import AsyncClient, Client
from django.urls import reverse

from agent_memory import conversation_store
from example_project.chat import going_on
from example_project.chat.models import Refund, Team
from tests.example_project.chatting import message, post, said, talk
from tests.example_project.conftest import logged_in
from tests.files import PDF, PNG
from tests.sse_parsing import parse

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.urls("example_project.urls"),
    pytest.mark.usefixtures("project"),
]


# Asking.


def test_a_first_message_opens_a_conversation_and_the_next_goes_on_with_it(ada: User) -> None:
    _, events = post("aask", message())
    assert [events[0].name, events[-1].name] == ["started", "finished"]
    conversation_id = events[0].data["conversation_id"]
    _, events = post("aask", message("What did I say?", conversation=conversation_id))
    assert events[-1].data["text"] == "Recalled: blue."
    assert conversation_store.conversation_belongs_to(conversation_id, ada)


@pytest.fixture
def threads_close_their_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a thread close its connection, which Django leaves open to a database in memory."""
    lives_on = DatabaseWrapper.is_in_memory_db

    def lives_on_here(self: DatabaseWrapper) -> bool:
        return threading.current_thread() is threading.main_thread() and lives_on(self)

    monkeypatch.setattr(DatabaseWrapper, "is_in_memory_db", lives_on_here)


@pytest.mark.heavy
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("threads_close_their_database")
def test_it_is_the_same_under_wsgi(ada: User) -> None:
    client = logged_in("ada")
    events = parse(b"".join(client.post("/ask/", message("Refund 3 for order A7."))))
    conversation_id = events[0].data["conversation_id"]
    assert events[-1].data["status"] == "paused"
    (pending,) = conversation_store.pending_approvals_for(conversation_id)
    decision = {"conversation": conversation_id, "call": pending.id, "decision": "approve"}
    events = parse(b"".join(client.post("/decide/", decision)))
    assert events[-1].data["text"] == "3 paid back for order A7."
    assert Refund.objects.count() == 1


def test_a_message_that_is_posted_again_is_one_turn(ada: User) -> None:
    first = message()
    _, events = post("aask", first)
    _, again = post("aask", first)
    assert again[-1].data["assistant_message_id"] == events[-1].data["assistant_message_id"]
    (mine,) = conversation_store.list_conversations(ada)
    assert said(mine.id) == ["Remember: blue.", "Stored: blue."]
    second = message("What did I say?", conversation=mine.id)
    for _ in range(2):
        post("aask", second)
    assert len(said(mine.id)) == 4


@pytest.mark.heavy
def test_a_message_may_open_a_conversation_of_ones_team_and_of_no_other(
    ada: User, team: Team
) -> None:
    other = Team.objects.create(name="Others")
    _, events = post("aask", message(owner=f"team-{team.pk}"))
    assert conversation_store.conversation_belongs_to(events[0].data["conversation_id"], team)
    for owner in (f"team-{other.pk}", "team-", "x"):
        assert post("aask", message(owner=owner))[0].status_code == 404
    assert not len(conversation_store.list_conversations(other))


@pytest.mark.heavy
@pytest.mark.parametrize(
    "data",
    [
        {"text": "Hello"},
        {"text": "Hello", "key": "x"},
        message(""),
        message("  \n"),
        message("a\0b"),
        message(conversation="x" * 256),
    ],
)
def test_a_post_that_is_no_message_is_refused_before_anything_is_stored(
    ada: User, data: Any
) -> None:
    response, _ = post("aask", data)
    assert response.status_code == 400
    assert response.json()["error"]
    assert not len(conversation_store.list_conversations(ada))


@pytest.mark.heavy
def test_files_are_kept_and_sent_to_who_may_see_them(ada: User, team: Team) -> None:
    files = [SimpleUploadedFile("<b>.png", PNG), SimpleUploadedFile("report.pdf", PDF)]
    response, events = post("aask", message("", files=files, owner=f"team-{team.pk}"))
    assert response.status_code == 200
    conversation_id = events[0].data["conversation_id"]
    page = conversation_store.paginate_conversation_messages(conversation_id)
    image, document = page.items[1].attachments
    html = logged_in("ada").get("/", {"conversation": conversation_id}).content.decode()
    assert "&lt;b&gt;.png" in html
    team.members.add(User.objects.create_user("bob"))
    for attachment in (image, document):
        url = reverse("agent_memory:attachment", args=[attachment.id])
        assert url in html
        for member in ("ada", "bob"):
            sent = b"".join(logged_in(member).get(url))
            assert sent == (PNG if attachment is image else PDF)
        assert logged_in("eve").get(url).status_code == 404
        assert Client().get(url).status_code == 302


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (b"MZ\0", 415, "unsupported_attachment"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", 415, "unsupported_attachment"),
        (b"", 415, "unsupported_attachment"),
        (b"a" * 1001, 413, "too_large"),
    ],
)
def test_a_file_that_cannot_be_sent_is_named(
    ada: User, settings, data: bytes, status: int, code: str
) -> None:
    settings.AGENT_MEMORY = {**settings.AGENT_MEMORY, "ATTACHMENTS": {"MAX_BYTES": 1000}}
    response, _ = post("aask", message(files=[SimpleUploadedFile("a.png", data)]))
    assert response.status_code == status
    assert response.json()["code"] == code
    assert response.json()["file"] == "a.png"
    assert not len(conversation_store.list_conversations(ada))


@pytest.mark.heavy
def test_a_conversation_that_is_answering_says_for_how_long(ada: User) -> None:
    talk("own", ada)
    conversation_store.reserve("own")
    response, _ = post("aask", message(conversation="own"))
    assert response.status_code == 409
    assert response.json()["code"] == "conversation_busy"
    assert response["Retry-After"] == str(response.json()["retry_after"])
    html = logged_in("ada").get("/messages/", {"conversation": "own"}).content
    assert b'data-answering="yes"' in html


@pytest.mark.heavy
@pytest.mark.usefixtures("model_is_down")
def test_a_model_that_is_down_is_an_event_and_leaves_no_turn(ada: User) -> None:
    talk("own", ada)
    _, events = post("aask", message(conversation="own"))
    assert events[-1].name == "error"
    assert events[-1].data["code"] == "provider_unavailable"
    assert len(said("own")) == 2


# Deciding and stopping.


def paused(text: str = "Refund 12.50 for order A7.") -> dict[str, Any]:
    """Ask for a refund; return what decides on it."""
    _, events = post("aask", message(text))
    conversation_id = events[0].data["conversation_id"]
    (pending,) = conversation_store.pending_approvals_for(conversation_id)
    return {"conversation": conversation_id, "call": pending.id}


def test_an_approved_call_runs_once_and_the_turn_goes_on(ada: User) -> None:
    decision = paused() | {"decision": "approve", "note": "Checked."}
    card = logged_in("ada").get("/", {"conversation": decision["conversation"]}).content
    assert b"Waits for your approval" in card
    _, events = post("adecide", decision)
    assert events[-1].data["text"] == "12.50 paid back for order A7."
    response, _ = post("adecide", decision)
    assert response.status_code == 409
    assert response.json()["code"] in ("approval_mismatch", "approval_not_resumable")
    assert Refund.objects.get().order == "A7"


@pytest.mark.heavy
def test_a_call_that_is_not_allowed_does_not_run(ada: User) -> None:
    post("adecide", paused() | {"decision": "deny"})
    assert not Refund.objects.exists()


@pytest.mark.heavy
@pytest.mark.parametrize("change", [{"decision": "maybe"}, {"decision": ""}, {"note": "x" * 1001}])
def test_a_decision_that_is_none_leaves_the_call_waiting(ada: User, change: Any) -> None:
    decision = paused()
    assert post("adecide", decision | {"decision": "approve"} | change)[0].status_code == 400
    assert conversation_store.pending_approvals_for(decision["conversation"])
    assert not Refund.objects.exists()


@pytest.mark.heavy
def test_a_call_that_names_nothing_that_waits_changes_nothing(ada: User) -> None:
    decision = paused() | {"call": "*'\"<", "decision": "approve"}
    response, _ = post("adecide", decision)
    assert response.status_code == 409
    assert not Refund.objects.exists()


def leave_after(view: str, data: dict[str, Any], then: Callable[[str], None]) -> str:
    """Read the first event of an answer and leave; return the conversation when it has ended."""

    async def ask() -> str:
        client = AsyncClient()
        await client.aforce_login(await User.objects.aget(username="ada"))
        response = await client.post(reverse(f"chat:{view}"), data)
        parts = aiter(response)
        (started,) = parse(await anext(parts))
        await parts.aclose()  # what a server does when the browser has gone
        conversation_id: str = started.data["conversation_id"]
        await sync_to_async(then)(conversation_id)
        await asyncio.gather(*going_on._tasks)
        return conversation_id

    return async_to_sync(ask)()


@pytest.mark.heavy
def test_an_answer_goes_on_when_its_reader_leaves(ada: User) -> None:
    def answering(conversation_id: str) -> None:
        page = logged_in("ada").get("/", {"conversation": conversation_id})
        assert b'data-answering="yes"' in page.content

    conversation_id = leave_after("aask", message("Hello"), answering)
    assert said(conversation_id)[0] == "Hello"
    assert "three things" in said(conversation_id)[1]


@pytest.mark.heavy
@pytest.mark.django_db(transaction=True)
def test_a_turn_that_is_stopped_leaves_nothing_and_the_conversation_free(ada: User) -> None:
    def stop(conversation_id: str) -> None:
        url = reverse("chat:stop")
        response = logged_in("ada").post(url, {"conversation": conversation_id})
        assert response.status_code == 204

    conversation_id = leave_after("aask", message("Hello"), stop)
    assert said(conversation_id) == []
    assert conversation_store.held_reservations(conversation_id) == ()
    _, events = post("aask", message("Remember: blue.", conversation=conversation_id))
    assert events[-1].data["text"] == "Stored: blue."


@pytest.mark.heavy
@pytest.mark.django_db(transaction=True)
def test_stopping_a_turn_of_another_process_gives_the_conversation_free(ada: User) -> None:
    talk("own", ada)
    conversation_store.reserve("own")
    assert logged_in("ada").post("/stop/", {"conversation": "own"}).status_code == 204
    assert conversation_store.held_reservations("own") == ()


def test_the_views_that_ask_run_outside_a_request_transaction() -> None:
    from example_project.chat import asking

    for name in ("ask", "aask", "decide", "adecide", "stop"):
        assert getattr(asking, name)._non_atomic_requests == {"default"}
