"""An agent that remembers, over both stores and in all four ways to ask."""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory import (
    Agent,
    Message,
    Participant,
    RemembersConversations,
    conversation_store,
)
from agent_memory.exceptions import (
    HistoryConflict,
    InvalidProvider,
)
from agent_memory.messages import TextPart, ToolCall
from agent_memory.responses import Started
from agent_memory.stores import ConversationStore
from agent_memory.testing import ScriptedProvider, override_agent_memory

CALL = ToolCall(id="call_1", name="look", arguments={})


class Coach(RemembersConversations, Agent):
    """Answers with how many messages it was sent, and the last of them."""


class OtherCoach(RemembersConversations):
    pass


def is_untouched(store: ConversationStore, *participants: Any) -> bool:
    return not any(len(store.list_conversations(each)) for each in (None, *participants))


def sent(provider: ScriptedProvider) -> list[str]:
    """Return the texts that the last request held."""
    return [message.text for message in provider.requests[-1].messages]


# Remembering.


def test_the_model_is_sent_what_was_said_before(store, provider, user, ask):
    first = ask(Coach().for_user(user), "Remember: blue.")
    again = ask(Coach().continue_conversation(first.conversation_id, user), "What did I say?")
    assert sent(provider) == ["Remember: blue.", "1: Remember: blue.", "What did I say?"]
    assert again.conversation_id == first.conversation_id
    roles = [m.role for m in store.paginate_conversation_messages(first.conversation_id)]
    assert roles == ["assistant", "user", "assistant", "user"]


def test_a_response_tells_the_turn_and_where_it_was_written(store, provider, user, ask):
    response = ask(Coach().for_user(user), "Hello")
    assistant, said = store.paginate_conversation_messages(response.conversation_id)
    assert (response.user_message_id, response.assistant_message_id) == (said.id, assistant.id)
    assert response.turn.messages == (Message("user", "Hello"), Message("assistant", "1: Hello"))
    assert response.text == assistant.content == "1: Hello"
    assert (said.participant, said.agent) == (
        Participant.of(user),
        "tests.test_conversations.Coach",
    )


def test_a_bound_agent_moves_onto_the_conversation_it_opened(store, provider, user, ask):
    coach = Coach().for_user(user)
    assert coach.current_conversation_id is None
    first, second = ask(coach, "a"), ask(coach, "b")
    assert first.conversation_id == second.conversation_id == coach.current_conversation_id


def test_the_same_key_of_another_model_is_another_participant(store, provider, user, team):
    Coach().for_user(user).prompt("for the user")
    Coach().for_participant(team).prompt("for the team")
    Coach().continue_last_conversation(user).prompt("again")
    assert sent(provider) == ["for the user", "1: for the user", "again"]


def test_a_conversation_may_belong_to_nobody(store, provider, user):
    response = Coach().for_participant(None).prompt("a")
    assert store.conversation_belongs_to(response.conversation_id, None)
    assert not store.conversation_belongs_to(response.conversation_id, user)


# Other sources of history.


def test_one_call_may_go_without_memory(store, provider, user, ask):
    coach = Coach().for_user(user)
    ask(coach, "a")
    assert ask(coach.without_memory(), "b").conversation_id is None
    assert sent(provider) == ["b"]
    ask(coach, "c")
    assert sent(provider) == ["a", "1: a", "c"]


def test_a_given_history_is_sent_and_never_stored(store, provider, user, ask):
    agent = Coach().for_user(user).without_memory().with_messages([Message("user", "Remember")])
    ask(agent, "a")
    assert sent(provider) == ["Remember", "a"]
    assert is_untouched(store, user)


def test_an_agent_that_remembers_takes_no_other_history(store, user):
    for agent in (Coach(), Coach().for_user(user)):
        with pytest.raises(HistoryConflict, match="without_memory"):
            agent.with_messages([Message("user", "a")])
    with pytest.raises(HistoryConflict):
        Coach().without_memory().with_messages([Message("user", "a")]).for_user(user)


def test_messages_of_its_own_are_refused_when_the_class_is_made():
    class Own:
        def messages(self):
            return ()

    with pytest.raises(HistoryConflict, match="Forgetful"):
        type("Forgetful", (RemembersConversations,), {"messages": lambda self: ()})
    with pytest.raises(HistoryConflict, match="Forgetful"):
        type("Forgetful", (Own, RemembersConversations, Agent), {})
    with pytest.raises(HistoryConflict, match="Forgetful"):
        type("Forgetful", (RemembersConversations,), {"amessages": lambda self: ()})


def test_a_base_that_hides_the_memory_is_refused_when_the_class_is_made():
    class Shadow(Agent):
        def recall(self, call):
            return super().recall(call)

    with pytest.raises(HistoryConflict, match=r"Shadow\.recall"):
        type("Forgetful", (Shadow, RemembersConversations), {})
    assert type("Fine", (RemembersConversations, Shadow), {})


def test_an_agent_listed_before_the_memory_is_no_class():
    with pytest.raises(TypeError):
        type("Wrong", (Agent, RemembersConversations), {})


# Windows.


def test_the_window_is_that_of_the_call_then_the_class_then_the_setting(store, provider, user):
    coach = Coach(keep_last_turns=2).for_user(user)
    for text in "abcd":
        coach.prompt(text)
    coach.prompt("e")
    assert len(sent(provider)) == 5
    coach.prompt("f", keep_last_turns=1)
    assert sent(provider) == ["e", "5: e", "f"]
    coach.prompt("g", keep_last_turns=0)
    assert len(sent(provider)) == 13
    with override_agent_memory(KEEP_LAST_TURNS=3):
        Coach().continue_last_conversation(user).prompt("h")
    assert len(sent(provider)) == 7


def test_what_falls_out_of_the_window_stays_stored(store, provider, user):
    coach = Coach(keep_last_turns=1).for_user(user)
    for text in "abc":
        response = coach.prompt(text)
    assert len(store.load(response.conversation_id)) == 6


def test_leading_messages_stay_in_every_window(store, provider, user, ask):
    leading = [Message("system", "Be kind."), Message("developer", "Be brief.")]
    coach = Coach(keep_last_turns=1).start_conversation(user, leading=leading)
    for text in "abc":
        ask(coach, text)
    assert sent(provider)[:2] == ["Be kind.", "Be brief."]
    assert len(sent(provider)) == 5


@pytest.mark.parametrize("turns", [-1, 1.5, "3", True])
def test_an_impossible_window_is_refused(store, provider, user, turns):
    with pytest.raises(ValueError, match="keep_last_turns"):
        Coach().for_user(user).prompt("a", keep_last_turns=turns)
    with pytest.raises(ValueError, match="keep_last_turns"):
        Coach(keep_last_turns=turns)
    assert provider.requests == []
    assert is_untouched(store, user)


@pytest.mark.parametrize(
    "message",
    [
        "",
        " \n",
        Message("assistant", "a"),
        Message(content=[]),
        Message("user", "a", tool_call_id="1"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_stored(store, provider, user, message):
    with pytest.raises(ValueError, match="prompt"):
        Coach().for_user(user).prompt(message, conversation_id="given")
    assert provider.requests == []
    assert is_untouched(store, user)


def test_a_message_of_parts_is_remembered_as_it_is(store, provider, user, ask):
    message = Message(content=[TextPart(text="a"), TextPart(text="b", provider_options={"x": 1})])
    response = ask(Coach().for_user(user), message)
    assert store.load(response.conversation_id)[0] == message


def test_no_model_is_an_error_before_anything_is_stored(store, provider, user):
    with override_agent_memory(MODEL=None), pytest.raises(InvalidProvider, match="MODEL"):
        Coach().for_user(user).prompt("a", conversation_id="given")
    assert is_untouched(store, user)


# Streams.


def test_a_stream_tells_its_conversation_from_the_first_event_on(store, provider, user):
    stream = Coach().for_user(user).stream("a")
    assert stream.conversation_id is None
    first = next(stream)
    assert first == Started(stream.conversation_id)
    *_, last = stream
    assert last.response.conversation_id == first.conversation_id
    assert store.get(first.conversation_id) is not None


def test_nothing_of_a_stream_happens_before_it_is_read(store, provider, user):
    Coach().for_user(user).stream("a", conversation_id="given")
    assert is_untouched(store, user)
    assert Coach().prompt("b", conversation_id="given").text == "1: b"


# Tools and stores.


def test_steps_are_stored_and_replayed(store, scripted_provider, user, ask):
    def look() -> str:
        """Look out of the window."""
        return "It rains."

    scripted_provider.extend([["I look.", CALL], "Rain.", "As I said: rain."])
    coach = Coach(tools=[look]).for_user(user)
    response = ask(coach, "Weather?")
    ask(coach, "Again?")
    *history, _ = scripted_provider.requests[-1].messages
    assert tuple(history) == response.turn.messages
    assert [message.role for message in history] == ["user", "assistant", "tool", "assistant"]
    stored = store.paginate_conversation_messages(response.conversation_id, per_page=3).items[-1]
    assert stored.steps == response.turn.steps
    assert [result.value for result in stored.tool_results()] == ["It rains."]


def test_an_agent_may_name_its_own_store(db, provider, user):
    from agent_memory.stores.inmemory import InMemoryConversationStore

    own = InMemoryConversationStore()
    response = Coach(store=own).for_user(user).prompt("a")
    assert own.get(response.conversation_id) is not None
    assert conversation_store.get(response.conversation_id) is None


def test_a_store_of_three_methods_is_enough(provider, ask):
    agent = Coach(store=ListStore(), conversation_id="user-42")
    ask(agent, "a")
    ask(agent, "b")
    assert sent(provider) == ["a", "1: a", "b"]
    with pytest.raises(NotImplementedError, match="latest_conversation_id"):
        ask(agent.continue_last_conversation(Participant("auth.user", "1")), "c")


def test_a_store_may_be_written_in_the_other_colour(provider, ask):
    agent = Coach(store=AsyncListStore(), conversation_id="user-42")
    ask(agent, "a")
    ask(agent, "b")
    assert sent(provider) == ["a", "1: a", "b"]


class ListStore(ConversationStore):
    def __init__(self) -> None:
        super().__init__()
        self.turns: dict[str, list[Any]] = {}

    def load(self, conversation_id, *, keep_last_turns=0, reservation=None):
        turns = self.turns.get(conversation_id, [])[-keep_last_turns:]
        return tuple(message for turn in turns for message in turn.messages)

    def append(self, conversation, turn, *, reservation=None):
        self.turns.setdefault(conversation.id, []).append(turn)

    def clear(self, conversation_id):
        self.turns.pop(conversation_id, None)


class AsyncListStore(ConversationStore):
    def __init__(self) -> None:
        super().__init__()
        self.kept = ListStore()

    async def aload(self, conversation_id, *, keep_last_turns=0, reservation=None):
        return self.kept.load(conversation_id, keep_last_turns=keep_last_turns)

    async def aappend(self, conversation, turn, *, reservation=None):
        return self.kept.append(conversation, turn)

    async def aclear(self, conversation_id):
        self.kept.clear(conversation_id)
