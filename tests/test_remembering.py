"""A turn while it runs: held, titled, written or given up, in any of the four ways to ask."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import transaction

from agent_memory import Agent, RemembersConversations, conversation_store, signals, tool
from agent_memory.exceptions import (
    ConversationBusy,
    ConversationConflict,
    ProviderRefused,
    ProviderUnavailable,
    TransactionOpen,
    TurnNotSaved,
)
from agent_memory.messages import INTERRUPTED, Step, ToolCall, Usage
from agent_memory.responses import Finished, Started, StepFinished, ToolFinished
from agent_memory.stores import ConversationStore
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.testing import (
    ScriptedProvider,
    override_agent_memory,
    override_provider,
    override_store,
)

CALL = ToolCall(id="call_1", name="act", arguments={})


class Coach(RemembersConversations, Agent):
    pass


def is_free(conversation_id: str) -> bool:
    """Tell whether a turn can be begun; none is."""
    conversation_store.release(conversation_store.reserve(conversation_id))
    return True


@pytest.fixture
def heard() -> Iterator[list[Any]]:
    """Return the names of the signals that were sent, with what they said."""
    news: list[Any] = []
    receivers = []
    for name in ("conversation_created", "turn_completed", "turn_failed"):

        def receiver(sender: Any, name: str = name, **said: Any) -> None:
            news.append((name, sender, said))

        getattr(signals, name).connect(receiver, weak=False)
        receivers.append((name, receiver))
    yield news
    for name, receiver in receivers:
        getattr(signals, name).disconnect(receiver)


# One turn at a time.


def test_a_second_turn_is_refused_while_the_first_one_runs(store, scripted_provider, user, ask):
    refusals = []

    def act() -> str:
        with pytest.raises(ConversationBusy) as caught:
            Coach().continue_conversation(opened, user).prompt("me too")
        refusals.append(caught.value)
        return "done"

    scripted_provider.extend(["first", [CALL], "second"])
    opened = Coach().for_user(user).prompt("a").conversation_id
    ask(Coach(tools=[act]).continue_conversation(opened, user), "b")
    (refused,) = refusals
    assert refused.conversation_id == opened
    assert 0 < refused.retry_after <= 60
    assert len(scripted_provider.requests) == 3
    assert len(store.load(opened)) == 6


def test_a_new_id_is_held_too(store, scripted_provider, user):
    def act() -> str:
        with pytest.raises(ConversationBusy):
            Coach().for_user(user).prompt("me too", conversation_id="given")
        return "done"

    scripted_provider.extend([[CALL], "second"])
    Coach(tools=[act]).for_user(user).prompt("a", conversation_id="given")
    assert len(store.load("given")) == 4


def test_clearing_wins_over_a_running_turn(store, scripted_provider, user, ask):
    def act() -> str:
        conversation_store.clear(opened)
        return "done"

    scripted_provider.extend(["first", [CALL], "second"])
    opened = Coach().for_user(user).prompt("a").conversation_id
    with pytest.raises(ConversationConflict) as caught:
        ask(Coach(tools=[act]).continue_conversation(opened, user), "b")
    assert [result.value for result in caught.value.turn.tool_results()] == ["done"]
    assert caught.value.turn.text == "second"
    assert store.get(opened) is None
    assert store.load(opened) == ()


def test_a_turn_that_was_overtaken_writes_nothing_and_starts_no_further_tool(
    store, scripted_provider, user, ask
):
    ran = []

    def act() -> str:
        ran.append("act")
        held = store.reserve.__self__
        assert held is store
        lapse(store, opened)
        Coach().continue_conversation(opened, user).prompt("overtaking")
        return "done"

    scripted_provider.extend(
        ["first", [CALL, ToolCall(id="call_2", name="act")], "overtaker's answer"]
    )
    opened = Coach().for_user(user).prompt("a").conversation_id
    with pytest.raises(ConversationConflict) as caught:
        ask(Coach(tools=[act]).continue_conversation(opened, user), "b")
    assert ran == ["act"]
    assert [call.result is not None for call in caught.value.turn.tool_calls()] == [True, False]
    assert [message.text for message in store.load(opened)][-2:] == [
        "overtaking",
        "overtaker's answer",
    ]
    assert is_free(opened)


def lapse(store: ConversationStore, conversation_id: str) -> None:
    """Let the running turn's reservation end, as if its worker had stalled."""
    if isinstance(store, InMemoryConversationStore):
        store._held[conversation_id].until = 0
    else:
        from agent_memory.models import Conversation

        Conversation.objects.filter(id=conversation_id).update(reserved_until=1)


def test_a_reservation_is_renewed_while_the_model_answers(db, user, ask):
    gate = threading.Event()

    class Watched(InMemoryConversationStore):
        renewed = 0

        def renew(self, reservation, seconds):
            self.renewed += 1
            if self.renewed == 3:
                gate.set()
            return super().renew(reservation, seconds)

    watched = Watched()
    patient = ScriptedProvider(["a", "b"], gate=gate)
    with override_store(watched), override_provider(patient):
        watched.create("given")
        with override_agent_memory(RESERVATION_SECONDS=0.04):
            ask(Coach(conversation_id="given"), "a")
    assert watched.renewed >= 3
    assert len(watched.load("given")) == 2


def test_a_fault_while_renewing_is_no_lost_reservation(db, user, caplog):
    gate = threading.Event()

    class Faulty(InMemoryConversationStore):
        def renew(self, reservation, seconds):
            gate.set()
            raise OSError("no connection")

    with override_store(Faulty()), override_provider(ScriptedProvider(["a"], gate=gate)):
        conversation_store.create("given")
        with override_agent_memory(RESERVATION_SECONDS=0.04):
            assert Coach(conversation_id="given").prompt("a").text == "a"
    assert "could not be renewed" in caplog.text


def test_nothing_is_renewed_past_the_longest_turn(db, user):
    class Watched(InMemoryConversationStore):
        def renew(self, reservation, seconds):
            self.renewed = [*getattr(self, "renewed", ()), seconds]
            return super().renew(reservation, seconds)

    watched = Watched()
    script = ScriptedProvider([[CALL], "b"] * 2)
    with override_store(watched), override_provider(script):
        watched.create("given")
        with override_agent_memory(TURN_SECONDS=1e-9):
            Coach(conversation_id="given", tools=[act]).prompt("a")
        assert max(watched.renewed) <= 60
        Coach(conversation_id="given", tools=[slow]).prompt("a")
        assert max(watched.renewed) == 600


def test_a_tool_that_may_take_longer_than_a_turn_is_refused_before_the_model_is_called(db):
    with override_store(), override_provider(ScriptedProvider()) as provider:
        with (
            override_agent_memory(TURN_SECONDS=599),
            pytest.raises(ValueError, match="'act' may take 600 s, and a turn 599"),
        ):
            Coach(conversation_id="given", tools=[slow]).prompt("a")
        assert conversation_store.get("given") is None
    assert provider.requests == []


def act() -> str:
    return "done"


@tool(name="act", timeout=600)
def slow() -> str:
    return "done"


# Failures.


def test_a_call_that_fails_at_once_leaves_nothing_behind(store, scripted_provider, user, ask):
    scripted_provider.extend([ProviderRefused("no", status=401, request_id="req_1")] * 2)
    for options in ({}, {"conversation_id": "given"}):
        with pytest.raises(ProviderRefused):
            ask(Coach().for_user(user), "a", **options)
    assert len(store.list_conversations(user)) == 0
    assert store.get("given") is None


def test_a_call_that_fails_at_once_leaves_the_conversation_as_it_was(
    store, scripted_provider, user, ask
):
    scripted_provider.extend(["first", ProviderUnavailable("gone"), "second"])
    coach = Coach().for_user(user)
    opened = ask(coach, "a").conversation_id
    with pytest.raises(ProviderUnavailable):
        ask(coach, "b")
    assert ask(coach, "c").conversation_id == opened
    assert [message.text for message in store.load(opened)] == ["a", "first", "c", "second"]


def test_a_call_that_fails_after_a_step_is_recorded_and_told_to_the_model(
    store, scripted_provider, user, ask, heard
):
    scripted_provider.extend([["I act.", CALL], ProviderUnavailable("x", status=503), "fine"])
    coach = Coach(tools=[act]).for_user(user)
    with pytest.raises(ProviderUnavailable):
        ask(coach, "a")
    assert coach.current_conversation_id is None
    (failed,) = store.list_conversations(user)
    assert failed.title == "a"
    assistant, said = store.paginate_conversation_messages(failed.id)
    assert (assistant.status, said.content) == ("failed", "a")
    assert assistant.meta["error"] == {"code": "ProviderUnavailable", "status": 503}
    assert [name for name, *_ in heard] == ["conversation_created", "turn_failed"]
    ask(Coach(tools=[act]).continue_conversation(failed.id, user), "b")
    assert [m.text for m in scripted_provider.requests[-1].messages] == ["a", "I act.", "done", "b"]


def test_a_call_that_may_have_run_is_told_as_interrupted(store, scripted_provider, user):
    class Stopped(BaseException):
        pass

    def stop() -> str:
        raise Stopped

    scripted_provider.extend([[ToolCall(id="call_1", name="stop")], "fine"])
    with pytest.raises(Stopped):
        Coach(tools=[stop]).for_user(user).prompt("a")
    Coach().continue_last_conversation(user).prompt("b")
    assert [m.text for m in scripted_provider.requests[-1].messages] == ["a", "", INTERRUPTED, "b"]


def test_failed_turns_may_be_discarded(store, scripted_provider, user, ask):
    scripted_provider.extend([[CALL], ProviderUnavailable("x")])
    with override_agent_memory(FAILED_TURNS="discard"), pytest.raises(ProviderUnavailable):
        ask(Coach(tools=[act]).for_user(user), "a", conversation_id="given")
    assert store.get("given") is None


def test_an_answer_that_cannot_be_stored_is_in_the_error(db, user, ask):
    class Full(InMemoryConversationStore):
        full = True

        def append(self, conversation, turn, *, reservation=None):
            if self.full:
                raise OSError("disk full")
            return super().append(conversation, turn, reservation=reservation)

    full = Full()
    with override_store(full), override_provider(ScriptedProvider(["precious"])):
        with pytest.raises(TurnNotSaved) as caught:
            ask(Coach(), "a", conversation_id="given")
        assert caught.value.turn.text == "precious"
        full.full = False
        full.append(caught.value.conversation, caught.value.turn)
    assert [message.text for message in full.load("given")] == ["a", "precious"]


# Leaving early.


@pytest.mark.parametrize("last", [Started, StepFinished, ToolFinished])
def test_a_stream_closed_early_leaves_the_conversation_free(store, scripted_provider, user, last):
    scripted_provider.extend(["first", ["I act.", CALL], "second"])
    opened = Coach().for_user(user).prompt("a").conversation_id
    stream = Coach(tools=[act]).continue_conversation(opened, user).stream("b")
    next(event for event in stream if isinstance(event, last))
    stream.close()
    assert is_free(opened)
    recorded = {
        Started: ["a", "first"],
        StepFinished: ["a", "first", "b", "I act.", INTERRUPTED],
        ToolFinished: ["a", "first", "b", "I act.", "done"],
    }
    assert [message.text for message in store.load(opened)] == recorded[last]


@pytest.mark.parametrize("last", [Started, StepFinished, ToolFinished])
def test_an_async_stream_closed_early_leaves_the_conversation_free(
    store, scripted_provider, user, last
):
    async def read() -> None:
        async with Coach(tools=[act]).continue_conversation(opened, user).astream("b") as stream:
            async for event in stream:
                if isinstance(event, last):
                    return

    scripted_provider.extend(["first", [CALL], "second"])
    opened = Coach().for_user(user).prompt("a").conversation_id
    async_to_sync(read)()
    assert is_free(opened)
    assert len(store.load(opened)) == {Started: 2, StepFinished: 5, ToolFinished: 5}[last]


def test_a_cancelled_prompt_leaves_the_conversation_free(store, user):
    patient = ScriptedProvider(["first", "never"], gate=threading.Event())
    patient.gate.set()

    async def cancel() -> None:
        task = asyncio.create_task(Coach().continue_conversation(opened, user).aprompt("b"))
        await asyncio.to_thread(patient.asked.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with override_provider(patient):
        opened = Coach().for_user(user).prompt("a").conversation_id
        patient.gate.clear()
        patient.asked.clear()
        async_to_sync(cancel)()
    assert is_free(opened)
    assert len(store.load(opened)) == 2


# Titles.


def test_a_title_is_drafted_beside_the_first_reply(store, scripted_provider, user, ask):
    scripted_provider.extend(["first", "second"])
    scripted_provider.title = Step(
        items=({"type": "text", "text": '"Blue Things."\n'},), usage=Usage(input_tokens=5)
    )
    coach = Coach(generate_titles=True).for_user(user)
    opened = ask(coach, "Remember: blue. " + "x" * 1000).conversation_id
    ask(coach, "b")
    stored = store.get(opened)
    assert (stored.title, stored.title_source) == ("Blue Things", "draft")
    assert stored.usage == Usage(input_tokens=5)
    (request,) = scripted_provider.title_requests
    assert len(request.messages[0].text) == 500


def test_a_draft_is_made_with_the_model_for_titles(store, scripted_provider, user):
    scripted_provider.extend(["first"])
    with override_agent_memory(GENERATE_TITLES=True, TITLE_MODEL="cheap"):
        Coach().for_user(user).prompt("a")
    assert [request.model for request in scripted_provider.title_requests] == ["cheap"]


def test_without_a_draft_the_title_is_the_first_words(store, scripted_provider, user):
    scripted_provider.extend(["answer"] * 3)
    prompt = "Remember this: " + "blue " * 40
    for generate in (False, True):  # the script's title fails
        coach = Coach(generate_titles=generate).for_user(user)
        stored = store.get(coach.prompt(prompt).conversation_id)
        assert stored.title_source == "prompt"
        assert stored.title.startswith("Remember this: blue blue")
        assert len(stored.title) <= 100
        assert stored.title.endswith("blue…")


def test_a_late_draft_is_not_waited_for(store, scripted_provider, user, monkeypatch, ask):
    monkeypatch.setattr("agent_memory.titles.GRACE_SECONDS", 0)
    stuck = threading.Event()

    class SlowTitles(ScriptedProvider):
        def complete(self, request):
            if request in self.title_requests or "title" in request.instructions:
                stuck.wait(30)
            return super().complete(request)

        async def acomplete(self, request):
            if "title" in request.instructions:
                await asyncio.Event().wait()
            return await super().acomplete(request)

    with override_provider(SlowTitles(["answer"], title="Late")):
        opened = ask(Coach(generate_titles=True).for_user(user), "a").conversation_id
    stuck.set()
    assert store.get(opened).title == "a"


def test_a_title_that_a_person_gave_stays(store, scripted_provider, user):
    def act() -> str:
        store.rename("given", "By hand")
        return "done"

    scripted_provider.extend(["a", [CALL], "b"])
    scripted_provider.title = "Drafted"
    coach = Coach(generate_titles=True, tools=[act])
    titled = coach.start_conversation(user, title="By hand", conversation_id="titled")
    titled.prompt("a")
    assert store.get("titled").title == "By hand"
    untitled = coach.start_conversation(user, conversation_id="given")
    untitled.prompt("b")
    assert store.get("given").title == "By hand"


def test_a_conversation_opened_without_a_title_gets_one_with_its_first_turn(
    store, scripted_provider, user
):
    scripted_provider.extend(["a"])
    scripted_provider.title = "Drafted"
    coach = Coach(generate_titles=True).start_conversation(user)
    assert store.get(coach.prompt("a").conversation_id).title == "Drafted"


# Signals.


def test_who_listens_is_told_once_the_turn_is_stored(store, scripted_provider, user, ask, heard):
    scripted_provider.extend(["first", "second"])
    coach = Coach().for_user(user)
    first, _ = ask(coach, "a"), ask(coach, "b")
    assert [name for name, *_ in heard] == [
        "conversation_created",
        "turn_completed",
        "turn_completed",
    ]
    _, sender, said = heard[1]
    assert sender is Coach
    assert (said["conversation_id"], said["turn"]) == (first.conversation_id, first.turn)
    assert said["stored"].assistant_message_id == first.assistant_message_id


def test_who_listens_is_told_of_a_conversation_opened_on_purpose(store, user, heard):
    opened = Coach().start_conversation(user).current_conversation_id
    awaited = async_to_sync(Coach().astart_conversation)(user).current_conversation_id
    assert [said["conversation_id"] for _, _, said in heard] == [opened, awaited]


def test_a_receiver_that_raises_undoes_nothing(store, scripted_provider, user, ask):
    def receiver(**said: Any) -> None:
        raise RuntimeError

    scripted_provider.extend(["first"])
    signals.turn_completed.connect(receiver)
    try:
        response = ask(Coach().for_user(user), "a")
    finally:
        signals.turn_completed.disconnect(receiver)
    assert len(store.load(response.conversation_id)) == 2
    assert is_free(response.conversation_id)


# Transactions.


@pytest.mark.django_db(transaction=True)
def test_a_turn_inside_a_transaction_is_refused_before_the_model_is_asked(scripted_provider, ask):
    user = User.objects.create(username="ada")
    scripted_provider.extend(["a", "b"])
    opened = Coach().for_user(user).prompt("a").conversation_id
    for bound in (Coach().for_user(user), Coach().continue_conversation(opened, user)):
        with transaction.atomic(), pytest.raises(TransactionOpen, match="non_atomic_requests"):
            ask(bound, "b")
    assert len(scripted_provider.requests) == 1


@pytest.mark.django_db(transaction=True)
def test_no_transaction_is_open_while_a_tool_runs(scripted_provider, ask):
    from django.db import connection

    def act() -> str:
        assert not connection.in_atomic_block
        User.objects.create(username="made by a tool")
        return "done"

    user = User.objects.create(username="ada")
    scripted_provider.extend([[CALL], "b"])
    ask(Coach(tools=[act]).for_user(user), "a")
    assert User.objects.filter(username="made by a tool").exists()


def test_finished_is_the_last_event_and_comes_after_the_append(store, scripted_provider, user):
    scripted_provider.extend(["first"])
    for event in Coach().for_user(user).stream("a"):
        stored = len(store.list_conversations(user))
        assert stored == (1 if isinstance(event, Finished) else 0)
