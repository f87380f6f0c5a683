"""Whose conversations are, in the database: how many statements, and against workers that run."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import transaction

from agent_memory import Participant
from agent_memory.exceptions import ConversationConflict
from agent_memory.models import Conversation, ConversationMessage
from agent_memory.records import Heading
from agent_memory.stores.database import DatabaseConversationStore
from tests.stores.test_database import ADA, a_turn, filled, in_threads, servers, statements, warmed

__all__ = ["servers"]

BOB = Participant("auth.user", "2")

CHANGES: list[Callable[[DatabaseConversationStore], None]] = [
    lambda store: store.anonymise_participant(ADA),
    lambda store: store.clear_conversations(ADA),
]


@pytest.fixture
def store(db: None) -> DatabaseConversationStore:
    return warmed(DatabaseConversationStore())


@pytest.mark.parametrize("turns", [1, 60])
def test_handing_over_takes_two_statements_at_any_length(store, turns):
    conversation_id = filled(store, turns)
    assert len(statements(lambda: store.transfer_conversation(conversation_id, None))) == 2
    assert len(statements(lambda: store.transfer_conversation(conversation_id, BOB))) == 2


@pytest.mark.parametrize("turns", [1, 60])
def test_becoming_nobody_takes_as_many_statements_at_any_length(store, turns):
    filled(store, turns)
    assert len(statements(lambda: store.anonymise_participant(ADA))) == 5


def test_who_owns_nothing_becomes_nobody_by_three_statements(store):
    assert len(statements(lambda: store.anonymise_participant(ADA))) == 3


def test_a_transaction_of_the_callers_may_hand_over_and_take_it_back(store):
    conversation_id = filled(store, 1)
    with transaction.atomic():
        store.transfer_conversation(conversation_id, BOB)
        assert store.conversation_belongs_to(conversation_id, BOB)
        transaction.set_rollback(True)
    assert store.conversation_belongs_to(conversation_id, ADA)


@pytest.mark.parametrize("change", CHANGES, ids=["anonymise", "clear"])
def test_no_turn_that_ran_keeps_a_name_that_is_being_forgotten(servers, change):
    store = DatabaseConversationStore()
    for number in range(10):
        heading = Heading(f"round {number}", ADA, "coach")
        store.append(heading, a_turn())
        running = store.reserve(heading.id)
        work = (
            lambda running=running, heading=heading: store.append(
                heading, a_turn(), reservation=running
            ),
            lambda: change(store),
        )
        appended, changed = in_threads(lambda which, work=work: work[which](), count=2)
        assert changed is None
        assert not isinstance(appended, Exception) or isinstance(appended, ConversationConflict)
        assert not Conversation.objects.exclude(participant_type=None).exists()
        assert not ConversationMessage.objects.exclude(participant_type=None).exists()
