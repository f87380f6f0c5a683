"""An agent that remembers, over both stores and in all four ways to ask."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import SuspiciousOperation

from agent_memory import (
    Agent,
    Message,
    Participant,
    RemembersConversations,
    conversation_store,
)
from agent_memory.exceptions import (
    ConversationConflict,
    ConversationDoesNotExist,
    HistoryConflict,
    InvalidConversationId,
    InvalidParticipant,
    InvalidProvider,
)
from agent_memory.messages import TextPart, ToolCall
from agent_memory.responses import Started
from agent_memory.stores import ConversationStore
from agent_memory.testing import ScriptedProvider, override_agent_memory, override_store

CALL = ToolCall(id="call_1", name="look", arguments={})


class Coach(RemembersConversations, Agent):
    """Answers with how many messages it was sent, and the last of them."""


class OtherCoach(RemembersConversations):
    pass


def sent(provider: ScriptedProvider) -> list[str]:
    """Return the texts that the last request held."""
    return [message.text for message in provider.requests[-1].messages]


def is_untouched(store: ConversationStore, *participants: Any) -> bool:
    return not any(len(store.list_conversations(each)) for each in (None, *participants))


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


def test_the_same_key_of_another_model_is_another_participant(store, provider, user, team):
    Coach().for_user(user).prompt("for the user")
    Coach().for_participant(team).prompt("for the team")
    Coach().continue_last_conversation(user).prompt("again")
    assert sent(provider) == ["for the user", "1: for the user", "again"]


def test_a_conversation_may_belong_to_nobody(store, provider, user):
    response = Coach().for_participant(None).prompt("a")
    assert store.conversation_belongs_to(response.conversation_id, None)
    assert not store.conversation_belongs_to(response.conversation_id, user)


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
