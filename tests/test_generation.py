"""How calls of one step run: in order, beside each other, and with what they are told."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from agent_memory import Agent, RemembersConversations, tool
from agent_memory.exceptions import ConversationConflict
from agent_memory.messages import ToolCall
from agent_memory.responses import Finished, ToolFinished, ToolStarted, Waiting
from agent_memory.stores import ConversationStore
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.testing import ScriptedProvider, override_store
from agent_memory.tools import ToolContext
from tests.agents import events, in_both_streams
from tests.flows import PATIENCE


def meeting(parties: int) -> Any:
    """Return a tool whose calls end only when so many of them run at once."""
    barrier = threading.Barrier(parties)

    @tool(concurrent=True)
    def meet(number: int) -> int:
        """Wait for the others."""
        barrier.wait(PATIENCE)
        return number

    return meet


def calls(*names: str) -> list[ToolCall]:
    return [
        ToolCall(id=f"c{number}", name=name, arguments={"number": number})
        for number, name in enumerate(names)
    ]


def test_concurrent_calls_of_a_step_run_beside_each_other(scripted_provider, ask):
    scripted_provider.extend([calls("meet", "meet", "meet"), "Done."])
    response = ask(Agent(tools=[meeting(3)]), "Meet.")
    assert [result.value for result in response.turn.tool_results()] == [0, 1, 2]


def test_concurrent_coroutines_run_beside_each_other(scripted_provider, way, ask):
    if "task" not in way:
        pytest.skip("Under a sync call each coroutine has a loop of its own.")
    arrived: list[int] = []

    @tool(concurrent=True)
    async def meet(number: int) -> int:
        """Wait for the others."""
        arrived.append(number)
        async with asyncio.timeout(PATIENCE):
            while len(arrived) < 2:  # noqa: ASYNC110  other tasks fill it
                await asyncio.sleep(0.001)
        return number

    scripted_provider.extend([calls("meet", "meet"), "Done."])
    response = ask(Agent(tools=[meet]), "Meet.")
    assert [result.value for result in response.turn.tool_results()] == [0, 1]


def test_other_calls_wait_for_their_neighbours(scripted_provider, ask):
    log: list[str] = []
    meet = meeting(2)

    @tool
    def alone(number: int) -> int:
        """Run alone."""
        log.append(f"alone {number}, {threading.active_count()}")
        return number

    @tool(concurrent=True)
    def met(number: int) -> int:
        """Meet, then say so."""
        value = meet(number)
        log.append("met")
        return value

    scripted_provider.extend([calls("alone", "met", "met", "alone"), "Done."])
    response = ask(Agent(tools=[alone, met]), "Meet.")
    assert [entry.split()[0] for entry in log] == ["alone", "met", "met", "alone"]
    assert [result.value for result in response.turn.tool_results()] == [0, 1, 2, 3]


def test_a_concurrent_call_that_fails_leaves_the_others_their_results(scripted_provider, ask):
    @tool(concurrent=True)
    def divide(number: int) -> float:
        """Divide."""
        return 1 / number

    scripted_provider.extend([calls("divide", "divide"), "Done."])
    failed, done = ask(Agent(tools=[divide]), "Divide.").turn.tool_results()
    assert (failed.failed, done.value) == (True, 1.0)


def test_each_result_is_journalled_as_soon_as_it_is_there(ask, scripted_provider, db):
    first_is_noted = threading.Event()
    noted: list[int] = []

    class Watched(InMemoryConversationStore):
        def journal(self, reservation: Any, entry: Any, seconds: float) -> bool:
            kept = super().journal(reservation, entry, seconds)
            noted.append(entry.index)
            if entry.index == 1:
                first_is_noted.set()
            return kept

    @tool(concurrent=True)
    def meet(number: int) -> int:
        """End with the second call, or when that is noted."""
        if number == 0:
            assert first_is_noted.wait(PATIENCE)
        return number

    class Coach(RemembersConversations, Agent):
        tools = [meet]

    scripted_provider.extend([calls("meet", "meet"), "Done."])
    with override_store(Watched()):
        ask(Coach().for_participant(None), "Meet.")
    assert noted == [-1, 1, 0]


def test_a_worker_that_lost_its_conversation_starts_none_of_them(ask, scripted_provider, db):
    ran: list[int] = []

    @tool(concurrent=True)
    def meet(number: int) -> int:
        """Note that it ran."""
        ran.append(number)
        return number

    class Losing(InMemoryConversationStore):
        def journal(self, reservation: Any, entry: Any, seconds: float) -> bool:
            self.clear(reservation.conversation_id)
            return super().journal(reservation, entry, seconds)

    class Coach(RemembersConversations, Agent):
        tools = [meet]

    scripted_provider.extend([calls("meet", "meet"), "Done."])
    with override_store(Losing()) as losing:
        losing.create("one")
        with pytest.raises(ConversationConflict):
            ask(Coach().continue_conversation("one"), "Meet.")
    assert ran == []


def test_a_tool_is_told_what_it_runs_in(ask, scripted_provider):
    seen: list[ToolContext] = []

    @tool
    def note(context: ToolContext) -> str:
        """Note the context."""
        seen.append(context)
        return "noted"

    scripted_provider.extend([[ToolCall(id="n", name="note")] * 2, "Done."])
    agent = Agent(tools=[note])
    ask(agent, "Note.")
    first, second = seen
    assert (first.agent, first.call_id) == (agent, "n")
    assert (first.participant, first.conversation_id) == (None, None)
    assert first.idempotency_key[:-1] == second.idempotency_key[:-1]
    assert (first.idempotency_key[-4:], second.idempotency_key[-4:]) == (":0:0", ":0:1")


@in_both_streams
def test_a_stream_tells_of_each_call_when_it_starts_and_ends(way, scripted_provider):
    scripted_provider.extend([calls("meet", "meet"), "Done."])
    told = events(way, Agent(tools=[meeting(2)]), "Meet.")
    kinds = [type(event) for event in told if isinstance(event, ToolStarted | ToolFinished)]
    assert kinds == [ToolStarted, ToolStarted, ToolFinished, ToolFinished]


@in_both_streams
def test_a_stream_says_that_the_model_is_still_at_work(way, monkeypatch):
    monkeypatch.setattr("agent_memory.generation.HEARTBEAT_SECONDS", 0.01)

    class Slow(ScriptedProvider):
        def stream(self, request: Any) -> Any:
            time.sleep(0.1)
            yield from super().stream(request)

        async def astream(self, request: Any) -> Any:
            await asyncio.sleep(0.1)
            async for event in super().astream(request):
                yield event

    told = events(way, Agent(provider=Slow(["Done."])), "Hello")
    assert Waiting() in told
    assert isinstance(told[-1], Finished)


def test_a_store_that_cannot_pause_is_named_before_the_model_is_called(ask, scripted_provider):
    class Three(ConversationStore):
        def load(self, conversation_id, *, keep_last_turns=0, reservation=None):
            return ()

        def append(self, conversation, turn, *, reservation=None):
            raise AssertionError

        def clear(self, conversation_id):
            raise AssertionError

    @tool(needs_approval=True)
    def pay() -> str:
        """Pay."""
        raise AssertionError

    class Coach(RemembersConversations, Agent):
        tools = [pay]
        store = Three()

    with pytest.raises(NotImplementedError, match=r"Three must define reserve\(\), decide\(\)"):
        ask(Coach().for_participant(None), "Pay.")
    assert scripted_provider.requests == []
