"""Assertions about conversations hold over each store, and say what is there when they fail."""

from __future__ import annotations

import re
import unittest
from datetime import timedelta
from types import SimpleNamespace

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.test import SimpleTestCase

from agent_memory import Agent, Approve, Deny, Edit, Message, RemembersConversations, tool
from agent_memory.exceptions import ProviderUnavailable
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.testing import (
    ConversationAssertions,
    assert_decided,
    assert_message_count,
    assert_nothing_stored,
    assert_pending_approvals,
    assert_prompted_with,
    assert_remembered,
    assert_roles,
    calls,
    override_agent_memory,
    override_store,
)


@tool(needs_approval="Money leaves.")
def refund(order: int, amount: int = 1) -> str:
    """Pay an order back."""
    return f"{amount} paid for {order}."


@tool(needs_approval=True)
def freeze(order: int) -> str:
    """Freeze an order."""
    return f"{order} is frozen."


@tool(needs_approval=True, approval_expires=timedelta(microseconds=1))
def close(order: int) -> str:
    """Close an order."""
    return f"{order} is closed."


@tool
def lookup(order: int) -> str:
    """Look an order up."""
    return f"Order {order} is on its way."


class Coach(RemembersConversations, Agent):
    tools = (lookup, refund, freeze, close)


def fails(*parts: str):
    """Expect an assertion to fail with these parts in its message, in this order."""
    return pytest.raises(AssertionError, match="(?s:.*)".join(map(re.escape, parts)))


@pytest.fixture
def coach(store):
    return Coach().for_participant(None)


@pytest.fixture
def blue(coach):
    """A response after ``Remember: blue.``, the second of a conversation."""
    with Coach.fake(["Stored: blue.", "Recalled: blue."]):
        coach.prompt("Remember: blue.")
        return coach.prompt("What did I say?")


def pause(coach, *asked):
    """Prompt, and let the model call these tools."""
    with Coach.fake([calls(*asked)]):
        return coach.prompt("Do it.")


# Messages.


def test_messages_are_asserted_by_count_roles_and_prompts(blue):
    assert_message_count(blue, 4)
    assert_message_count(blue.conversation_id, 4)
    assert_roles(blue, ["user", "assistant", "user", "assistant"])
    assert_prompted_with(blue, "Remember: blue.")
    assert_prompted_with(blue.conversation_id, "What did I say?")


def test_what_does_not_hold_is_told_with_the_conversation(blue):
    conversation = (
        "The conversation:\n  user: Remember: blue.\n  assistant: Stored: blue.\n"
        "  user: What did I say?\n  assistant: Recalled: blue."
    )
    with fails("There are 4 messages, not 2.", conversation):
        assert_message_count(blue, 2)
    with fails("The roles are not user, assistant.", conversation):
        assert_roles(blue, ["user", "assistant"])
    with fails("No user message is 'Stored: blue.'", conversation):
        assert_prompted_with(blue, "Stored: blue.")
    with fails("No user message is 'Remember'", conversation):
        assert_prompted_with(blue, "Remember")


def test_a_conversation_that_is_not_there_has_no_messages(store):
    assert_message_count("nowhere", 0)
    assert_roles("nowhere", [])
    with fails("0 messages, not 2", "nothing"):
        assert_message_count("nowhere", 2)
    with fails("The roles are not user"):
        assert_roles("nowhere", ["user"])


def test_calls_failures_and_leading_messages_are_told(store):
    agent = Coach().start_conversation(None, leading=[Message("system", "Be short.")])
    script = [calls(("lookup", {"order": 1})), ProviderUnavailable("Gone.")]
    with Coach.fake(script), pytest.raises(ProviderUnavailable):
        agent.prompt("Where is it?")
    told = "  system: Be short.\n  user: Where is it?\n  assistant:  [called lookup] (failed)"
    with fails("3 messages", told):
        assert_message_count(agent.current_conversation_id, 0)


@override_agent_memory(MESSAGES_PER_PAGE=1)
def test_all_pages_are_looked_at(blue):
    assert_message_count(blue, 4)
    assert_prompted_with(blue, "Remember: blue.")


def test_a_response_that_was_not_stored_is_told(store):
    with Coach.fake(["Hello."]):
        reply = Coach().prompt("Hi")
    with fails("This response was not stored", "for_user()"):
        assert_message_count(reply, 0)


# What is remembered.


def test_a_response_remembers_what_was_said_before_its_prompt(coach):
    with Coach.fake(["Stored: blue.", calls(("lookup", {"order": 7})), "Found.", "Bye."]):
        first, second, third = map(coach.prompt, ["Remember: blue.", "Where is 7?", "Thanks."])
    assert_remembered(second, "Remember: blue.")
    assert_remembered(second, "Stored")
    assert_remembered(third, "Order 7 is on its way.")
    assert_remembered(third.conversation_id, "Bye.")
    with fails("'blue' was not remembered", "nothing"):
        assert_remembered(first, "blue")
    with fails("'Order 7' was not remembered", "user: Remember: blue."):
        assert_remembered(second, "Order 7")
    with fails("'Bye.' was not remembered"):
        assert_remembered(third, "Bye.")


def test_what_is_outside_the_window_is_not_remembered(coach):
    with Coach.fake(["1", "2", "3"]):
        *_, third = map(coach.prompt, ["One", "Two", "Three"])
    assert_remembered(third, "One")
    with fails("'One' was not remembered", "user: Two"):
        assert_remembered(third, "One", keep_last_turns=1)
    with override_agent_memory(KEEP_LAST_TURNS=1):
        assert_remembered(third, "Two")
        assert_remembered(third.conversation_id, "Three")
        with fails("'Two'"):
            assert_remembered(third.conversation_id, "Two")


def test_a_paused_turn_remembers_and_is_not_remembered_yet(coach):
    with Coach.fake(["Stored: blue."]):
        first = coach.prompt("Remember: blue.")
    paused = pause(coach, ("refund", {"order": 1}))
    assert_remembered(paused, "Remember: blue.")
    with fails("'blue'"):
        assert_remembered(first, "blue")
    with fails("'Do it.'"):
        assert_remembered(paused.conversation_id, "Do it.")


def test_a_response_whose_turn_is_gone_is_told(blue, store):
    store.clear(blue.conversation_id)
    with fails("The turn of this response is not stored", "nothing"):
        assert_remembered(blue, "blue")


# Approvals.


def test_what_waits_is_asserted_by_tool_in_order(coach):
    paused = pause(
        coach, ("refund", {"order": 1}), ("lookup", {"order": 1}), ("freeze", {"order": 1})
    )
    assert_pending_approvals(paused, ["refund", "freeze"])
    assert_pending_approvals("nowhere", [])
    waiting = "call-1: refund({'order': 1})", "call-3: freeze({'order': 1})"
    with fails("What waits is not freeze, refund, but:", *waiting):
        assert_pending_approvals(paused, ["freeze", "refund"])
    with fails("What waits is not refund, but:", "nothing"):
        assert_pending_approvals("nowhere", ["refund"])


DECISIONS = [
    (Approve(), "approved"),
    (Edit({"order": 1, "amount": 5}), "edited"),
    (Deny("Not today."), "denied"),
]


@pytest.mark.parametrize(("decision", "word"), DECISIONS)
def test_a_decision_is_asserted_before_and_after_the_turn_goes_on(coach, store, decision, word):
    paused = pause(coach, ("refund", {"order": 1}), ("refund", {"order": 2}))
    assert_decided(paused, "call-1", "pending")
    store.decide(paused.conversation_id, {"call-1": decision})
    assert_decided(paused, "call-1", word)
    assert_decided(paused.conversation_id, "call-2", "pending")
    assert_pending_approvals(paused, ["refund"])
    with Coach.fake(["Done."]):
        done = coach.resume({"*": Approve()})
    assert_decided(done, "call-1", word)
    assert_decided(done, "call-2", "approved")
    assert_pending_approvals(done, [])
    with fails(f"The call 'call-1' is {word}, not expired."):
        assert_decided(done, "call-1", "expired")


def test_an_edited_call_is_an_approved_one(coach, store):
    paused = pause(coach, ("refund", {"order": 1}))
    store.decide(paused.conversation_id, {"call-1": Edit({"order": 2})})
    assert_decided(paused, "call-1", "approved")
    with fails("is edited, not denied"):
        assert_decided(paused, "call-1", "denied")


def test_what_nobody_decided_in_time_has_expired(coach):
    paused = pause(coach, ("close", {"order": 1}))
    assert_decided(paused, "call-1", "expired")
    with Coach.fake([]):
        coach.resume()
    assert_decided(paused, "call-1", "expired")


def test_the_latest_call_of_an_id_counts_and_a_look_leaves_nothing_held(coach, store):
    for decision in (Deny(), Approve()):
        pause(coach, ("refund", {"order": 1}))
        with Coach.fake(["Done."] if decision == Approve() else []):
            done = coach.resume({"*": decision})
    assert_decided(done, "call-1", "approved")
    paused = pause(coach, ("refund", {"order": 1}))
    assert_decided(paused, "call-1", "pending")
    store.decide(paused.conversation_id, {"*": Deny()})
    assert coach.resume().status == "completed"


def test_a_call_that_waited_for_nobody_is_told(coach):
    with Coach.fake([calls(("lookup", {"order": 1})), "Found."]):
        done = coach.prompt("Where is it?")
    with fails("No call 'call-1' was gated.", "[called lookup]"):
        assert_decided(done, "call-1", "approved")
    with fails("No call 'call-9' was gated."):
        assert_decided(done, "call-9", "approved")
    with pytest.raises(ValueError, match="one of pending, approved"):
        assert_decided(done, "call-1", "agreed")


# Nothing stored.


def test_nothing_is_stored_of_those_who_have_no_conversation(coach, user, team):
    assert_nothing_stored(user, team, None)
    with Coach.fake(["Hello."]):
        reply = Coach().for_user(user).prompt("Hi")
    assert_nothing_stored(team, None)
    with fails("ada", f"has stored conversations: {reply.conversation_id}."):
        assert_nothing_stored(team, user)
    with Coach.fake(["Hello."]):
        coach.prompt("Hi")
    with fails("Nobody has stored conversations"):
        assert_nothing_stored(None)


def test_whose_conversations_are_looked_for_must_be_said(store):
    with pytest.raises(TypeError, match="None for those of nobody"):
        assert_nothing_stored()


# Where they are used.


def test_they_are_methods_of_a_test_case_without_a_database():
    class CoachTests(ConversationAssertions, SimpleTestCase):
        def test_turn(self) -> None:
            with override_store(), Coach.fake(["Stored: blue."]):
                reply = Coach().for_user(SimpleNamespace(id=7)).prompt("Remember: blue.")
                self.assert_roles(reply, ["user", "assistant"])
                self.assert_nothing_stored(SimpleNamespace(id=8))

        async def test_async(self) -> None:
            with override_store(), Coach.fake(["Stored: blue."]):
                reply = await Coach().for_user(SimpleNamespace(id=7)).aprompt("Remember: blue.")
                self.assert_message_count(reply, 2)

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(CoachTests).run(result)
    assert (result.testsRun, result.failures, result.errors) == (2, [], [])


def test_they_look_into_the_store_that_is_named():
    class Elsewhere(ConversationAssertions):
        conversation_store = InMemoryConversationStore()

    there = Elsewhere()
    with Coach.fake(["Stored: blue."]):
        reply = Coach(store=there.conversation_store).for_participant(None).prompt("Blue.")
    there.assert_message_count(reply, 2)
    with override_store():
        there_too = ConversationAssertions()
        there_too.assert_message_count(reply, 0)


@pytest.mark.django_db(transaction=True)
def test_an_async_test_calls_them_by_a_hop():
    async def test() -> None:
        with Coach.fake(["Stored: blue."]):
            reply = await Coach().for_participant(None).aprompt("Blue.")
        await sync_to_async(assert_message_count)(reply, 2)

    async_to_sync(test)()
