"""The example's views: the user's last conversation goes on, sync and async."""

from __future__ import annotations

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import AsyncClient, Client

from agent_memory import conversation_store
from tests.example_project.conftest import logged_in
from tests.sse_parsing import ServerSent, parse

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.urls("example_project.urls"),
    pytest.mark.usefixtures("project"),
]


@pytest.fixture(params=["/chat/", "/chat/async/"])
def url(request: pytest.FixtureRequest) -> str:
    return request.param


def test_each_post_goes_on_with_the_users_last_conversation(url: str) -> None:
    client = logged_in("ada")
    first = client.post(url, {"text": "Remember: blue."}).json()
    second = client.post(url, {"text": "What did I say?"}).json()
    assert (first["text"], second["text"]) == ("Stored: blue.", "Recalled: blue.")
    assert first["conversation_id"] == second["conversation_id"]
    page = conversation_store.paginate_conversation_messages(first["conversation_id"])
    assert len(page) == 4


def test_users_do_not_hear_of_each_other(url: str) -> None:
    logged_in("ada").post(url, {"text": "Remember: blue."})
    reply = logged_in("bob").post(url, {"text": "What did I say?"})
    assert reply.json()["text"] == "I was sent nothing to recall."


def test_only_who_is_logged_in_is_answered(url: str) -> None:
    reply = Client().post(url, {"text": "Remember: blue."})
    assert reply.status_code == 302
    assert "login" in reply.headers["Location"]


def test_only_a_post_is_answered(url: str) -> None:
    assert logged_in("ada").get(url).status_code == 405


def test_a_post_without_a_text_is_refused_before_the_model_is_asked(url: str) -> None:
    client = logged_in("ada")
    assert client.post(url, {"text": "  "}).status_code == 400
    assert client.post(url).status_code == 400
    assert not len(conversation_store.list_conversations(User.objects.get()))


def test_a_conversation_that_is_answering_is_told_as_a_conflict(url: str) -> None:
    client = logged_in("ada")
    first = client.post(url, {"text": "Remember: blue."}).json()
    conversation_store.reserve(first["conversation_id"])
    reply = client.post(url, {"text": "What did I say?"})
    assert reply.status_code == 409
    assert "one turn" in reply.json()["error"].lower()


@pytest.mark.usefixtures("model_is_down")
def test_a_model_that_cannot_be_reached_is_told_as_unavailable(url: str) -> None:
    assert logged_in("ada").post(url, {"text": "Remember: blue."}).status_code == 503


def streamed(url: str, name: str, text: str) -> list[ServerSent]:
    """Return the events that a streaming view answers with, under its own kind of server."""
    if url == "/chat/stream/":
        return parse(b"".join(logged_in(name).post(url, {"text": text})))

    async def ask() -> list[ServerSent]:
        client = AsyncClient()
        await client.aforce_login(await User.objects.aget(username=name))
        return parse(b"".join([part async for part in await client.post(url, {"text": text})]))

    logged_in(name)
    return async_to_sync(ask)()


@pytest.mark.parametrize("url", ["/chat/stream/", "/chat/stream/async/"])
def test_a_streamed_answer_goes_on_with_the_same_conversation(url: str) -> None:
    first = logged_in("ada").post("/chat/", {"text": "Remember: blue."}).json()
    started, *_, finished = streamed(url, "ada", "What did I say?")
    assert (started.name, finished.name) == ("started", "finished")
    assert finished.data["text"] == "Recalled: blue."
    assert started.data == {"conversation_id": first["conversation_id"]}


def test_the_views_run_outside_a_request_transaction() -> None:
    from example_project.chat import views

    for view in (views.chat, views.achat, views.stream_chat, views.astream_chat):
        assert view._non_atomic_requests == {"default"}
