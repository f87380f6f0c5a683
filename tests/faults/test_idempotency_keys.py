"""The same message sent again under its key: one turn, one answer, in every state."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from agent_memory import Agent, Participant, RemembersConversations
from agent_memory.exceptions import (
    ApprovalsPending,
    ConversationBusy,
    ConversationConflict,
    ConversationDoesNotExist,
    HistoryConflict,
    ProviderUnavailable,
    TurnFailed,
)
from agent_memory.messages import ToolCall
from agent_memory.models import Conversation, ConversationMessage
from agent_memory.responses import Finished, Started, StepFinished, TextDelta
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.testing import ScriptedProvider, override_store
from tests.faults.clerks import Clerk, ClerkProvider, Ledger, asking
from tests.faults.operations import ADA
from tests.faults.processes import Workers
from tests.faults.talking import WAYS
from tests.fixtures import Ask

CALL = ToolCall(id="call_1", name="act")
EVE = Participant("auth.user", "2")


class Coach(RemembersConversations, Agent):
    label = "coach"


class Other(Coach):
    label = "other"


def act() -> str:
    return "done"


def opened(scripted_provider: ScriptedProvider) -> Coach:
    """Return a coach bound to a conversation of one turn."""
    scripted_provider.extend(["first"])
    opened = Coach().for_participant(ADA).prompt("a").conversation_id
    return Coach(tools=[act]).continue_conversation(opened, ADA)


def texts(store: Any, conversation_id: str | None) -> list[str]:
    return [message.text for message in store.load(conversation_id)]


# In every state.


def test_a_key_gets_the_answer_that_is_stored(store, scripted_provider, ask: Ask):
    coach = opened(scripted_provider)
    scripted_provider.extend([[CALL], "answer"])
    first = ask(coach, "b", idempotency_key="key")
    again = ask(coach, "b", idempotency_key="key")
    assert again == first
    assert len(scripted_provider.requests) == 3
    assert len(texts(store, first.conversation_id)) == 6


def test_a_key_of_a_running_turn_is_told_so(store, scripted_provider, ask: Ask):
    refusals = []

    def act() -> str:
        for message, options in (("b", {"idempotency_key": "key"}), ("c", {})):
            with pytest.raises(ConversationBusy) as caught:
                coach.prompt(message, **options)
            refusals.append(caught.value.same_message)
        return "done"

    coach = opened(scripted_provider)
    coach.tools = [act]
    scripted_provider.extend([[CALL], "answer"])
    ask(coach, "b", idempotency_key="key")
    assert refusals == [True, False]


def test_a_key_of_a_failed_turn_is_told_so_and_runs_nothing(store, scripted_provider, ask: Ask):
    coach = opened(scripted_provider)
    scripted_provider.extend([[CALL], ProviderUnavailable("gone")])
    with pytest.raises(ProviderUnavailable):
        ask(coach, "b", idempotency_key="key")
    with pytest.raises(TurnFailed) as caught:
        ask(coach, "b", idempotency_key="key")
    assert [result.value for result in caught.value.turn.tool_results()] == ["done"]
    assert caught.value.turn.error.code == "ProviderUnavailable"
    assert len(scripted_provider.requests) == 3


def test_a_key_of_which_nothing_is_stored_runs(store, scripted_provider, ask: Ask):
    coach = opened(scripted_provider)
    scripted_provider.extend([ProviderUnavailable("gone"), "answer"])
    with pytest.raises(ProviderUnavailable):
        ask(coach, "b", idempotency_key="key")
    assert ask(coach, "b", idempotency_key="key").text == "answer"


def test_a_key_of_a_paused_turn_gets_what_it_has_so_far(scripted_provider, ask: Ask, db):
    coach = opened(scripted_provider)
    scripted_provider.extend(["so far"])
    first = ask(coach, "b", idempotency_key="key")
    ConversationMessage.objects.filter(position=3).update(status="paused")
    Conversation.objects.update(paused_position=2)
    again = ask(coach, "b", idempotency_key="key")
    assert (again.status, again.text) == ("paused", "so far")
    assert again.assistant_message_id == first.assistant_message_id
    with pytest.raises(ApprovalsPending):
        ask(coach, "c", idempotency_key="another")


def test_a_key_is_answered_also_while_another_turn_runs(store, scripted_provider, ask: Ask):
    answers = []

    def act() -> str:
        answers.append(coach.prompt("b", idempotency_key="key").text)
        return "done"

    coach = opened(scripted_provider)
    coach.tools = [act]
    scripted_provider.extend(["answer", [CALL], "last"])
    ask(coach, "b", idempotency_key="key")
    ask(coach, "c")
    assert answers == ["answer"]


def test_a_key_stands_for_one_message(store, scripted_provider, ask: Ask):
    coach = opened(scripted_provider)
    scripted_provider.extend(["answer"])
    first = ask(coach, "b", idempotency_key="key")
    with pytest.raises(ConversationConflict, match="another message"):
        ask(coach, "c", idempotency_key="key")
    assert len(scripted_provider.requests) == 2
    assert len(texts(store, first.conversation_id)) == 4


def test_keys_are_compared_byte_for_byte_and_within_a_conversation(
    store, scripted_provider, ask: Ask
):
    scripted_provider.extend(["1", "2", "3", "4"])
    got = [ask(Coach(conversation_id="c"), "b", idempotency_key=key).text for key in ("k", "K")]
    got.append(ask(Coach(conversation_id="d"), "b", idempotency_key="k").text)
    got.append(ask(Coach(conversation_id="c"), "b", idempotency_key="k ").text)
    assert got == ["1", "2", "3", "4"]


def test_two_equal_messages_without_a_key_are_two_turns(store, scripted_provider, ask: Ask):
    coach = opened(scripted_provider)
    scripted_provider.extend(["one", "two"])
    first, second = ask(coach, "b"), ask(coach, "b")
    assert (first.text, second.text) == ("one", "two")
    assert first.user_message_id != second.user_message_id
    assert texts(store, first.conversation_id)[2:] == ["b", "one", "b", "two"]


def test_a_foreign_conversation_is_a_missing_one_whatever_its_keys(
    store, scripted_provider, ask: Ask
):
    coach = opened(scripted_provider)
    scripted_provider.extend(["answer"])
    name = ask(coach, "b", idempotency_key="key").conversation_id
    foreign = Coach().continue_conversation(name, EVE, must_own=True)
    with pytest.raises(ConversationDoesNotExist):
        ask(foreign, "b", idempotency_key="key")


# The first prompt of a conversation.


def test_a_first_prompt_sent_again_opens_no_second_conversation(store, scripted_provider, ask: Ask):
    scripted_provider.extend([[CALL], "answer", "next"])
    first = ask(Coach(tools=[act]).for_participant(ADA), "a", idempotency_key="key")
    again = Coach(tools=[act]).for_participant(ADA)
    assert ask(again, "a", idempotency_key="key") == first
    assert ask(again, "b").conversation_id == first.conversation_id
    assert len(store.list_conversations(ADA)) == 1


def test_a_first_prompt_of_whoever_has_no_last_conversation_is_found_again(
    store, scripted_provider, ask: Ask
):
    scripted_provider.extend(["answer"])
    asked = [
        ask(Coach().continue_last_conversation(ADA), "a", idempotency_key="key") for _ in range(2)
    ]
    assert asked[0] == asked[1]


def test_a_first_prompt_that_failed_is_told_so(store, scripted_provider, ask: Ask):
    scripted_provider.extend([[CALL], ProviderUnavailable("gone")])
    with pytest.raises(ProviderUnavailable):
        ask(Coach(tools=[act]).for_participant(ADA), "a", idempotency_key="key")
    with pytest.raises(TurnFailed):
        ask(Coach(tools=[act]).for_participant(ADA), "a", idempotency_key="key")


def test_a_first_prompt_that_left_nothing_runs(store, scripted_provider, ask: Ask):
    scripted_provider.extend([ProviderUnavailable("gone"), "answer"])
    with pytest.raises(ProviderUnavailable):
        ask(Coach().for_participant(ADA), "a", idempotency_key="key")
    assert len(store.list_conversations(ADA)) == 0
    assert ask(Coach().for_participant(ADA), "a", idempotency_key="key").text == "answer"


def test_equal_keys_of_others_open_conversations_of_their_own(store, scripted_provider, ask: Ask):
    scripted_provider.extend(["1", "2", "3"])
    asked = [
        ask(coach, "a", idempotency_key="key")
        for coach in (
            Coach().for_participant(ADA),
            Coach().for_participant(EVE),
            Other().for_participant(ADA),
        )
    ]
    assert len({response.conversation_id for response in asked}) == 3


# Replayed.


@pytest.mark.parametrize("streamed", ["stream", "astream"])
def test_a_replay_is_told_as_a_stream_would_have_told_it(store, scripted_provider, streamed: str):
    async def collect(stream: Any) -> list[Any]:
        return [event async for event in stream]

    coach = opened(scripted_provider)
    scripted_provider.extend([["Let me see.", CALL], "The answer."])
    first = coach.prompt("b", idempotency_key="key")
    stream = getattr(coach, streamed)("b", idempotency_key="key")
    events = list(stream) if streamed == "stream" else async_to_sync(collect)(stream)
    assert events == [
        Started(first.conversation_id),
        TextDelta("Let me see."),
        StepFinished(first.turn.steps[0]),
        TextDelta("The answer."),
        StepFinished(first.turn.steps[1]),
        Finished(first),
    ]


# Two processes.


def test_a_key_that_another_process_answers_is_busy_or_waited_for(workers: Workers, ledger: Ledger):
    provider = ClerkProvider()
    bound = Clerk(provider=provider).for_participant(ADA)
    order = {"new": True, "prompt": "p", "key": "key", "ledger": str(ledger.path)}
    whole = workers.start("one turn", conversation_id="whole", stop=None, **order)
    whole.join()
    asked = [told["point"] for told in whole.told("point")].index("model: asked")
    for number, ask in enumerate(WAYS):
        name, said = f"c-{number}", asking("p", steps=1)
        worker = workers.start("one turn", conversation_id=name, stop=asked, **order)
        worker.until("stopped")
        for patience in (0, 0.1):
            with pytest.raises(ConversationBusy) as caught:
                ask(bound, said, conversation_id=name, idempotency_key="key", wait=patience)
            assert caught.value.same_message
        worker.wake()
        waited = ask(bound, said, conversation_id=name, idempotency_key="key", wait=60)
        worker.join()
        row = ConversationMessage.objects.get(conversation=name, role="user")
        assert (waited.user_message_id, provider.requests) == (str(row.pk), [])


def test_a_key_needs_a_conversation(store, scripted_provider, ask: Ask):
    for agent in (Coach(), Coach().for_participant(ADA).without_memory()):
        with pytest.raises(HistoryConflict):
            ask(agent, "a", idempotency_key="key")
    assert scripted_provider.requests == []


def test_the_memory_of_one_process_is_waited_for_too(scripted_provider):
    begun, answers = threading.Event(), []

    def act() -> str:
        begun.set()
        return "done"

    def again() -> None:
        begun.wait(30)
        answers.append(Coach(conversation_id="c").prompt("a", idempotency_key="key", wait=30))

    with override_store(InMemoryConversationStore()):
        scripted_provider.extend([[CALL], "answer"])
        thread = threading.Thread(target=again)
        thread.start()
        answers.append(Coach(conversation_id="c", tools=[act]).prompt("a", idempotency_key="key"))
        thread.join(30)
    assert answers[0] == answers[1]
