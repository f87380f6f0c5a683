"""
The examples that this app was made after, as a user of it would test his own agents.

Each answers what its example prints.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from agent_memory import (
    Agent,
    AnonymousAgent,
    Message,
    RemembersConversations,
    load_image,
    load_pdf,
    tool,
)
from agent_memory.exceptions import ConversationBusy, HistoryConflict, ProviderUnavailable
from agent_memory.messages import TextPart, Turn
from agent_memory.responses import Finished
from agent_memory.stores import ConversationStore
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.testing import (
    Answer,
    ConversationAssertions,
    Title,
    calls,
    override_agent_memory,
    override_store,
)
from tests.files import PDF, PNG
from tests.fixtures import Ask

REMEMBERED = ["Stored: blue.", "Recalled: blue."]


@tool
def weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"Clear in {city}."


class SupportCoach(RemembersConversations, Agent):
    instructions = "You are a support coach. Keep replies short."
    tools = (weather,)


class HistoryCoach(Agent):
    instructions = "You are a support coach. Keep replies short."

    def messages(self) -> list[Message]:
        return [Message("user", "Remember: blue.")]


# A history for one run, or of your own.


def test_a_fresh_agent_carries_the_history_so_far(ask: Ask) -> None:
    told = [Message("user", "Remember: blue.")]
    with AnonymousAgent.fake(['Say "blue".', 'The word was "blue".']) as fake:
        first = ask(AnonymousAgent("You are a probe.", told, []), "What word?")
        told += Message("assistant", first.text), Message("user", "Repeat it back.")
        second = ask(AnonymousAgent("You are a probe.", told, []), "Repeat it back.")
    assert [first.text, second.text] == ['Say "blue".', 'The word was "blue".']
    assert fake.histories == [tuple(told[:1]), tuple(told)]


def test_a_class_may_own_its_history(ask: Ask) -> None:
    with HistoryCoach.fake(["Recalled: blue."]) as fake:
        assert ask(HistoryCoach(), "What did I say?").text == "Recalled: blue."
    fake.assert_remembered("Remember: blue.")


def test_an_agent_has_one_source_of_history() -> None:
    with pytest.raises(HistoryConflict):
        HistoryCoach().with_messages([Message("user", "Remember: red.")])
    with pytest.raises(HistoryConflict):
        SupportCoach().with_messages([Message("user", "Remember: red.")])
    with pytest.raises(HistoryConflict):
        type("Torn", (SupportCoach,), {"messages": HistoryCoach.messages})


# Conversations that are kept.


def test_a_conversation_is_continued_by_its_id(
    ask: Ask, store: ConversationStore, user: object, conversations: ConversationAssertions
) -> None:
    with SupportCoach.fake(REMEMBERED) as fake:
        first = ask(SupportCoach().for_user(user), "Remember: blue.")
        coach = SupportCoach().continue_conversation(first.conversation_id, user)
        second = ask(coach, "What did I say?")
    assert [first.text, second.text] == REMEMBERED
    assert first.conversation_id is not None
    fake.assert_remembered("Remember: blue.")
    conversations.assert_remembered(second, "Stored: blue.")


def test_the_last_conversation_is_found_without_an_id(
    ask: Ask, store: ConversationStore, user: object, conversations: ConversationAssertions
) -> None:
    with SupportCoach.fake(REMEMBERED):
        ask(SupportCoach().for_user(user), "Remember: blue.")
        second = ask(SupportCoach().continue_last_conversation(user), "What did I say?")
    conversations.assert_remembered(second, "Remember: blue.")


def test_any_object_with_an_id_takes_part_in_memory() -> None:
    user, team = SimpleNamespace(id=7), type("Team", (), {"id": 7})()
    with override_store(), SupportCoach.fake([*REMEMBERED, "I do not know."]) as fake:
        SupportCoach().for_user(user).prompt("Remember: blue.")
        SupportCoach().continue_last_conversation(user).prompt("What did I say?")
        fake.assert_remembered("blue")
        SupportCoach().continue_last_conversation(team).prompt("What did I say?")
    assert fake.histories[-1] == ()


def test_conversations_belong_to_other_models_than_users_too(
    store: ConversationStore, user: object, team: object, conversations: ConversationAssertions
) -> None:
    with SupportCoach.fake(REMEMBERED):
        first = SupportCoach().for_participant(team).prompt("Remember: blue.")
        coach = SupportCoach().continue_conversation(first.conversation_id, team)
        second = coach.prompt("What did I say?")
    conversations.assert_remembered(second, "Remember: blue.")
    conversations.assert_nothing_stored(user)
    assert store.conversation_belongs_to(first.conversation_id, team)
    assert not store.conversation_belongs_to(first.conversation_id, user)


def test_stored_messages_are_read_back_newest_first(
    store: ConversationStore, user: object, conversations: ConversationAssertions
) -> None:
    with SupportCoach.fake(REMEMBERED):
        first = SupportCoach().for_user(user).prompt("Remember: blue.")
        coach = SupportCoach().continue_conversation(first.conversation_id, user)
        second = coach.prompt("What did I say?")
    page = store.paginate_conversation_messages(second.conversation_id, per_page=25)
    assert ",".join(message.role for message in page.items) == "assistant,user,assistant,user"
    assert len(page) == 4
    conversations.assert_message_count(second, 4)
    assert (page.items[0].content, page.items[0].status) == ("Recalled: blue.", "completed")


@override_agent_memory(GENERATE_TITLES=True)
def test_a_conversation_has_a_title_drafted_or_of_its_first_prompt(
    store: ConversationStore, user: object
) -> None:
    with SupportCoach.fake(["Stored: blue.", Title("Favourite colours")]):
        drafted = SupportCoach().for_user(user).prompt("Remember: blue.")
    with SupportCoach.fake(["Stored: red."]):
        fallen = SupportCoach().for_user(user).prompt("Remember: red.")
    titles = [store.get(reply.conversation_id).title for reply in (drafted, fallen)]
    assert titles == ["Favourite colours", "Remember: red."]


# An id on the agent, and what a call may say instead.


def test_an_agent_with_an_id_knows_what_was_said_to_it(ask: Ask, store: ConversationStore) -> None:
    with SupportCoach.fake(["Hello Ada.", "Your name is Ada."]) as fake:
        ask(SupportCoach(conversation_id="user-42"), "My name is Ada.")
        reply = ask(SupportCoach(conversation_id="user-42"), "What is my name?")
    assert reply.text == "Your name is Ada."
    fake.assert_remembered("My name is Ada.")


def test_a_call_may_name_another_conversation(
    store: ConversationStore, conversations: ConversationAssertions
) -> None:
    coach = SupportCoach(conversation_id="user-42")
    with SupportCoach.fake(["Hello.", "Hello."]):
        coach.prompt("Hello from user 42.")
        coach.prompt("Hello from user 43.", conversation_id="user-43")
    conversations.assert_prompted_with("user-42", "Hello from user 42.")
    conversations.assert_prompted_with("user-43", "Hello from user 43.")
    conversations.assert_message_count("user-42", 2)


def test_a_call_without_any_id_skips_memory(
    ask: Ask, store: ConversationStore, conversations: ConversationAssertions
) -> None:
    with SupportCoach.fake(["Hello.", "One-off answer."]):
        assert ask(SupportCoach(), "Hello").conversation_id is None
        ask(SupportCoach(conversation_id="user-42").without_memory(), "One-off question.")
    conversations.assert_nothing_stored(None)
    conversations.assert_message_count("user-42", 0)


def test_a_window_of_turns_is_sent_and_everything_is_kept(
    store: ConversationStore, user: object, conversations: ConversationAssertions
) -> None:
    leading = [Message("system", "Speak like Ada."), Message("developer", "Be kind.")]
    coach = SupportCoach().start_conversation(user, leading=leading)
    script = [calls(("weather", {"city": "Paris"})), "Clear.", "Stored.", "Continued."]
    with SupportCoach.fake(script) as fake:
        coach.prompt("What is the weather in Paris?")
        coach.prompt("Remember: blue.")
        reply = coach.prompt("Continue.", keep_last_turns=1)
    assert [message.text for message in fake.histories[-1]] == [
        *("Speak like Ada.", "Be kind."),
        *("Remember: blue.", "Stored."),
    ]
    conversations.assert_message_count(reply, 8)


def test_a_response_tells_the_messages_that_the_turn_added(ask: Ask) -> None:
    with SupportCoach.fake([calls(("weather", {"city": "Paris"})), "It is clear."]):
        reply = ask(SupportCoach(), "What is the weather in Paris?")
    history = [(message.role, message.text) for message in reply.turn.messages]
    assert history == [
        ("user", "What is the weather in Paris?"),
        ("assistant", ""),
        ("tool", "Clear in Paris."),
        ("assistant", "It is clear."),
    ]


def test_a_failed_call_stores_nothing(
    ask: Ask, store: ConversationStore, user: object, conversations: ConversationAssertions
) -> None:
    with (
        SupportCoach.fake([Answer("Sto", ProviderUnavailable("Gone."))]),
        pytest.raises(ProviderUnavailable),
    ):
        ask(SupportCoach().for_user(user), "Remember: blue.")
    conversations.assert_nothing_stored(user)


def test_a_turn_is_saved_before_its_stream_ends(
    store: ConversationStore, conversations: ConversationAssertions
) -> None:
    with SupportCoach.fake([Answer("Sto", "red.")]):
        for event in SupportCoach(conversation_id="user-42").stream("Remember: blue."):
            finished = isinstance(event, Finished)
            conversations.assert_message_count("user-42", 2 if finished else 0)
    assert finished


def test_a_cleared_conversation_begins_anew(
    store: ConversationStore, conversations: ConversationAssertions
) -> None:
    with SupportCoach.fake(["Stored: blue.", "I do not know."]) as fake:
        SupportCoach(conversation_id="user-42").prompt("Remember: blue.")
        store.clear("user-42")
        SupportCoach(conversation_id="user-42").prompt("What did I say?")
    assert fake.histories[-1] == ()
    conversations.assert_message_count("user-42", 2)


# A store of your own.


class ListStore(ConversationStore):
    """Three methods over whatever keeps your messages."""

    def __init__(self) -> None:
        super().__init__()
        self.turns: dict[str, list[Turn]] = {}

    def load(self, conversation_id, *, keep_last_turns=0, reservation=None):
        turns = self.turns.get(conversation_id, [])
        return tuple(message for turn in turns[-keep_last_turns:] for message in turn.messages)

    def append(self, conversation, turn, *, reservation=None):
        stored = InMemoryConversationStore().append(conversation, turn)
        self.turns.setdefault(stored.conversation_id, []).append(turn)
        return stored

    def clear(self, conversation_id):
        self.turns.pop(conversation_id, None)


def test_a_store_of_three_methods_is_enough(
    ask: Ask, conversations: ConversationAssertions
) -> None:
    with override_store(ListStore()), SupportCoach.fake(REMEMBERED) as fake:
        ask(SupportCoach(conversation_id="user-42"), "Remember: blue.")
        ask(SupportCoach(conversation_id="user-42"), "What did I say?")
        conversations.assert_remembered("user-42", "Recalled: blue.")
    fake.assert_remembered("Remember: blue.")


# Turns beside each other, and files.


def test_conversations_go_on_beside_each_other_and_each_has_one_turn_at_a_time(
    conversations: ConversationAssertions,
) -> None:
    def meanwhile(request: object) -> str:
        assert SupportCoach(conversation_id="user-43").prompt("Remember: red.").text == "Red."
        with pytest.raises(ConversationBusy):
            SupportCoach(conversation_id="user-42").prompt("Remember: green.")
        return "Blue."

    with override_store(), SupportCoach.fake([meanwhile, "Red."]):
        assert SupportCoach(conversation_id="user-42").prompt("Remember: blue.").text == "Blue."
        conversations.assert_roles("user-42", ["user", "assistant"])
        conversations.assert_roles("user-43", ["user", "assistant"])


def test_files_are_remembered_with_their_message(ask: Ask, tmp_path: Path) -> None:
    chart, report = tmp_path / "chart.png", tmp_path / "report.pdf"
    chart.write_bytes(PNG)
    report.write_bytes(PDF)
    question = TextPart(text="Compare this chart with the report's findings.")
    message = Message(content=[question, load_image(chart), load_pdf(report)])
    with override_store(), SupportCoach.fake(["They agree.", "The second one."]) as fake:
        ask(SupportCoach(conversation_id="report-review"), message)
        chart.unlink()
        report.unlink()
        ask(SupportCoach(conversation_id="report-review"), "Which finding explains the chart?")
    assert fake.histories[-1] == (message, Message("assistant", "They agree."))
