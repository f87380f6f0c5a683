"""The in-memory store keeps the contract, and within its bounds all that is used."""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.exceptions import (
    ConversationConflict,
    ConversationDoesNotExist,
    InvalidStore,
)
from agent_memory.messages import Message, Replay, Step, TextPart, Turn
from agent_memory.participants import Participant
from agent_memory.records import Heading
from agent_memory.signals import conversation_cleared
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.testing import AsyncConversationStoreContract, ConversationStoreContract
from agent_memory.testing.contract.base import plain_turn, tool_turn
from agent_memory.testing.contract.journals import entries_of

GUEST, OTHER = Participant("guest", "1"), Participant("guest", "2")


class TestInMemoryConversationStore(ConversationStoreContract):
    def make_store(self) -> InMemoryConversationStore:
        return InMemoryConversationStore()


@pytest.mark.heavy
class TestAsyncInMemoryConversationStore(AsyncConversationStoreContract):
    def make_store(self) -> InMemoryConversationStore:
        return InMemoryConversationStore()


@pytest.fixture
def store() -> InMemoryConversationStore:
    return InMemoryConversationStore()


# Bounds.


def ids(store: InMemoryConversationStore) -> list[str]:
    return [stored.id for stored in store.list_conversations(None)]


def test_of_more_conversations_than_wanted_the_least_recently_active_are_forgotten():
    store = InMemoryConversationStore(max_conversations=3)
    for conversation_id in ("a", "b", "c", "a", "d"):
        store.append(conversation_id, plain_turn())
    assert ids(store) == ["d", "a", "c"]
    assert store.load("b") == ()
    store.create("e")
    assert ids(store) == ["e", "d", "a"]
    store.load("a")
    store.append("f", plain_turn())
    assert ids(store) == ["f", "e", "d"]
    assert store.append("a", plain_turn()).created


def test_a_conversation_that_is_answering_is_not_forgotten():
    store = InMemoryConversationStore(max_conversations=1)
    store.append("a", plain_turn())
    running = store.reserve("a")
    first = store.reserve("b", create=True)
    store.append("c", plain_turn())
    store.append("d", plain_turn())
    assert ids(store) == ["d", "a"]
    store.append("b", plain_turn(), reservation=first)
    assert ids(store) == ["b", "a"]
    store.append("a", plain_turn("after"), reservation=running)
    assert ids(store) == ["a"]
    assert len(store.load("a")) == 4


def test_what_a_dead_worker_left_is_forgotten_first():
    store = InMemoryConversationStore(max_conversations=2)
    store.append("a", plain_turn())
    dead = store.reserve("b", create=True)
    for entry in entries_of(tool_turn(), Heading("b")):
        store.journal(dead, entry, 0)
    store.append("c", plain_turn())
    assert ids(store) == ["c", "a"]
    assert store.renew(dead, 60) is False


@pytest.mark.parametrize("wrong", [0, -1, "5", 2.5, True])
def test_a_bound_is_a_whole_number(wrong):
    with pytest.raises(InvalidStore, match="max_conversations is a whole number from 1"):
        InMemoryConversationStore(max_conversations=wrong)
    assert InMemoryConversationStore(max_conversations=None).max_conversations is None


# Reservations.


def test_a_reservation_tells_at_once_of_its_conversation(store):
    owner = Participant("auth.user", "1")
    new = store.reserve(participant=owner)
    assert (new.new, new.placeholder, new.next_position, new.participant) == (
        *(True, False, 0, owner),
    )
    first = store.reserve("one", participant=owner, create=True)
    assert (first.new, first.placeholder, first.next_position, first.participant) == (
        *(False, True, 0, owner),
    )
    store.append(Heading("one", owner), plain_turn(), reservation=first)
    second = store.reserve("one")
    assert (second.placeholder, second.next_position, second.participant) == (False, 2, owner)


def test_a_dead_first_turn_is_nobodys(store):
    dead = store.reserve("one", participant=GUEST, create=True)
    store.renew(dead, 0)
    with pytest.raises(ConversationDoesNotExist):
        store.reserve("one", participant=GUEST)
    taken = store.reserve("one", participant=OTHER, must_own=True, create=True)
    assert taken.participant == OTHER
    store.renew(taken, 0)
    assert store.create("one", title="Mine").title == "Mine"
    for stale in (dead, taken):
        store.release(stale)
        with pytest.raises(ConversationConflict):
            store.append("one", plain_turn(), reservation=stale)
    assert store.load("one") == ()


def test_a_reservation_of_one_conversation_does_not_write_another(store):
    store.append("one", plain_turn())
    for reservation in (store.reserve("one"), store.reserve()):
        for other in ("one more", "one"):
            if other != reservation.conversation_id:
                with pytest.raises(ConversationConflict):
                    store.append(other, plain_turn("late"), reservation=reservation)
    assert store.load("one") == plain_turn().messages
    assert store.get("one more") is None


def test_nothing_is_kept_of_what_is_gone(store):
    for number in range(3):
        store.release(store.reserve(f"{number}", create=True))
        store.append(f"{number}", plain_turn())
        store.reserve(f"{number}")
        store.clear(f"{number}")
        reservation = store.reserve(f"{number}", create=True)
        for entry in entries_of(tool_turn(), Heading(f"{number}")):
            store.journal(reservation, entry, 60)
        store.release(reservation)
    store.release(store.reserve())
    assert (store._transcripts, store._held) == ({}, {})


# What is stored.


def test_opaque_blocks_of_a_provider_are_not_kept(store):
    blocks = ({"type": "reasoning", "encrypted": "secret"},)
    step = Step(
        items=(TextPart(text="Hi"),), replay=Replay(provider="openai", model="gpt", blocks=blocks)
    )
    store.append("one", Turn(user=Message("user", "Hi"), steps=(step,)))
    answer, _ = store.paginate_conversation_messages("one")
    assert answer.steps == (step.model_copy(update={"replay": None}),)


def test_times_of_activity_never_repeat(store):
    for number in range(200):
        store.append(f"{number % 7}", plain_turn())
    activity = [stored.last_activity for stored in store.list_conversations(None)]
    assert len(set(activity)) == 7
    assert activity == sorted(activity, reverse=True)


def test_clearing_a_conversation_is_told_once_and_undone_by_no_receiver(store):
    told = []

    def receiver(sender: type, conversation_id: str, **kwargs: Any) -> None:
        told.append((sender, conversation_id, store.get(conversation_id)))
        raise ZeroDivisionError

    conversation_cleared.connect(receiver)
    try:
        store.append("one", plain_turn())
        for _ in range(2):
            store.clear("one")
    finally:
        conversation_cleared.disconnect(receiver)
    assert told == [(InMemoryConversationStore, "one", None)]
