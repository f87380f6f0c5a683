"""The steps of a turn: tools run between requests, and a turn that fails keeps what it has."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from typing import Any, cast

import pytest

from agent_memory import Agent, flow, tool
from agent_memory.agents import Outcome, Recalled
from agent_memory.calls import Call
from agent_memory.exceptions import ProviderRefused, ProviderUnavailable
from agent_memory.flow import Flow
from agent_memory.messages import (
    Message,
    ProviderToolCall,
    Step,
    TextPart,
    ToolCall,
    ToolResult,
    Usage,
)
from agent_memory.providers import Provider, ProviderReply, ProviderRequest
from agent_memory.responses import Event, Response, Started, TextDelta
from tests.agents import Noting, a_turn_with_everything, area, ask, calling, in_every_way, scripted
from tests.flows import do


@tool
def broken(secret: str) -> str:
    """Fail."""
    raise ValueError(f"the password is {secret}")


@in_every_way
def test_the_model_gets_the_results_of_its_calls_and_then_answers(way: str) -> None:
    provider = scripted(calling("area", width=2, height=3), "Six.")
    response = ask(way, Agent(provider=provider, tools=[area], instructions="Count."), "How big?")
    first, second = provider.requests
    assert first.messages == second.messages == (Message("user", "How big?"),)
    assert first.instructions == second.instructions == "Count."
    assert first.tools == second.tools == (area.spec,)
    assert first.steps == ()
    assert second.steps == response.turn.steps[:1]
    assert second.steps[0].tool_calls()[0].result == ToolResult(value=6)
    assert response.turn.messages == (
        Message("user", "How big?"),
        Message("assistant", tool_calls=response.turn.steps[0].tool_calls()),
        Message("tool", "6", tool_call_id="call-1"),
        Message("assistant", "Six."),
    )


@in_every_way
def test_calls_of_one_step_run_in_their_order_and_keep_their_results(way: str) -> None:
    log: list[str] = []

    def note(text: str) -> str:
        log.append(text)
        return f"noted {text}"

    calls = [calling("note", "same-id", text=text) for text in "abc"]
    response = ask(way, Agent(provider=scripted(calls, "Done."), tools=[note]))
    assert log == ["a", "b", "c"]
    results = response.turn.tool_results()
    assert [result.value for result in results] == ["noted a", "noted b", "noted c"]


@in_every_way
def test_the_usage_of_all_steps_is_summed(way: str) -> None:
    response = ask(way, Agent(provider=a_turn_with_everything(), tools=[area]))
    assert response.usage == Usage(
        input_tokens=20, output_tokens=4, cached_tokens=10, reasoning_tokens=2
    )


@in_every_way
def test_a_call_of_a_tool_that_is_not_there_becomes_a_failed_result(way: str) -> None:
    provider = scripted(calling("erase"), "Sorry.")
    (result,) = ask(way, Agent(provider=provider, tools=[area])).turn.tool_results()
    assert result.failed
    assert result.text == "There is no tool named erase."


@in_every_way
def test_a_tool_that_raises_tells_the_model_no_secrets_and_the_log_everything(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    provider = scripted(calling("broken", secret="1234"), "Sorry.")
    response = ask(way, Agent(provider=provider, tools=[broken]))
    (result,) = response.turn.tool_results()
    assert response.text == "Sorry."
    assert result.failed
    assert result.text == "The tool failed: ValueError."
    assert "broken" in caplog.text
    assert "the password is 1234" in caplog.text


@in_every_way
def test_arguments_that_do_not_fit_are_told_to_the_model_and_run_nothing(way: str) -> None:
    calls = [
        calling("area", "a", width="wide", colour="red"),
        ToolCall(id="b", name="area", raw_arguments='{"width": 2,'),
    ]
    results = ask(way, Agent(provider=scripted(calls, "Sorry."), tools=[area])).turn.tool_results()
    assert all(result.failed for result in results)
    for problem in ("width: Input should be a valid integer", "height: Field required", "colour:"):
        assert problem in results[0].text
    assert results[1].text == "The arguments are not a JSON object."


@in_every_way
def test_the_calls_of_the_last_step_are_not_run(way: str) -> None:
    provider = scripted(*[calling("area", width=1, height=1)] * 2)
    response = ask(way, Agent(provider=provider, tools=[area], max_steps=2))
    assert len(provider.requests) == 2
    assert response.status == "completed"
    assert [call.result for call in response.turn.tool_calls()] == [ToolResult(value=1), None]
    assert [message.role for message in response.turn.messages] == ["user", "assistant", "tool"]


@in_every_way
@pytest.mark.parametrize("reason", ["length", "content_filter", "refusal", "stop"])
def test_a_step_that_did_not_end_in_calls_ends_the_turn_and_runs_none(
    way: str, reason: Any
) -> None:
    step = Step(items=(TextPart(text="I wi"), calling("broken")), finish_reason=reason)
    response = ask(way, Agent(provider=scripted(step), tools=[broken]))
    assert response.turn.steps == (step,)
    assert response.turn.tool_results() == ()
    assert response.text == "I wi"


@in_every_way
def test_a_step_that_says_calls_and_has_none_to_run_ends_the_turn(way: str) -> None:
    step = Step(items=(ProviderToolCall(name="web_search"),), finish_reason="tool_calls")
    assert ask(way, Agent(provider=scripted(step))).turn.steps == (step,)


# Failures.


@in_every_way
def test_an_error_of_the_first_request_reaches_the_caller_as_it_was(way: str) -> None:
    error = ProviderRefused("No such model.", status=404, request_id="req-1")
    agent = Noting(provider=scripted(error))
    with pytest.raises(ProviderRefused) as caught:
        ask(way, agent)
    assert caught.value is error
    assert agent.outcome.turn.steps == ()


@in_every_way
def test_an_error_after_a_step_leaves_a_failed_turn_with_that_step(way: str) -> None:
    error = ProviderUnavailable("secret: 1234", status=503, request_id="req-1")
    agent = Noting(provider=scripted(calling("area", width=2, height=3), error), tools=[area])
    with pytest.raises(ProviderUnavailable):
        ask(way, agent, "How big?")
    turn = agent.outcome.turn
    assert turn.status == "failed"
    assert turn.user == Message("user", "How big?")
    assert [result.value for result in turn.tool_results()] == [6]
    assert turn.error is not None
    assert turn.error.model_dump() == {
        "code": "ProviderUnavailable",
        "status": 503,
        "request_id": "req-1",
    }


@in_every_way
def test_an_interrupt_in_a_tool_keeps_the_results_before_it(way: str) -> None:
    class Interrupt(BaseException):
        pass

    def stop() -> None:
        raise Interrupt

    calls = [calling("area", "a", width=2, height=3), calling("stop", "b"), calling("area", "c")]
    agent = Noting(provider=scripted(calls), tools=[area, stop])
    with pytest.raises(Interrupt):
        ask(way, agent)
    turn = agent.outcome.turn
    assert turn.error is not None
    assert turn.error.code == "Interrupt"
    assert [call.result and call.result.value for call in turn.tool_calls()] == [6, None, None]
    assert [message.text for message in turn.messages if message.role == "tool"][:1] == ["6"]


class Unfinished(Provider):
    """Gives anything but a reply."""

    given: Any = None

    def complete(self, request: ProviderRequest) -> ProviderReply:
        return cast("ProviderReply", self.given)

    async def acomplete(self, request: ProviderRequest) -> ProviderReply:
        return self.complete(request)

    def stream(self, request: ProviderRequest) -> Generator[Event | ProviderReply, None, None]:
        yield TextDelta("I was about to")
        if self.given is not None:
            yield self.given

    async def astream(
        self, request: ProviderRequest
    ) -> AsyncGenerator[Event | ProviderReply, None]:
        for item in self.stream(request):
            yield item


@in_every_way
@pytest.mark.parametrize("given", [None, TextDelta("say something")])
def test_a_provider_that_ends_without_a_reply_is_unavailable(way: str, given: Any) -> None:
    provider = Unfinished()
    provider.given = given
    with pytest.raises(ProviderUnavailable, match="without an answer"):
        ask(way, Agent(provider=provider))


def test_a_turn_that_is_closed_by_hand_does_nothing_more() -> None:
    class Storing(Agent):
        def remember(self, recalled: Recalled, outcome: Outcome) -> Flow[Response]:
            yield do(log.append, "stored")
            return (yield from super().remember(recalled, outcome))

    log: list[str] = []
    call = Call(Message("user", "Hello"), scripted("never"), "any")
    turn = Storing().turn(call)
    events = flow.stream(turn)
    assert next(events) == Started(None)
    turn.close()
    events.close()
    assert log == []
