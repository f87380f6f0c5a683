"""A history that an agent is given, or keeps itself: sent, never stored, and the only one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from django.contrib.auth.models import Group

from agent_memory import Agent, AnonymousAgent, Message, RemembersConversations
from agent_memory.exceptions import HistoryConflict
from agent_memory.testing import override_store
from tests.agents import area, ask, in_every_way, scripted, told

HISTORY = told("I am Ada.", "Hello Ada.", "I like blue.", "Noted.")
LEADING = Message("system", "Speak like a pirate.")


class FromTheDatabase(Agent):
    """Keeps its history in rows of its own."""

    def messages(self) -> Iterable[Message]:
        return (Message("user", group.name) for group in Group.objects.order_by("pk"))


class Remembering(RemembersConversations, Agent):
    pass


def sent(provider: Any) -> list[Message]:
    """Return the history that was sent with the last prompt."""
    *history, prompt = provider.requests[-1].messages
    assert prompt == Message("user", "Hello")
    return history


@in_every_way
def test_a_given_history_is_sent_before_the_prompt(way: str) -> None:
    provider = scripted("Blue.")
    response = ask(way, Agent(provider=provider).with_messages(HISTORY))
    assert sent(provider) == HISTORY
    assert response.turn.messages == (Message("user", "Hello"), Message("assistant", "Blue."))
    assert response.conversation_id is None


def test_giving_a_history_leaves_the_agent_as_it_was_and_replaces_an_earlier_one() -> None:
    provider = scripted("a", "b", "c")
    agent = Agent(provider=provider)
    given = agent.with_messages(HISTORY)
    agent.prompt("Hello")
    assert sent(provider) == []
    given.with_messages([LEADING]).prompt("Hello")
    assert sent(provider) == [LEADING]
    given.prompt("Hello")
    assert sent(provider) == HISTORY


def test_a_prompt_does_not_add_to_a_given_history() -> None:
    provider = scripted("a", "b")
    agent = Agent(provider=provider).with_messages(message for message in HISTORY)
    for _ in range(2):
        agent.prompt("Hello")
        assert sent(provider) == HISTORY


@pytest.mark.parametrize("wrong", ["Hello", [{"role": "user"}], [*HISTORY, None]])
def test_a_history_is_made_of_messages(wrong: Any) -> None:
    with pytest.raises(TypeError, match="made of Message objects"):
        Agent().with_messages(wrong)


@in_every_way
def test_an_agent_may_keep_its_history_itself_and_use_the_orm_for_it(way: str, db: None) -> None:
    Group.objects.create(name="one")
    Group.objects.create(name="two")
    provider = scripted("ok")
    ask(way, FromTheDatabase(provider=provider))
    assert [message.text for message in sent(provider)] == ["one", "two"]


@in_every_way
def test_the_async_history_is_preferred_by_the_async_ways(way: str) -> None:
    class Both(Agent):
        def messages(self) -> Iterable[Message]:
            return [Message("user", "prompt stream")]

        async def amessages(self) -> Iterable[Message]:
            return [Message("user", "aprompt astream")]

    provider = scripted("ok")
    ask(way, Both(provider=provider))
    assert way in sent(provider)[0].text.split()


@in_every_way
def test_the_window_of_an_own_history_is_whole_turns_and_the_leading_messages(way: str) -> None:
    provider = scripted("a", "b", "c")
    agent = Agent(provider=provider).with_messages([LEADING, *HISTORY])
    for keep, expected in [(1, HISTORY[2:]), (2, HISTORY), (0, HISTORY)]:
        ask(way, agent, keep_last_turns=keep)
        assert sent(provider) == [LEADING, *expected]


def test_an_anonymous_agent_is_made_of_instructions_messages_and_tools() -> None:
    provider = scripted("ok")
    agent = AnonymousAgent("Be brief.", HISTORY, [area], provider=provider, model="small")
    agent.prompt("Hello")
    (request,) = provider.requests
    assert sent(provider) == HISTORY
    assert (request.instructions, request.model) == ("Be brief.", "small")
    assert request.tools == (area.spec,)
    with pytest.raises(TypeError, match="modle"):
        AnonymousAgent(modle="small")


def test_an_anonymous_agent_without_messages_has_no_history() -> None:
    provider = scripted("ok")
    AnonymousAgent(provider=provider).prompt("Hello")
    assert sent(provider) == []


# Two sources of history.


def test_an_agent_with_its_own_history_is_not_given_another() -> None:
    with pytest.raises(HistoryConflict, match=r"FromTheDatabase defines messages\(\)"):
        FromTheDatabase().with_messages(HISTORY)

    class Async(Agent):
        async def amessages(self) -> Iterable[Message]:
            return HISTORY

    with pytest.raises(HistoryConflict, match="Async defines messages"):
        Async().with_messages(HISTORY)

    class Anonymous(FromTheDatabase, AnonymousAgent):
        pass

    with pytest.raises(HistoryConflict, match=r"Anonymous defines messages\(\)"):
        Anonymous("Be brief.", HISTORY)


@pytest.mark.parametrize("name", ["messages", "amessages"])
def test_a_class_that_remembers_cannot_keep_its_own_history(name: str) -> None:
    with pytest.raises(HistoryConflict, match="Two remembers conversations and defines messages"):
        type("Two", (RemembersConversations, Agent), {name: lambda self: HISTORY})


@pytest.mark.parametrize(
    "bases",
    [
        (RemembersConversations, FromTheDatabase),
        (FromTheDatabase, RemembersConversations),
        (Remembering, FromTheDatabase),
    ],
)
def test_nor_can_it_inherit_one_from_anywhere(bases: tuple[type, ...]) -> None:
    with pytest.raises(HistoryConflict):
        type("Two", bases, {})


def test_a_remembering_agent_is_given_a_history_only_without_memory() -> None:
    provider = scripted("ok")
    with override_store() as store:
        agent = Remembering(provider=provider, conversation_id="known")
        for remembering in (agent, agent.for_participant(None)):
            with pytest.raises(HistoryConflict, match="without_memory"):
                remembering.with_messages(HISTORY)
        response = agent.without_memory().with_messages(HISTORY).prompt("Hello")
        assert sent(provider) == HISTORY
        assert response.conversation_id is None
        assert store.get("known") is None


def test_an_agent_that_was_given_a_history_cannot_be_bound_to_a_conversation() -> None:
    given = Remembering().without_memory().with_messages(HISTORY)
    with override_store():
        for bind in (
            lambda: given.for_participant(None),
            lambda: given.continue_conversation("some-id"),
        ):
            with pytest.raises(HistoryConflict, match="with_messages"):
                bind()


def test_an_agent_without_memory_cannot_go_on_with_a_conversation() -> None:
    provider = scripted("never")
    with pytest.raises(HistoryConflict, match="mix in RemembersConversations"):
        Agent(provider=provider).prompt("Hello", conversation_id="some-id")
    assert provider.requests == []
