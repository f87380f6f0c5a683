"""What the answers of the Chat Completions API become."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agent_memory.exceptions import ProviderUnavailable
from agent_memory.messages import (
    Reasoning,
    RefusalPart,
    Replay,
    Step,
    TextPart,
    ToolCall,
    Usage,
)
from agent_memory.providers.openai_chat import OpenAIChatProvider
from agent_memory.responses import ReasoningDelta, RefusalDelta, TextDelta
from tests.providers.asking import (
    TWO_WAYS,
    WAYS,
    ask,
    chunk,
    completing,
    completion,
    prompt,
    step_of,
    tool_call,
)
from tests.providers.scripted import answer, events

ASSISTANT = {"role": "assistant", "content": "Hello."}


@pytest.fixture
def provider(build: Callable[..., OpenAIChatProvider]) -> OpenAIChatProvider:
    return build(OpenAIChatProvider)


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_becomes_a_step_of_its_items_in_order(server, provider, way):
    message = {
        "role": "assistant",
        "reasoning_content": "Hm.",
        "content": "Let me look.",
        "tool_calls": [
            tool_call("call_1", "get_weather", '{ "city":"Paris" }', extra={"signature": "abc"}),
            tool_call("call_2", "get_time", ""),
        ],
    }
    usage = {
        "prompt_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens": 20,
        "completion_tokens_details": {"reasoning_tokens": 8},
    }
    body = completion(message, "tool_calls", usage=usage)
    server.script(completing(way, body, x_request_id="req_7"))
    _, reply = ask(provider, prompt("Hello"), way)
    assert reply.request_id == "req_7"
    echoed = {
        **message,
        "tool_calls": [message["tool_calls"][0], tool_call("call_2", "get_time", "{}")],
    }
    assert reply.step == Step(
        items=(
            Reasoning(text="Hm."),
            TextPart(text="Let me look."),
            ToolCall(id="call_1", name="get_weather", arguments={"city": "Paris"}),
            ToolCall(id="call_2", name="get_time", arguments={}),
        ),
        finish_reason="tool_calls",
        usage=Usage(input_tokens=10, output_tokens=20, cached_tokens=4, reasoning_tokens=8),
        provider="openai_chat",
        model="test-model-2026",
        replay=Replay(provider="openai_chat", model="test-model", blocks=(echoed,)),
    )


@pytest.mark.parametrize("way", TWO_WAYS)
def test_an_answer_without_extras_has_nothing_to_replay_and_may_lack_usage(server, provider, way):
    message = {"role": "assistant", "content": None, "tool_calls": [tool_call("c", "f", "{}")]}
    server.script(completing(way, completion(message, "tool_calls")))
    step = step_of(provider, prompt("Hello"), way)
    assert step.items == (ToolCall(id="c", name="f"),)
    assert (step.usage, step.replay) == (Usage(), None)


@pytest.mark.parametrize("way", WAYS)
def test_citations_and_whatever_else_a_server_adds_stay_with_the_text(server, provider, way):
    cited = [{"type": "url_citation", "url_citation": {"url": "https://x.test"}}]
    more = {"annotations": cited, "context": {"intent": "x"}}
    message = {"role": "assistant", "content": "See this.", **more, "audio": None}
    server.script(completing(way, completion(message)))
    step = step_of(provider, prompt("Hello"), way)
    assert step.items == (TextPart(text="See this.", provider_metadata=more),)


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_citations_that_come_in_pieces_are_one_list(server, provider, way):
    server.script(
        events(
            chunk({"content": "See", "annotations": [{"n": 1}]}),
            chunk({"content": " this.", "annotations": [{"n": 2}, {"n": 3}]}),
            chunk({"annotations": None}, "stop"),
            done=True,
        )
    )
    metadata = {"annotations": [{"n": 1}, {"n": 2}, {"n": 3}]}
    step = step_of(provider, prompt("Hello"), way)
    assert step.items == (TextPart(text="See this.", provider_metadata=metadata),)


@pytest.mark.parametrize("way", WAYS)
def test_opaque_reasoning_is_kept_to_be_echoed(server, provider, way):
    details = [{"type": "reasoning.encrypted", "data": "gAAAA="}]
    calls = [tool_call("c", "f", "{}")]
    message = {"role": "assistant", "reasoning_details": details, "tool_calls": calls}
    server.script(completing(way, completion(message, "tool_calls")))
    step = step_of(provider, prompt("Hello"), way)
    assert step.items == (ToolCall(id="c", name="f"),)
    assert step.replay is not None
    assert step.replay.blocks == ({**message, "content": None},)


ODD_USAGES: list[Any] = [
    None,
    {},
    [1],
    {"prompt_tokens": None, "completion_tokens": "many"},
    {"prompt_tokens": -5, "completion_tokens": 1.5, "prompt_tokens_details": [1]},
    {"prompt_tokens": True, "completion_tokens_details": {"reasoning_tokens": -1}},
]


@pytest.mark.parametrize("usage", ODD_USAGES)
@pytest.mark.parametrize("way", TWO_WAYS)
def test_a_usage_that_is_no_count_is_zero_and_loses_no_answer(server, provider, way, usage):
    server.script(completing(way, completion(ASSISTANT, usage=usage)))
    step = step_of(provider, prompt("Hello"), way)
    assert (step.text, step.usage) == ("Hello.", Usage())


@pytest.mark.parametrize("way", TWO_WAYS)
def test_a_usage_that_no_column_holds_is_the_most_that_one_does(server, provider, way):
    server.script(completing(way, completion(ASSISTANT, usage={"prompt_tokens": 10**20})))
    assert step_of(provider, prompt("Hello"), way).usage.input_tokens == 2**31 - 1


@pytest.mark.parametrize("way", TWO_WAYS)
def test_an_empty_normal_answer_is_a_finished_step_without_items(server, provider, way):
    server.script(completing(way, completion({"role": "assistant", "content": ""})))
    step = step_of(provider, prompt("Hello"), way)
    assert (step.items, step.finish_reason) == ((), "stop")


@pytest.mark.parametrize(
    ("told", "finish_reason"),
    [
        ("stop", "stop"),
        ("eos", "stop"),
        ("length", "length"),
        ("model_length", "length"),
        ("content_filter", "content_filter"),
    ],
)
@pytest.mark.parametrize("way", TWO_WAYS)
def test_finish_reasons_are_normalised(server, provider, way, told, finish_reason):
    server.script(completing(way, completion(ASSISTANT, told)))
    assert step_of(provider, prompt("Hello"), way).finish_reason == finish_reason


@pytest.mark.parametrize("told", ["stop", "tool_calls", "function_call"])
@pytest.mark.parametrize("way", TWO_WAYS)
def test_tool_calls_are_the_finish_reason_even_if_the_server_says_stop(server, provider, way, told):
    message = {"role": "assistant", "tool_calls": [tool_call("c", "f", "{}")]}
    server.script(completing(way, completion(message, told)))
    assert step_of(provider, prompt("Hello"), way).finish_reason == "tool_calls"


@pytest.mark.parametrize("way", TWO_WAYS)
def test_tool_calls_that_were_cut_off_are_not_a_normal_end(server, provider, way):
    message = {"role": "assistant", "tool_calls": [tool_call("c", "f", '{"a": "')]}
    server.script(completing(way, completion(message, "length")))
    step = step_of(provider, prompt("Hello"), way)
    assert step.finish_reason == "length"
    assert step.tool_calls() == (ToolCall(id="c", name="f", raw_arguments='{"a": "'),)


@pytest.mark.parametrize("way", TWO_WAYS)
def test_a_refusal_is_a_part_and_a_finish_reason(server, provider, way):
    message = {"role": "assistant", "content": None, "refusal": "I will not."}
    server.script(completing(way, completion(message)))
    seen, reply = ask(provider, prompt("Hello"), way)
    assert reply.step.items == (RefusalPart(text="I will not."),)
    assert reply.step.finish_reason == "refusal"
    assert seen in ([], [RefusalDelta("I will not.")])


@pytest.mark.parametrize("way", TWO_WAYS)
def test_an_answer_without_a_finish_reason_is_a_failed_one(server, provider, way):
    server.script(completing(way, completion(ASSISTANT, None), x_request_id="req_5"))
    with pytest.raises(ProviderUnavailable, match="without a finish reason") as raised:
        ask(provider, prompt("Hello"), way)
    assert raised.value.request_id == "req_5"


@pytest.mark.parametrize("told", ["moonrise", "tool_calls", "Secret words in here"])
@pytest.mark.parametrize("way", TWO_WAYS)
def test_an_unknown_end_or_calls_that_are_missing_are_a_failed_answer(server, provider, way, told):
    server.script(completing(way, completion(ASSISTANT, told)))
    with pytest.raises(ProviderUnavailable, match="unknown way") as raised:
        ask(provider, prompt("Hello"), way)
    assert "Secret" not in str(raised.value)


@pytest.mark.parametrize("way", TWO_WAYS)
def test_missing_and_repeated_call_ids_are_replaced(server, provider, way):
    calls = [
        tool_call(None, "one", "{}"),
        tool_call("", "two", "{}"),
        tool_call("same", "three", "{}"),
        tool_call("same", "four", "{}"),
    ]
    server.script(completing(way, completion({"role": "assistant", "tool_calls": calls})))
    calls = step_of(provider, prompt("Hello"), way).tool_calls()
    assert [call.name for call in calls] == ["one", "two", "three", "four"]
    assert len({call.id for call in calls}) == 4
    assert all(call.id for call in calls)
    assert calls[2].id == "same"


def fragments(*pieces: tuple[Any, Any, Any, Any]) -> list[dict[str, Any]]:
    """Return chunks of (index, id, name, arguments), ``None`` for a field that is left out."""
    chunks = []
    for index, call_id, name, arguments in pieces:
        function = {"name": name, "arguments": arguments}
        function = {key: value for key, value in function.items() if value is not None}
        fragment = {"index": index, "id": call_id, "function": function}
        fragment = {key: value for key, value in fragment.items() if value is not None}
        chunks.append(chunk({"tool_calls": [fragment]}))
    return chunks


@pytest.mark.parametrize(
    "pieces",
    [
        [(0, "a", "f", '{"x":'), (None, None, None, " 1}"), (1, "b", "g", "{}")],
        [
            (0, "a", "f", ""),
            (0, None, None, '{"x":'),
            (1, "b", "g", "{"),
            (0, None, None, " 1}"),
            (1, None, None, "}"),
        ],
        [(0, "a", "f", '{"x": 1}'), (0, "b", "g", "{}")],
        [(None, "a", "f", '{"x":'), (None, None, None, " 1}"), (None, "b", "g", "{}")],
        [(0, "a", "f", '{"x":'), (0, "a", "f", " 1}"), (1, "b", "g", "{}")],
        [(0, "a", "f", '{"x":'), (0, "changed", None, " 1}"), (1, "b", "g", None)],
    ],
    ids=[
        "index only at first",
        "interleaved",
        "all at index 0",
        "no index",
        "names repeated",
        "ids changing",
    ],
)
@pytest.mark.parametrize("way", ["stream", "astream"])
def test_fragments_of_calls_are_joined(server, provider, way, pieces):
    server.script(events(*fragments(*pieces), chunk({}, "tool_calls"), done=True))
    assert step_of(provider, prompt("Hello"), way).tool_calls() == (
        ToolCall(id="a", name="f", arguments={"x": 1}),
        ToolCall(id="b", name="g"),
    )


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_stream_yields_its_deltas_as_they_come(server, provider, way):
    server.script(
        events(
            chunk({"role": "assistant", "content": ""}),
            chunk({"reasoning": "Hm", "reasoning_content": "Hm"}),
            chunk({"reasoning": "m."}),
            chunk({"content": "He"}),
            chunk({"content": "llo."}),
            {"choices": None},
            chunk({}, "stop"),
            {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": None}},
            done=True,
        )
    )
    seen, reply = ask(provider, prompt("Hello"), way)
    assert seen == [
        ReasoningDelta("Hm"),
        ReasoningDelta("m."),
        TextDelta("He"),
        TextDelta("llo."),
    ]
    assert reply.step.text == "Hello."
    assert reply.step.usage == Usage(input_tokens=3)


def test_arguments_that_are_a_json_object_already_are_taken(server, provider):
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}}
    server.script(answer(completion({"role": "assistant", "tool_calls": [call]})))
    assert step_of(provider, prompt("Hello"), "complete").tool_calls() == (
        ToolCall(id="c", name="f", arguments={"x": 1}),
    )


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"choices": []},
        {"choices": [{"finish_reason": "stop"}]},
        {"choices": [{"message": {"content": ["list"]}, "finish_reason": "stop"}]},
        {"choices": [{"message": {"tool_calls": [{"id": "c"}]}, "finish_reason": "stop"}]},
        [],
        "text",
        None,
    ],
)
@pytest.mark.parametrize("way", ["complete", "acomplete"])
def test_an_answer_in_another_shape_is_a_failed_one(server, provider, way, body):
    server.script(answer(body, x_request_id="req_3"))
    with pytest.raises(ProviderUnavailable, match="cannot be read") as raised:
        ask(provider, prompt("Hello"), way)
    assert raised.value.request_id == "req_3"


@pytest.mark.parametrize("way", ["complete", "acomplete"])
def test_an_error_in_the_place_of_an_answer_is_a_failed_one(server, provider, way):
    server.script(answer({"error": {"code": 502, "type": "upstream", "message": "secret"}}))
    with pytest.raises(ProviderUnavailable, match=r"\(upstream\)") as raised:
        ask(provider, prompt("Hello"), way)
    assert "secret" not in str(raised.value)
