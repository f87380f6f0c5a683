"""Turns that wait for nobody any more: a worker finds them, and by an index."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from agent_memory import Agent, Approve, Deny, RemembersConversations, tool
from agent_memory.models import Conversation, ToolApproval
from agent_memory.records import Heading
from agent_memory.stores.database import DatabaseConversationStore
from agent_memory.testing import ScriptedProvider, calls, override_provider
from tests.stores.test_database import a_turn
from tests.stores.test_database_approvals import paused_turn

pytestmark = pytest.mark.django_db

store = DatabaseConversationStore()
PAST = datetime.now(UTC) - timedelta(hours=1)


def found() -> list[str]:
    return sorted(Conversation.objects.decided().values_list("pk", flat=True))


def pause(conversation_id: str, *ids: str, agent: str = "coach") -> None:
    store.append(Heading(conversation_id, agent=agent), paused_turn(*ids))


def test_a_paused_turn_is_found_when_its_last_call_is_decided() -> None:
    store.append("free", a_turn())
    pause("one", "a", "b")
    assert found() == []
    store.decide("one", {"a": Approve()})
    assert found() == []
    store.decide("one", {"b": Deny()})
    assert found() == ["one"]


def test_what_nobody_decides_in_time_waits_no_more() -> None:
    pause("one", "a", "b")
    store.decide("one", {"a": Approve()})
    ToolApproval.objects.filter(status="pending").update(expires_at=PAST)
    assert found() == ["one"]


def test_it_tells_whose_turn_is_paused_also_where_another_agent_began() -> None:
    store.append(Heading("one", agent="coach"), a_turn())
    heading = Heading("one", agent="clerk")
    store.append(heading, paused_turn("a"), reservation=store.reserve("one"))
    store.decide("one", {"*": Approve()})
    (conversation,) = Conversation.objects.decided()
    assert (conversation.agent, conversation.paused_agent) == ("coach", "clerk")


def test_a_turn_that_goes_on_is_found_no_more_until_it_is_decided_again() -> None:
    class Payer(RemembersConversations, Agent):
        label = "payer"

    @tool(needs_approval=True)
    def pay(to: str) -> str:
        return f"Paid {to}."

    agent = Payer(tools=[pay])
    script = [calls(("pay", {"to": "a"})), calls(("pay", {"to": "b"})), "Done."]
    with override_provider(ScriptedProvider(script)):
        reply = agent.for_participant(None).prompt("Pay a and b.")
        assert reply.conversation_id is not None
        bound = agent.continue_conversation(reply.conversation_id)
        for _ in range(2):
            assert found() == []
            store.decide(reply.conversation_id, {"*": Approve()})
            assert found() == [reply.conversation_id]
            bound.resume()
    assert found() == []


def test_paused_turns_are_found_by_their_index() -> None:
    for number in range(200):
        store.append(f"c{number}", a_turn())
    pause("one", "a")
    store.decide("one", {"*": Approve()})
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")
    plan: Any = Conversation.objects.decided().explain()
    assert "agent_memory_conv_paused" in plan
