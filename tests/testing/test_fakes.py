"""A faked agent class answers from its script, wherever it is asked, and nothing else does."""

from __future__ import annotations

import asyncio
import unittest
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from asgiref.sync import async_to_sync
from django.test import SimpleTestCase

from agent_memory import Agent, AnonymousAgent, Message, RemembersConversations, tool
from agent_memory.exceptions import ProviderUnavailable
from agent_memory.messages import Reasoning, RefusalPart, Usage
from agent_memory.responses import ReasoningDelta, RefusalDelta, StepFinished, TextDelta
from agent_memory.stores import ConversationStore
from agent_memory.testing import (
    Answer,
    FakeAgent,
    ProviderCallForbidden,
    ScriptedProvider,
    ScriptExhausted,
    Title,
    calls,
    fake,
    forbid_provider_calls,
    override_agent_memory,
    override_provider,
    override_store,
)
from tests.agents import ask, events, in_both_streams, in_every_way


@tool
def lookup(order: int) -> str:
    """Look an order up."""
    return f"Order {order} is on its way."


class Coach(RemembersConversations, Agent):
    instructions = "Keep replies short."
    tools = (lookup,)


class SupportCoach(Coach):
    provider = ScriptedProvider(["From the class."])


class Clerk(Agent):
    provider = ScriptedProvider()


@pytest.fixture(autouse=True)
def memory() -> Iterator[ConversationStore]:
    with override_store() as store:
        yield store


# Who answers.


@in_every_way
def test_an_agent_answers_from_the_script_in_each_way(way):
    with Coach.fake(["One.", "Two."]) as it:
        assert [ask(way, Coach(), "a").text, ask(way, Coach(), "b").text] == ["One.", "Two."]
    assert it.prompts == ["a", "b"]


@in_every_way
def test_a_provider_of_the_class_or_of_the_instance_is_not_asked(way):
    own = ScriptedProvider(["Its own."])
    with fake(SupportCoach, ["One.", "Two."]):
        assert ask(way, SupportCoach()).text == "One."
        assert ask(way, SupportCoach(provider=own)).text == "Two."
    assert own.requests == []


def test_subclasses_answer_from_the_script_unless_they_are_faked_themselves():
    with fake(SupportCoach, ["Own."]), fake(Coach, ["Base.", "Base."]) as base:
        assert SupportCoach().prompt("a").text == "Own."
        assert Coach().prompt("b").text == "Base."

        class Later(Coach):
            provider = "no.such.Provider"

        assert Later().prompt("c").text == "Base."
    assert base.prompts == ["b", "c"]


def test_other_agents_are_untouched():
    with fake(SupportCoach) as it, override_provider(ScriptedProvider(["Everybody's."] * 3)):
        assert Coach().prompt("a").text == "Everybody's."
        assert Clerk().prompt("b").text == "Everybody's."
        assert AnonymousAgent("Be short.").prompt("c").text == "Everybody's."
    it.assert_nothing_prompted()
    with fake(Coach):
        assert Clerk(provider=ScriptedProvider(["Its own."])).prompt("Hello").text == "Its own."


def test_a_faked_base_class_answers_for_all_agents():
    with fake(Agent, ["One.", "Two."]):
        assert Clerk().prompt("a").text == "One."
        assert AnonymousAgent().prompt("b").text == "Two."


@pytest.mark.parametrize(
    "override", [forbid_provider_calls(), override_provider(ScriptedProvider())]
)
def test_a_fake_goes_before_what_holds_for_every_agent(override):
    with override, fake(Coach, ["One."]):
        assert Coach().prompt("a").text == "One."
    with fake(Coach, ["One."]), override:
        assert Coach().prompt("a").text == "One."


def test_the_inner_of_two_fakes_answers_and_the_outer_one_goes_on_after_it():
    with fake(Coach, ["Outer.", "Outer again."]):
        assert Coach().prompt("a").text == "Outer."
        with fake(Coach, ["Inner."]):
            assert Coach().prompt("b").text == "Inner."
        assert Coach().prompt("c").text == "Outer again."


def test_an_agent_is_itself_again_after_the_block_however_it_ends():
    for error in (None, ZeroDivisionError):
        try:
            with fake(Coach):
                if error:
                    raise error
        except ZeroDivisionError:
            pass
        with forbid_provider_calls(), pytest.raises(ProviderCallForbidden, match="Coach called"):
            Coach().prompt("Hello")


def test_threads_and_tasks_share_the_script_of_a_fake():
    async def gather() -> set[str]:
        replies = await asyncio.gather(*(Coach().aprompt("b") for _ in range(8)))
        return {reply.text for reply in replies}

    with fake(Coach, [f"{number}" for number in range(16)]) as it:
        with ThreadPoolExecutor(8) as threads:
            texts = {reply.text for reply in threads.map(Coach().prompt, ["a"] * 8)}
        texts |= async_to_sync(gather)()
    assert texts == {f"{number}" for number in range(16)}
    it.assert_sent(16)


@pytest.mark.parametrize("wrong", [Coach(), object, "Coach", None])
def test_what_is_no_class_of_agents_cannot_be_faked(wrong):
    with pytest.raises(TypeError, match="takes a class of agents"):
        fake(wrong, ["Hello"])


def test_a_script_is_checked_before_anything_happens():
    with pytest.raises(TypeError, match="list of replies"):
        fake(Coach, "Hello")
    with pytest.raises(TypeError, match="A reply is text"):
        Coach.fake([7])


def test_a_fake_can_be_entered_once():
    it = fake(Coach)
    with it as entered:
        assert entered is it
        with pytest.raises(RuntimeError, match="once"):
            it.__enter__()
    with pytest.raises(RuntimeError, match="Make another one"), it:
        pass


# What it answers.


@in_every_way
def test_a_turn_with_tools_is_one_prompt_of_several_requests(way):
    script = [["Let me look.", *calls(("lookup", {"order": 1}))], "It comes."]
    with fake(Coach, script) as it:
        reply = ask(way, Coach(), "Where is it?")
    assert reply.text == "It comes."
    assert reply.turn.tool_calls()[0].id == "call-1"
    assert reply.turn.tool_results()[0].value == "Order 1 is on its way."
    it.assert_sent(2)
    assert it.prompts == ["Where is it?"]


@in_every_way
def test_an_error_of_the_script_is_what_the_caller_gets(way, memory):
    with fake(Coach, [ProviderUnavailable("Overloaded.", status=503), "Now."]):
        with pytest.raises(ProviderUnavailable, match="Overloaded"):
            ask(way, Coach().for_participant(None))
        assert len(memory.list_conversations(None)) == 0
        assert ask(way, Coach()).text == "Now."


@in_every_way
def test_a_reply_may_be_a_function_of_the_request(way):
    with fake(Coach, [lambda request: f"{request.model} heard {request.messages[-1].text}"]):
        assert ask(way, Coach(model="tiny"), "a").text == "tiny heard a"


@in_both_streams
def test_a_stream_gives_the_pieces_of_the_script(way):
    answer = Answer(
        Reasoning(text="Hm"), "Sto", "red.", finish_reason="length", usage=Usage(output_tokens=3)
    )
    with fake(Coach, [answer, RefusalPart(text="No.")]):
        _, *told, _ = events(way, Coach())
        _, refused, finished, _ = events(way, Coach())
    *deltas, last = told
    assert deltas == [ReasoningDelta("Hm"), TextDelta("Sto"), TextDelta("red.")]
    assert isinstance(last, StepFinished)
    assert (last.step.finish_reason, last.step.usage.output_tokens) == ("length", 3)
    assert refused == RefusalDelta("No.")
    assert finished.step.finish_reason == "refusal"


def test_a_stream_may_break_off():
    seen = []
    script = [Answer("Sto", ProviderUnavailable("Gone."))]
    with fake(Coach, script), pytest.raises(ProviderUnavailable, match="Gone"):
        seen.extend(Coach().stream("Hello"))
    assert TextDelta("Sto") in seen


@override_agent_memory(GENERATE_TITLES=True)
def test_titles_take_no_reply_and_are_the_prompt_unless_the_script_says_more(memory):
    with fake(Coach, ["One.", "Two.", Title("Colours")]) as it:
        first = Coach().for_participant(None).prompt("Remember: red.")
        assert memory.get(first.conversation_id).title == "Colours"
        second = Coach().for_participant(None).prompt("Remember: blue.")
        assert memory.get(second.conversation_id).title == "Remember: blue."
    assert it.prompts == ["Remember: red.", "Remember: blue."]


# What the script does not say, and what it says too much.


@in_every_way
def test_a_prompt_beyond_the_script_fails_and_shows_what_was_asked(way):
    def twice() -> None:
        agent = Coach().for_participant(None)
        ask(way, agent, "first")
        ask(way, agent, "second")

    with pytest.raises(ScriptExhausted) as caught, fake(Coach, ["One."]):
        twice()
    told = str(caught.value)
    assert told.startswith("Coach was asked for reply 2, and its script has 1:")
    for part in ("Keep replies short.", "lookup", "user: first", "assistant: One.", "second"):
        assert part in told


def test_a_prompt_beyond_the_script_fails_even_when_the_code_swallows_it():
    def view() -> str:
        try:
            return Coach().prompt("surplus").text
        except Exception:
            return "Sorry."

    with pytest.raises(ScriptExhausted, match="surplus"), fake(Coach):
        assert view() == "Sorry."


def test_replies_that_are_left_fail_the_block():
    with pytest.raises(AssertionError) as caught, fake(Coach, ["One.", "Two.", "Three."]):
        Coach().prompt("first")
    assert str(caught.value) == (
        "2 of 3 scripted replies were not used; the next is 'Two.'. Coach was asked: 'first'"
    )


def test_a_block_that_raises_tells_its_own_error():
    with pytest.raises(ZeroDivisionError), fake(Coach, ["One."]):
        raise ZeroDivisionError


def test_the_script_may_grow_while_it_is_played():
    with fake(Coach) as it:
        it.extend(["One."])
        assert Coach().prompt("a").text == "One."


# What it was asked.


@pytest.fixture
def asked() -> FakeAgent:
    with fake(Coach, ["Stored: blue.", "Recalled: blue."]) as it:
        agent = Coach().for_participant(None)
        agent.prompt("Remember: blue.")
        agent.prompt("What did I say?")
    return it


def test_what_was_asked_is_told_with_the_history_that_each_request_carried(asked):
    assert asked.prompts == ["Remember: blue.", "What did I say?"]
    assert [request.model for request in asked.requests] == ["test-model"] * 2
    assert asked.histories == [
        (),
        (Message("user", "Remember: blue."), Message("assistant", "Stored: blue.")),
    ]


def test_prompts_can_be_asserted_by_text_and_by_a_function_of_the_request(asked):
    asked.assert_prompted("Remember: blue.")
    asked.assert_prompted(lambda request: "did I" in request.messages[-1].text)
    asked.assert_not_prompted("Remember")
    asked.assert_not_prompted(lambda request: request.model == "other")
    with pytest.raises(AssertionError, match=r"was not asked 'red'(?s:.*)Remember: blue\."):
        asked.assert_prompted("red")
    with pytest.raises(AssertionError, match="was not asked what"):
        asked.assert_prompted(lambda request: False)
    with pytest.raises(AssertionError, match="was asked 'Remember: blue"):
        asked.assert_not_prompted("Remember: blue.")
    with pytest.raises(AssertionError, match="was asked what"):
        asked.assert_not_prompted(lambda request: True)


def test_the_number_of_requests_can_be_asserted(asked):
    asked.assert_sent(2)
    with pytest.raises(AssertionError, match="made 2 requests, not 3"):
        asked.assert_sent(3)
    with pytest.raises(AssertionError, match="asked nothing"):
        asked.assert_nothing_prompted()
    with fake(Coach) as silent:
        silent.assert_nothing_prompted()
    silent.assert_sent(0)
    with pytest.raises(AssertionError, match="It was asked nothing"):
        silent.assert_sent(1)


def test_what_the_last_request_carried_can_be_asserted(asked):
    asked.assert_remembered("blue")
    with pytest.raises(AssertionError, match=r"no 'green'(?s:.*)assistant: Stored: blue\."):
        asked.assert_remembered("green")
    with pytest.raises(AssertionError, match="no 'What did'"):
        asked.assert_remembered("What did")
    with fake(Coach) as silent, pytest.raises(AssertionError, match="nothing"):
        silent.assert_remembered("blue")


# As a decorator.


def test_each_run_of_a_decorated_function_has_the_script_from_its_start():
    @fake(Coach, iter(["One."]))
    def work(word: str) -> str:
        return Coach().prompt(word).text

    assert work("a") == work("b") == "One."
    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(work, "cdef")) == {"One."}
    assert work.__name__ == "work"


def test_a_decorated_coroutine_function_answers_while_it_runs():
    @fake(Coach, ["One.", "Two."])
    async def work() -> str:
        return (await Coach().aprompt("a")).text

    with pytest.raises(AssertionError, match="the next is 'Two"):
        async_to_sync(work)()


def test_a_decorated_function_that_raises_tells_its_own_error():
    @fake(Coach, ["One."])
    def work() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()


def test_each_test_of_a_decorated_case_has_the_script_from_its_start():
    class Base(SimpleTestCase):
        def test_inherited(self) -> None:
            assert Coach().prompt("a").text == "One."

    @fake(Coach, ["One."])
    class Case(Base):
        async def test_async(self) -> None:
            assert (await Coach().aprompt("a")).text == "One."

        def test_left(self) -> None: ...

        def test_surplus(self) -> None:
            for _ in range(2):
                Coach().prompt("a")

        def test_failed(self) -> None:
            assert Coach is None

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(result)
    assert (result.testsRun, result.errors) == (5, [])
    failed = sorted((case.id().rpartition(".")[2], text) for case, text in result.failures)
    assert [name for name, _ in failed] == ["test_failed", "test_left", "test_surplus"]
    for (_, text), told in zip(failed, ["Coach is None", "were not used", "reply 2"], strict=True):
        assert told in text
