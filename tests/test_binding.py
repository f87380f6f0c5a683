"""Binding an agent to a conversation, over both stores and in all four ways to ask."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import SuspiciousOperation

from agent_memory import Agent, Message, Participant, RemembersConversations
from agent_memory.exceptions import (
    ConversationConflict,
    ConversationDoesNotExist,
    InvalidConversationId,
    InvalidParticipant,
)
from agent_memory.stores import ConversationStore
from agent_memory.testing import ScriptedProvider, override_agent_memory, override_store


class Coach(RemembersConversations, Agent):
    """Answers with how many messages it was sent, and the last of them."""


class OtherCoach(RemembersConversations):
    pass


def sent(provider: ScriptedProvider) -> list[str]:
    """Return the texts that the last request held."""
    return [message.text for message in provider.requests[-1].messages]


def is_untouched(store: ConversationStore, *participants: Any) -> bool:
    return not any(len(store.list_conversations(each)) for each in (None, *participants))


def test_binding_to_a_user_always_starts_afresh(store, provider, user):
    coach = Coach().for_user(user)
    first, fresh = coach.prompt("a"), coach.for_user(user).prompt("b")
    assert first.conversation_id != fresh.conversation_id
    assert sent(provider) == ["b"]


def test_binding_does_no_query_and_changes_no_shared_agent(db, user, django_assert_num_queries):
    shared = Coach()
    with django_assert_num_queries(0):
        shared.for_user(user)
        shared.continue_conversation("some-id", user)
        shared.continue_or_start(None, user)
        shared.continue_last_conversation(user)
        shared.without_memory()
    assert vars(shared) == {}


def test_threads_share_a_module_level_agent(provider, user):
    shared, ids = Coach(), []
    with override_store():
        threads = [
            threading.Thread(target=lambda: ids.append(shared.for_user(user).prompt("a")))
            for _ in range(8)
        ]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    assert len({response.conversation_id for response in ids}) == 8


def test_a_subclass_constructor_need_not_call_super(store, provider, user):
    class Quiet(RemembersConversations, Agent):
        def __init__(self) -> None:
            self.mood = "quiet"

    assert Quiet().for_user(user).prompt("a").conversation_id


def test_an_unsaid_speaker_is_the_owner_of_the_conversation(store, provider, user):
    first = Coach().for_user(user).prompt("a")
    other = Coach().for_user(user).prompt("b")
    Coach().continue_conversation(first.conversation_id).prompt("c")
    last = Coach().continue_last_conversation(user).prompt("d")
    assert last.conversation_id == first.conversation_id != other.conversation_id


# Going on.


def test_an_unknown_id_is_an_error_before_the_model_is_asked(store, provider, user, ask):
    with pytest.raises(ConversationDoesNotExist, match="no conversation 'nowhere'"):
        ask(Coach().continue_conversation("nowhere", user), "a")
    assert provider.requests == []
    assert is_untouched(store, user)


def test_a_foreign_conversation_looks_like_a_missing_one(store, provider, user, team, ask):
    mine = Coach().for_user(user).prompt("a").conversation_id
    for stranger in (team, None):
        with pytest.raises(ConversationDoesNotExist):
            ask(Coach().continue_conversation(mine, stranger, must_own=True), "b")
    assert len(provider.requests) == 1
    assert ask(Coach().continue_conversation(mine, user, must_own=True), "b").text == "3: b"


def test_the_setting_asks_for_ownership_and_the_call_goes_before_it(store, provider, user, team):
    mine = Coach().for_user(user).prompt("a").conversation_id
    assert Coach().continue_conversation(mine, team).prompt("b").text == "3: b"
    with override_agent_memory(VERIFY_OWNERSHIP=True):
        with pytest.raises(ConversationDoesNotExist):
            Coach().continue_conversation(mine, team).prompt("c")
        with pytest.raises(ConversationDoesNotExist):
            Coach().for_participant(team).prompt("c", conversation_id=mine)
        assert Coach().continue_conversation(mine, team, must_own=False).prompt("c")


def test_only_none_starts_a_conversation(store, provider, user):
    started = Coach().continue_or_start(None, user).prompt("a")
    went_on = Coach().continue_or_start(started.conversation_id, user).prompt("b")
    assert went_on.conversation_id == started.conversation_id
    with pytest.raises(InvalidConversationId):
        Coach().continue_or_start("", user)
    with pytest.raises(ConversationDoesNotExist):
        Coach().continue_or_start("unknown", user).prompt("c")
    with pytest.raises(ConversationDoesNotExist):
        Coach().continue_or_start(started.conversation_id, None, must_own=True).prompt("c")


def test_the_last_conversation_is_the_one_last_spoken_in(store, provider, user, ask):
    older = Coach().for_user(user).prompt("a").conversation_id
    Coach().for_user(user).prompt("b")
    Coach().continue_conversation(older, user).prompt("c")
    Coach().start_conversation(user, title="Empty, and so not spoken in")
    assert ask(Coach().continue_last_conversation(user), "d").conversation_id == older


def test_the_last_conversation_is_one_with_this_agent(store, provider, user):
    mine = Coach().for_user(user).prompt("a").conversation_id
    OtherCoach().for_user(user).prompt("b")
    assert Coach().continue_last_conversation(user).prompt("c").conversation_id == mine


def test_classes_may_share_a_label(store, provider, user):
    mine = Coach(label="coach").for_user(user).prompt("a").conversation_id
    renamed = OtherCoach(label="coach").continue_last_conversation(user)
    assert renamed.prompt("b").conversation_id == mine


def test_without_a_last_conversation_one_starts(store, provider, user, ask):
    coach = Coach().continue_last_conversation(user)
    first, second = ask(coach, "a"), ask(coach, "b")
    assert first.conversation_id == second.conversation_id


def test_a_cleared_conversation_is_not_the_last_one(store, provider, user):
    cleared = Coach().for_user(user).prompt("a").conversation_id
    store.clear(cleared)
    assert Coach().continue_last_conversation(user).prompt("b").conversation_id != cleared


def test_nobody_has_no_last_conversation(store):
    with pytest.raises(InvalidParticipant, match="continue_conversation"):
        Coach().continue_last_conversation(None)


# Ids of the caller's.


def test_a_default_id_opens_its_conversation_and_goes_on_with_it(store, provider, ask):
    agent = Coach(conversation_id="user-42")
    assert [ask(agent, "a").conversation_id, ask(agent, "b").conversation_id] == ["user-42"] * 2
    assert sent(provider) == ["a", "1: a", "b"]


def test_an_id_of_the_call_goes_before_the_default(store, provider, ask):
    agent = Coach(conversation_id="user-42")
    assert ask(agent, "a", conversation_id="user-43").conversation_id == "user-43"
    assert ask(agent, "b").conversation_id == "user-42"
    assert sent(provider) == ["b"]


def test_an_id_of_the_call_opens_a_conversation_for_the_bound_participant(store, provider, user):
    coach = Coach().for_user(user)
    coach.prompt("a", conversation_id="given")
    assert store.conversation_belongs_to("given", user)
    fresh = coach.prompt("b")
    assert fresh.conversation_id != "given"
    assert sent(provider) == ["b"]


def test_without_id_and_participant_nothing_is_remembered(store, provider, ask):
    assert ask(Coach(), "a").conversation_id is None
    ask(Coach(), "b")
    assert sent(provider) == ["b"]
    assert is_untouched(store)


@pytest.mark.parametrize(
    "odd", ["", "x" * 256, "a\0b", "a\ud800b", 7, b"id", ["id"]], ids=lambda odd: repr(odd)[:20]
)
def test_an_impossible_id_is_refused_by_name(store, provider, odd):
    for attempt in (
        lambda: Coach().continue_conversation(odd),
        lambda: Coach(conversation_id=odd).prompt("a"),
        lambda: Coach().prompt("a", conversation_id=odd),
    ):
        with pytest.raises(InvalidConversationId) as caught:
            attempt()
        assert isinstance(caught.value, SuspiciousOperation)
    assert provider.requests == []
    assert is_untouched(store)


def test_ids_are_compared_byte_for_byte(store, provider):
    ids = [
        "User-42",
        "user-42",
        "user-42 ",
        " user-42",
        "u\u0308",
        "\u00fc",
        "ß",
        "ss",
        "K",
        "\u212a",
    ]
    for each in ids:
        Coach().prompt(each, conversation_id=each)
        assert sent(provider) == [each]


# Opening on purpose.


def test_an_empty_conversation_can_be_opened(store, provider, user):
    coach = Coach().start_conversation(user, title="Plans", conversation_id="plans")
    assert coach.current_conversation_id == "plans"
    assert store.get("plans").title == "Plans"
    assert coach.prompt("a").conversation_id == "plans"
    assert store.get("plans").title == "Plans"


def test_an_empty_conversation_can_be_opened_from_a_task(store, provider, user):
    coach = async_to_sync(Coach().astart_conversation)(user)
    assert coach.prompt("a").conversation_id == coach.current_conversation_id


def test_a_taken_id_is_not_opened_again(store, provider, user):
    Coach().start_conversation(user, conversation_id="plans")
    with pytest.raises(ConversationConflict, match="already"):
        Coach().start_conversation(user, conversation_id="plans")


def test_only_instructions_lead(store, user):
    for wrong in (Message("user", "a"), "a"):
        with pytest.raises(ValueError, match="leading"):
            Coach().start_conversation(user, leading=[wrong])
    assert is_untouched(store, user)


# What is refused.


def test_a_participant_must_be_somebody_who_is_saved(db, provider):
    for wrong, remedy in (
        (User(username="unsaved"), "save it first"),
        (AnonymousUser(), "for_participant\\(None\\)"),
        (object(), "saved model instance"),
        (User, "saved model instance"),
        ("7", "saved model instance"),
    ):
        for bind in (Coach().for_user, Coach().continue_last_conversation):
            with pytest.raises(InvalidParticipant, match=remedy):
                bind(wrong)
        with pytest.raises(InvalidParticipant):
            Coach().continue_conversation("id", wrong)


def test_a_participant_of_no_installed_model_is_refused_before_the_model_is_asked(db, provider):
    with pytest.raises(InvalidParticipant, match=r"no\.such"):
        Coach().for_participant(Participant("no.such", "1")).prompt("a", conversation_id="given")
    assert provider.requests == []
