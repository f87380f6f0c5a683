"""The signals: each is documented with the arguments that it is sent with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.dispatch import Signal

from agent_memory import Agent, RemembersConversations, signals
from agent_memory.exceptions import ProviderUnavailable
from agent_memory.participants import Participant
from agent_memory.records import StoredTurn
from agent_memory.stores.database import DatabaseConversationStore
from agent_memory.testing import ScriptedProvider
from tests.agents import area, ask, calling, in_every_way

pytestmark = pytest.mark.django_db


class Coach(RemembersConversations, Agent):
    tools = (area,)


Heard = list[tuple[str, Any, dict[str, Any]]]


def all_signals() -> dict[str, Signal]:
    return {name: signal for name, signal in vars(signals).items() if isinstance(signal, Signal)}


def documented() -> dict[str, set[str]]:
    """Return the names and the arguments that the module's docstring tells."""
    assert signals.__doc__
    told: dict[str, set[str]] = {}
    for item in re.findall(r"^- (.*(?:\n  .*)*)", signals.__doc__, re.MULTILINE):
        names, _, rest = item.partition(":")
        arguments = set(re.findall(r"``([a-z_]+)``", rest))
        told |= dict.fromkeys(re.findall(r"``(\w+)``", names), arguments)
    return told


@pytest.fixture
def heard() -> Iterator[Heard]:
    """Listen to every signal; each is noted with its name, its sender and its arguments."""
    notes: Heard = []
    receivers = []
    for name, signal in all_signals().items():

        def note(signal: Signal, sender: Any, name: str = name, **news: Any) -> None:
            notes.append((name, sender, news))

        signal.connect(note)
        receivers.append((signal, note))
    yield notes
    for signal, note in receivers:
        signal.disconnect(note)


def test_every_signal_is_documented_and_no_other() -> None:
    assert set(documented()) == set(all_signals())
    assert all(documented().values())


@in_every_way
def test_a_turn_tells_that_its_conversation_is_new_and_that_it_is_complete(
    way: str, heard: Heard
) -> None:
    user = User.objects.create(username="ada")
    coach = Coach(provider=ScriptedProvider(["one", "two"])).for_user(user)
    first, second = ask(way, coach), ask(way, coach)
    assert [name for name, _, _ in heard] == [
        "conversation_created",
        "turn_completed",
        "turn_completed",
    ]
    assert {sender for _, sender, _ in heard} == {Coach}
    created, completed, again = [news for _, _, news in heard]
    assert created["participant"] == Participant.of(user)
    assert created["conversation_id"] == first.conversation_id == second.conversation_id
    assert (completed["turn"], again["turn"]) == (first.turn, second.turn)
    assert isinstance(completed["stored"], StoredTurn)
    assert completed["stored"].user_message_id == first.user_message_id


@in_every_way
def test_a_turn_that_fails_after_a_step_is_told_as_failed(way: str, heard: Heard) -> None:
    replies = [calling("area", width=2, height=3), ProviderUnavailable("Down.")]
    coach = Coach(provider=ScriptedProvider(replies)).for_participant(None)
    with pytest.raises(ProviderUnavailable):
        ask(way, coach)
    assert [name for name, _, _ in heard] == ["conversation_created", "turn_failed"]
    assert heard[1][2]["turn"].status == "failed"


@in_every_way
def test_a_turn_that_stores_nothing_tells_nothing(way: str, heard: Heard) -> None:
    coach = Coach(provider=ScriptedProvider([ProviderUnavailable("Down."), "unheard"]))
    with pytest.raises(ProviderUnavailable):
        ask(way, coach.for_participant(None))
    ask(way, coach.without_memory())
    assert heard == []


@in_every_way
def test_a_receiver_that_raises_undoes_no_turn(way: str, heard: Heard) -> None:
    def fail(**news: Any) -> None:
        raise LookupError

    signals.turn_completed.connect(fail)
    try:
        coach = Coach(provider=ScriptedProvider(["one"])).for_participant(None)
        response = ask(way, coach)
    finally:
        signals.turn_completed.disconnect(fail)
    assert response.text == "one"
    assert len(DatabaseConversationStore().load(str(response.conversation_id))) == 2


@in_every_way
def test_every_signal_is_sent_with_its_documented_arguments(way: str, heard: Heard) -> None:
    ask(way, Coach(provider=ScriptedProvider(["one"])).for_participant(None))
    for name, _, news in heard:
        assert set(news) == documented()[name]
