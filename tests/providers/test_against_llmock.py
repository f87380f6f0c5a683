"""Both providers against a mock server that others wrote, with its faults."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from agent_memory.exceptions import ProviderRefused, ProviderUnavailable
from agent_memory.messages import ToolResult
from agent_memory.responses import TextDelta
from tests.providers.asking import WAYS, WEATHER, ask, prompt
from tests.providers.conftest import BOTH

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(
        find_spec("llmock") is None, reason="needs llmock: uv run --group llmock pytest -m heavy"
    ),
]

both = pytest.mark.parametrize("kind", BOTH)
each_way = pytest.mark.parametrize("way", WAYS)
streamed = pytest.mark.parametrize("way", ["stream", "astream"])


@both
@each_way
def test_an_answer_with_its_usage(llmock, kind, way):
    llmock.reply("Hello there, friend.")
    seen, reply = ask(kind(), prompt("Hello", instructions="Be kind."), way)
    assert reply.step.text == "Hello there, friend."
    assert reply.step.finish_reason == "stop"
    assert reply.step.usage.input_tokens > 0
    assert reply.step.usage.output_tokens > 0
    text = "".join(event.text for event in seen if isinstance(event, TextDelta))
    assert text == ("Hello there, friend." if "stream" in way else "")


@both
@each_way
def test_a_tool_call_its_result_and_the_answer(llmock, kind, way):
    provider = kind()
    llmock.call_tool("get_weather", {"city": "Köln"}).reply("21 C.")
    request = prompt("Weather?", tools=(WEATHER,))
    step = ask(provider, request, way)[1].step
    (call,) = step.tool_calls()
    assert (call.name, call.arguments) == ("get_weather", {"city": "Köln"})
    assert step.finish_reason == "tool_calls"
    answered = step.with_results({0: ToolResult(value={"celsius": 21})})
    last = ask(provider, prompt("Weather?", tools=(WEATHER,), steps=(answered,)), way)[1].step
    assert (last.text, last.finish_reason) == ("21 C.", "stop")


@both
@each_way
def test_a_rate_limit_is_waited_for(llmock, kind, way):
    llmock.rate_limit(times=1, retry_after=0.01).reply("Hello.")
    assert ask(kind(), prompt("Hello"), way)[1].step.text == "Hello."
    assert len(llmock.requests) == 2
    llmock.assert_resilient()


@both
@each_way
@pytest.mark.parametrize(
    ("status", "expected"),
    [(429, ProviderUnavailable), (503, ProviderUnavailable), (401, ProviderRefused)],
)
def test_a_lasting_error(llmock, kind, way, status, expected):
    llmock.fail(status, times=None)
    with pytest.raises(expected) as raised:
        ask(kind(max_retries=0), prompt("Hello"), way)
    assert raised.value.status == status


@both
@streamed
@pytest.mark.parametrize("fault", ["disconnect", "truncate", "corrupt"])
@pytest.mark.parametrize("after", [0, 3])
def test_a_stream_that_breaks_is_never_a_short_success(llmock, kind, way, fault, after):
    llmock.reply("One two three four five six seven eight nine ten.")
    getattr(llmock, fault)(after_chunks=after)
    with pytest.raises(ProviderUnavailable):
        ask(kind(max_retries=0), prompt("Hello"), way)


@both
@streamed
def test_a_stream_that_stalls(llmock, kind, way):
    llmock.reply("One two three.").stall(after_chunks=2, seconds=1)
    with pytest.raises(ProviderUnavailable, match="in time"):
        ask(kind(max_retries=0, timeout=0.2), prompt("Hello"), way)


@both
@each_way
def test_arguments_that_are_broken_are_kept_as_they_came(llmock, kind, way):
    llmock.break_tool_call("malformed_arguments")
    step = ask(kind(), prompt("Weather?", tools=(WEATHER,)), way)[1].step
    (call,) = step.tool_calls()
    assert call.arguments == {}
    assert call.raw_arguments
