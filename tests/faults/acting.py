"""Turns that act twice and then answer, and what is stored when they are left in between."""

from __future__ import annotations

from typing import Any

from agent_memory import Agent, RemembersConversations
from agent_memory.messages import INTERRUPTED, ToolCall
from agent_memory.stores.database import DatabaseConversationStore
from agent_memory.testing import ScriptedProvider
from tests.faults.checker import faults_of_tables
from tests.faults.operations import ADA

CALLS = [ToolCall(id="call_0", name="act"), ToolCall(id="call_1", name="act")]

store = DatabaseConversationStore()


class Coach(RemembersConversations, Agent):
    label = "coach"


class Acting:
    """A tool that counts its runs, and agents that call it twice and then answer."""

    def __init__(self) -> None:
        self.runs = 0

    def act(self) -> str:
        self.runs += 1
        return f"done {self.runs}"

    def coach(self, conversation_id: str, kind: type[Coach] = Coach, *replies: Any) -> Coach:
        """Return a coach bound to a conversation that has a turn."""
        provider = ScriptedProvider(["first", *(replies or (["I act.", *CALLS], "I acted."))])
        coach = kind(provider=provider, tools=[self.act])
        Coach(provider=provider).for_participant(ADA).prompt("a", conversation_id=conversation_id)
        return coach.continue_conversation(conversation_id, ADA)


def left_free(conversation_id: str) -> list[str]:
    """Return what a conversation holds after its first turn; nobody may hold it."""
    store.release(store.reserve(conversation_id))
    assert faults_of_tables() == []
    first, answer, *rest = (message.text for message in store.load(conversation_id))
    assert (first, answer) == ("a", "first")
    return rest


def told(runs: int, *, answered: bool = False) -> list[str]:
    """Return what is stored of a turn whose tools ran so often."""
    results = [f"done {number + 1}" if number < runs else INTERRUPTED for number in range(2)]
    return ["b", "I act.", *results, *(["I acted."] if answered else [])]
