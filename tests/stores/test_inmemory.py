"""The in-memory store keeps the contract, and takes plain objects."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.utils.functional import SimpleLazyObject

from agent_memory.exceptions import (
    ConversationConflict,
    ConversationDoesNotExist,
    InvalidParticipant,
)
from agent_memory.messages import Message, Replay, Step, TextPart, Turn
from agent_memory.participants import Participant
from agent_memory.records import Heading
from agent_memory.signals import conversation_cleared
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.testing import AsyncConversationStoreContract, ConversationStoreContract
from agent_memory.testing.contract.base import plain_turn, tool_turn
from agent_memory.testing.contract.journals import entries_of
from tests.testapp.models import Team


class TestInMemoryConversationStore(ConversationStoreContract):
    def make_store(self) -> InMemoryConversationStore:
        return InMemoryConversationStore()


class TestAsyncInMemoryConversationStore(AsyncConversationStoreContract):
    def make_store(self) -> InMemoryConversationStore:
        return InMemoryConversationStore()


@pytest.fixture
def store() -> InMemoryConversationStore:
    return InMemoryConversationStore()


# Plain objects.


class Guest:
    def __init__(self, key: Any) -> None:
        self.id = key

    class Child:
        id = 7


class Robot(Guest):
    pass


def test_an_object_with_an_id_is_a_participant(store):
    guest = f"{__name__}.Guest"
    assert store.participant_of(Guest(7)) == Participant(guest, "7")
    assert store.participant_of(Guest("é ")) == Participant(guest, "é ")
    assert store.participant_of(Guest(0)) == Participant(guest, "0")
    assert store.participant_of(Robot(7)) == Participant(f"{__name__}.Robot", "7")
    assert store.participant_of(Guest.Child()) == Participant(f"{guest}.Child", "7")
    assert store.participant_of(SimpleNamespace(id=7)) == Participant("types.SimpleNamespace", "7")


def test_a_lazy_object_is_the_object_behind_it(store):
    assert store.participant_of(SimpleLazyObject(lambda: Guest(7))) == store.participant_of(
        Guest(7)
    )


def test_models_and_participants_are_what_they_are_elsewhere(store):
    team = Team(pk=7)
    team._state.adding = False
    assert store.participant_of(team) == Participant("testapp.team", "7")
    assert store.participant_of(Participant("a", "b")) == Participant("a", "b")
    assert store.participant_of(None) is None


@pytest.mark.parametrize("key", [None, "", " ", "\n"])
def test_an_object_without_a_key_is_refused(store, key):
    with pytest.raises(InvalidParticipant, match="This Guest has no id"):
        store.participant_of(Guest(key))


@pytest.mark.parametrize(
    "other",
    [
        *(
            User(),
            Team(),
            AnonymousUser(),
            SimpleLazyObject(AnonymousUser),
            User,
            Guest,
            Guest.Child,
        ),
        *(7, "7", object(), {"id": 7}, Guest("x" * 256), Guest("a\0")),
    ],
)
def test_what_stands_for_nobody_is_refused_all_the_same(store, other):
    with pytest.raises(InvalidParticipant):
        store.participant_of(other)


def test_a_plain_owner_is_known_again(store):
    reservation = store.reserve("one", participant=Guest(7), create=True)
    heading = Heading("one", reservation.participant, "coach")
    store.append(heading, plain_turn(), reservation=reservation)
    assert store.conversation_belongs_to("one", Guest(7))
    assert not store.conversation_belongs_to("one", Robot(7))
    assert store.latest_conversation_id(Guest("7"), "coach") == "one"
    assert [stored.id for stored in store.list_conversations(Guest(7))] == ["one"]
    store.append(dataclasses.replace(heading, id="two", participant=Guest(8)), plain_turn())
    assert store.conversation_belongs_to("two", Guest(8))


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
    dead = store.reserve("one", participant=Guest(1), create=True)
    store.renew(dead, 0)
    with pytest.raises(ConversationDoesNotExist):
        store.reserve("one", participant=Guest(1))
    taken = store.reserve("one", participant=Guest(2), must_own=True, create=True)
    assert taken.participant == store.participant_of(Guest(2))
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
