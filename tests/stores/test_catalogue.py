"""Stores of transcripts take plain objects as participants, and tell what they hold."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.utils.functional import SimpleLazyObject

from agent_memory.exceptions import InvalidParticipant
from agent_memory.participants import Participant
from agent_memory.records import Heading
from agent_memory.stores.catalogue import Catalogue
from agent_memory.stores.file import FileConversationStore
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.testing.contract.base import plain_turn
from tests.testapp.models import Team


@pytest.fixture(params=["in memory", "in files"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Catalogue:
    if request.param == "in memory":
        return InMemoryConversationStore()
    return FileConversationStore(folder=tmp_path, fsync=False)


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


def test_placeholders_are_told_of_and_listed_nowhere(store):
    store.append(Heading("one", Participant("auth.user", "1"), "coach"), plain_turn())
    store.reserve("two", participant=Participant("auth.user", "1"), create=True)
    entries = {entry.id: entry for entry in store._entries()}
    assert entries["one"].stored == store.get("one")
    assert entries["one"].spoke.keys() == {(Participant("auth.user", "1"), "coach")}
    assert (entries["two"].stored, entries["two"].spoke) == (None, {})
