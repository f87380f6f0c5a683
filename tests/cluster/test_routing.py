"""What a router's ``db_for_read`` is asked for: pages and lists, nothing that decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils.connection import ConnectionDoesNotExist

from agent_memory import Agent, RemembersConversations, conversation_store
from agent_memory.exceptions import ConversationDoesNotExist
from agent_memory.testing import ScriptedProvider
from tests.agents import ask, in_every_way


class Coach(RemembersConversations, Agent):
    pass


@pytest.fixture
def ann(db: None, settings: Any) -> User:
    """Return a user of a project whose replica is not there."""
    user = User.objects.create_user("ann")
    settings.DATABASE_ROUTERS = ["tests.cluster.routers.MissingReplica"]
    return user


@in_every_way
def test_turns_need_no_replica(way: str, ann: User, scripted_provider: ScriptedProvider) -> None:
    scripted_provider.extend(["one", "two", "three"])
    one = ask(way, Coach().for_user(ann), "Hello")
    two = ask(way, Coach().continue_last_conversation(ann), "Again")
    mine = Coach().continue_conversation(str(one.conversation_id), ann, must_own=True)
    three = ask(way, mine, "Once", idempotency_key="key")
    again = ask(way, mine, "Once", idempotency_key="key")
    assert one.conversation_id == two.conversation_id == three.conversation_id
    assert again.user_message_id == three.user_message_id
    foreign = Coach().continue_conversation(str(one.conversation_id), None, must_own=True)
    with pytest.raises(ConversationDoesNotExist):
        ask(way, foreign, "Mine?")


def test_a_conversation_is_got_and_its_owner_told_without_a_replica(ann: User) -> None:
    opened = conversation_store.create(participant=ann)
    assert conversation_store.get(opened.id) == opened
    assert conversation_store.conversation_belongs_to(opened.id, ann)
    assert not conversation_store.conversation_belongs_to(opened.id, None)


@pytest.mark.parametrize(
    "read",
    [
        lambda ann: conversation_store.paginate_conversation_messages("id"),
        lambda ann: conversation_store.list_conversations(ann),
    ],
    ids=["page", "list"],
)
def test_pages_and_lists_are_read_from_the_replica(read: Callable[[User], Any], ann: User) -> None:
    with pytest.raises(ConnectionDoesNotExist):
        read(ann)
