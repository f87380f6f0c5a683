"""What staff do with a conversation in the admin: each thing by its permission, and logged."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connections
from django.test import Client

from agent_memory import Message, titles
from agent_memory.exceptions import ConversationConflict, ProviderRefused
from agent_memory.messages import Step, TextPart, Turn, Usage
from agent_memory.models import Conversation, ConversationMessage
from agent_memory.providers.openai_responses import OpenAIResponsesProvider
from agent_memory.testing import (
    Answer,
    ScriptedProvider,
    override_agent_memory,
    override_provider,
)
from example_project.endpoints import stand_in
from tests.admin.acting import ACTIONS, logged, page_of, reserve, staff, title_of, told
from tests.admin.saying import CONVERSATIONS, HOSTILE, conversation_page, seen, store, talk

pytestmark = pytest.mark.django_db

AWKWARD_IDS = ["a/b", "a?b=c#d", "_2F", "50%", "line\nbreak", "\u00e9\U0001f600", "add", "'\""]


def token(client: Client, conversation_id: str) -> str:
    """Return the token that the page which releases a conversation has in its form."""
    held = client.get(page_of("release", conversation_id)).context["held"]
    return str(held.token)


# Who may do what.


@pytest.mark.parametrize("action", ACTIONS)
def test_who_may_not_do_something_is_refused_and_nothing_changes(
    client: Client, action: str
) -> None:
    talk("one", title="Chairs")
    reserve("one")
    others = [f"{other}_conversation" for other in ACTIONS if other != action]
    staff(client, "view_conversation", *others)
    before = Conversation.objects.values().get()
    with override_provider(ScriptedProvider(title="Tables")), override_agent_memory(MODEL="m"):
        for answer in (
            client.get(page_of(action, "one")),
            client.post(page_of(action, "one"), {"title": "Tables", "post": "yes"}),
        ):
            assert answer.status_code == 403
    assert Conversation.objects.values().get() == before
    assert logged() == []


def test_the_page_has_buttons_for_what_somebody_may_do_now(client: Client) -> None:
    talk("one")

    def buttons() -> set[str]:
        page = client.get(conversation_page("one")).content.decode()
        return {action for action in ACTIONS if f'href="{page_of(action, "one")}"' in page}

    staff(client, "view_conversation")
    assert buttons() == set()
    allowed = ("rename_conversation", "release_conversation")
    staff(client, "view_conversation", *allowed, name="helper")
    assert buttons() == {"rename"}
    reserve("one")
    assert buttons() == {"rename", "release"}


@pytest.mark.parametrize("action", ACTIONS)
def test_who_may_not_see_conversations_does_nothing_with_them(client: Client, action: str) -> None:
    talk("one", title="Chairs")
    reserve("one")
    staff(client, f"{action}_conversation")
    assert client.get(page_of(action, "one")).status_code == 403


@pytest.mark.parametrize("action", ACTIONS)
def test_a_request_from_elsewhere_is_refused(action: str) -> None:
    talk("one")
    reserve("one")
    client = Client(enforce_csrf_checks=True)
    staff(client, "view_conversation", f"{action}_conversation")
    answer = client.post(page_of(action, "one"), {"title": "Tables", "post": "yes"})
    assert answer.status_code == 403
    assert Conversation.objects.get().title == ""


@pytest.mark.parametrize("conversation_id", AWKWARD_IDS)
def test_a_conversation_of_any_id_has_pages_that_ask(manager: Client, conversation_id: str) -> None:
    talk(conversation_id, title=HOSTILE)
    reserve(conversation_id)
    for action in ACTIONS:
        page = manager.get(page_of(action, conversation_id))
        assert HOSTILE in seen(page)
        assert "<script>alert" not in page.content.decode()


@pytest.mark.parametrize("action", ["rename", "redraft", "release"])
@pytest.mark.parametrize("conversation_id", ["unknown", "a\0b", "x" * 300])
def test_a_conversation_that_is_gone_is_told(
    manager: Client, action: str, conversation_id: str
) -> None:
    for answer in (
        manager.get(page_of(action, conversation_id)),
        manager.post(page_of(action, conversation_id), {"title": "Tables", "token": "x"}),
    ):
        assert (answer.status_code, answer["Location"]) == (302, CONVERSATIONS)
    assert told(answer)[-1] == "This conversation is gone: somebody has deleted it."


# Titles.


def test_a_person_renames_a_conversation(manager: Client) -> None:
    talk("one", title="Chairs", title_source="draft")
    answer = manager.post(page_of("rename", "one"), {"title": "  Tables \n and  lamps "})
    assert answer["Location"] == conversation_page("one")
    assert title_of("one") == ("Tables and lamps", "person")
    assert logged() == ["manager: Chairs: Title changed from “Chairs” to “Tables and lamps”."]


@pytest.mark.parametrize("title", ["", "  \t", "x" * 256, "a\0b"])
def test_a_title_that_no_store_takes_is_told_on_the_form(manager: Client, title: str) -> None:
    talk("one", title="Chairs")
    answer = manager.post(page_of("rename", "one"), {"title": title})
    assert answer.status_code == 200
    assert answer.context["form"].errors["title"]
    assert title_of("one")[0] == "Chairs"
    assert logged() == []


def test_the_form_begins_with_the_title_of_now(manager: Client) -> None:
    talk("one", title=HOSTILE)
    assert manager.get(page_of("rename", "one")).context["form"]["title"].value() == HOSTILE


def redraft(client: Client, provider: Any, **settings: Any) -> Any:
    with override_provider(provider), override_agent_memory(**{"TITLE_MODEL": "cheap", **settings}):
        return client.post(page_of("redraft", "one"))


def test_a_title_is_redrafted_by_the_model_for_titles_even_where_a_person_gave_it(
    manager: Client,
) -> None:
    talk("one", prompt="Where are my chairs?", title="Chairs", title_source="person")
    talk("one", prompt="And my lamps?")
    before = Conversation.objects.get()
    provider = ScriptedProvider(title=Answer("“Missing Chairs.”", usage=Usage(input_tokens=9)))
    answer = redraft(manager, provider)
    (request,) = provider.title_requests
    assert (request.model, request.messages[-1].text) == ("cheap", "Where are my chairs?")
    assert answer["Location"] == conversation_page("one")
    assert title_of("one") == ("Missing Chairs", "draft")
    assert Conversation.objects.get().input_tokens == before.input_tokens + 9
    assert logged() == ["manager: Chairs: Title changed from “Chairs” to “Missing Chairs”."]


def test_the_page_that_asks_whether_to_redraft_asks_no_model(manager: Client) -> None:
    talk("one", title="Chairs", title_source="person")
    provider = ScriptedProvider(title="Tables")
    with override_provider(provider), override_agent_memory(TITLE_MODEL=None, MODEL="the <model>"):
        page = seen(manager.get(page_of("redraft", "one")))
    assert "“the <model>”" in page
    assert "given by a person" in page
    assert provider.title_requests == []


@pytest.mark.parametrize(
    ("title", "words"),
    [
        (ProviderRefused("No such model."), "No title was drafted. No such model."),
        (RuntimeError("sk-secret"), "No title was drafted; the log tells why."),
        (" “” ", "The model gave no title."),
    ],
)
def test_a_model_that_drafts_nothing_is_told_and_changes_nothing(
    manager: Client, title: Any, words: str
) -> None:
    talk("one", title="Chairs")
    answer = redraft(manager, ScriptedProvider(title=title))
    assert answer["Location"] == conversation_page("one")
    assert told(answer) == [words]
    assert title_of("one")[0] == "Chairs"
    assert logged() == []


def test_a_model_that_takes_too_long_is_told(
    manager: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk("one", title="Chairs")
    monkeypatch.setattr(titles, "PATIENCE_SECONDS", 0.01)
    gate = threading.Event()
    try:
        answer = redraft(manager, ScriptedProvider(title="Tables", gate=gate))
    finally:
        gate.set()
    assert told(answer) == ["No title was drafted. No title came within 0.01 seconds."]
    assert title_of("one")[0] == "Chairs"


def test_a_provider_that_is_not_configured_is_told(manager: Client) -> None:
    talk("one")
    with override_agent_memory(TITLE_MODEL="cheap"):
        answer = manager.post(page_of("redraft", "one"))
    (words,) = told(answer)
    assert "The OpenAI client has no key." in words


@pytest.mark.parametrize(
    ("prompt", "settings", "words"),
    [
        (" \n", {}, "The conversation begins with no text that a title could be made of."),
        (
            "Hi",
            {"TITLE_MODEL": None, "MODEL": None},
            "The settings name no model that drafts titles.",
        ),
    ],
)
def test_nothing_to_ask_or_nobody_to_ask_is_told(
    manager: Client, prompt: str, settings: dict[str, Any], words: str
) -> None:
    talk("one", prompt=prompt)
    assert told(redraft(manager, ScriptedProvider(title="Tables"), **settings)) == [words]


def test_a_title_is_redrafted_over_http(manager: Client) -> None:
    talk("one", prompt="Remember: blue.", title="Chairs")
    with stand_in.serve() as url:
        provider = OpenAIResponsesProvider(base_url=url, api_key="unused")
        redraft(manager, provider)
    assert title_of("one")[1] == "draft"


@pytest.mark.django_db(transaction=True)
def test_no_transaction_is_open_while_the_model_drafts(
    manager: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk("one", title="Chairs")
    here = connections["default"]
    monkeypatch.setitem(here.settings_dict, "ATOMIC_REQUESTS", True)
    in_transaction = []

    def title(request: Any) -> str:
        in_transaction.append(here.in_atomic_block)
        return "Tables"

    redraft(manager, ScriptedProvider(title=title))
    assert in_transaction == [False]
    assert title_of("one")[0] == "Tables"


# A reservation that a worker has left.


def test_a_conversation_that_no_turn_holds_is_not_released(manager: Client) -> None:
    talk("one")
    for answer in (manager.get(page_of("release", "one")), manager.post(page_of("release", "one"))):
        assert answer["Location"] == conversation_page("one")
    assert told(answer)[-1] == "The turn that had reserved this conversation has ended by itself."
    assert logged() == []


def test_a_released_conversation_takes_the_next_turn_and_not_the_one_that_ran(
    manager: Client,
) -> None:
    talk("one")
    reservation = reserve("one")
    assert "may well be running" in seen(manager.get(page_of("release", "one")))
    manager.post(page_of("release", "one"), {"token": token(manager, "one")})
    assert logged() == ["manager: one: Reservation ended."]
    step = Step(items=(TextPart(text="Late."),))
    with pytest.raises(ConversationConflict):
        store.append("one", Turn(user=Message("user", "a"), steps=(step,)), reservation=reservation)
    reserve("one")


def test_what_tools_did_of_a_turn_that_is_released_is_a_failed_turn(manager: Client) -> None:
    talk("one")
    reserve("one", tools=True)
    Conversation.objects.update(reserved_until=1)
    assert "Its worker has died" in seen(manager.get(page_of("release", "one")))
    manager.post(page_of("release", "one"), {"token": token(manager, "one")})
    answer = ConversationMessage.objects.get(status="failed")
    assert '"done"' in answer.steps


def test_another_turn_than_the_one_that_was_seen_is_not_released(manager: Client) -> None:
    talk("one")
    first = reserve("one")
    seen_token = token(manager, "one")
    store.release(first)
    second = reserve("one")
    answer = manager.post(page_of("release", "one"), {"token": seen_token})
    assert told(answer) == ["The turn that had reserved this conversation has ended by itself."]
    assert store.renew(second, 60)
