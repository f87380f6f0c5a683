"""What is sent to the Responses API."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from agent_memory.messages import (
    Message,
    RefusalPart,
    Step,
    TextPart,
    ToolCall,
    ToolResult,
)
from agent_memory.providers.openai_responses import OpenAIResponsesProvider
from tests.providers.asking import (
    WAYS,
    WEATHER,
    called,
    prompt,
    responding,
    response,
    said,
    step_of,
)
from tests.providers.scripted import ScriptedServer, answer

REASONED = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [
        {"type": "summary_text", "text": "The city"},
        {"type": "summary_text", "text": "is Paris."},
    ],
    "encrypted_content": "gAAAA\u00e9=",
    "odd": {"nested": [1, 2.5, None]},
}


@pytest.fixture
def provider(build: Callable[..., OpenAIResponsesProvider]) -> OpenAIResponsesProvider:
    return build(OpenAIResponsesProvider)


def sent(server: ScriptedServer, provider: OpenAIResponsesProvider, *messages: Any, **more: Any):
    """Ask once; return the body of the request."""
    server.script(answer(response(said("Yes."))))
    provider.complete(prompt(*messages, **more))
    return server.bodies[-1]


def test_a_request_is_stateless_and_asks_for_encrypted_reasoning(server, provider):
    assert sent(server, provider, "Hello", instructions="Be kind.", max_output_tokens=20) == {
        "model": "test-model",
        "instructions": "Be kind.",
        "input": [{"type": "message", "role": "user", "content": "Hello"}],
        "max_output_tokens": 20,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "stream": False,
    }
    assert server.paths == ["/v1/responses"]


def test_a_history_is_sent_as_input_items_in_order(server, provider):
    call = ToolCall(id="call_1", name="get_weather", arguments={"city": "Köln"})
    body = sent(
        server,
        provider,
        Message("system", "Rules."),
        Message("developer", "More rules."),
        "Weather?",
        Message("assistant", "Wait.", tool_calls=(call,)),
        Message("tool", "21 C", tool_call_id="call_1"),
        Message("assistant", [TextPart(text="It is"), TextPart(text=" 21 C.")]),
        Message("user", [TextPart(text="Thanks."), TextPart(text="Bye.")]),
    )
    assert body["input"] == [
        {"type": "message", "role": "system", "content": "Rules."},
        {"type": "message", "role": "developer", "content": "More rules."},
        {"type": "message", "role": "user", "content": "Weather?"},
        {"type": "message", "role": "assistant", "content": "Wait."},
        {
            "type": "function_call",
            "call_id": "call_1",
            "name": "get_weather",
            "arguments": '{"city": "Köln"}',
        },
        {"type": "function_call_output", "call_id": "call_1", "output": "21 C"},
        {
            "type": "message",
            "role": "assistant",
            "content": [
                {"type": "output_text", "text": "It is"},
                {"type": "output_text", "text": " 21 C."},
            ],
        },
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Thanks."},
                {"type": "input_text", "text": "Bye."},
            ],
        },
    ]


def test_an_empty_answer_is_left_out_and_a_refusal_is_told_as_one(server, provider):
    body = sent(
        server,
        provider,
        "One",
        Message("assistant", ""),
        "Two",
        Message("assistant", ()),
        "Three",
        Message("assistant", [RefusalPart(text="No.")]),
        "Four",
    )
    assert body["input"] == [
        {"type": "message", "role": "user", "content": "One"},
        {"type": "message", "role": "user", "content": "Two"},
        {"type": "message", "role": "user", "content": "Three"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "refusal", "refusal": "No."}],
        },
        {"type": "message", "role": "user", "content": "Four"},
    ]


def test_a_tool_is_told_with_strict_said_explicitly(server, provider):
    assert sent(server, provider, "Hello", tools=(WEATHER,))["tools"] == [
        {
            "type": "function",
            "name": "get_weather",
            "description": "Tell the weather.",
            "parameters": WEATHER.parameters,
            "strict": False,
        }
    ]


def test_request_defaults_are_merged_and_none_leaves_an_argument_out(server, build):
    hosted = {"type": "web_search"}
    provider = build(
        OpenAIResponsesProvider,
        request={
            "temperature": 0.5,
            "store": None,
            "include": ["web_search_call.action.sources"],
            "tools": [hosted],
            "max_output_tokens": 99,
            "extra_body": {"top_k": 3},
        },
    )
    body = sent(server, provider, "Hello", tools=(WEATHER,))
    assert (body["temperature"], body["top_k"], body["max_output_tokens"]) == (0.5, 3, 99)
    assert "store" not in body
    assert body["include"] == ["web_search_call.action.sources", "reasoning.encrypted_content"]
    assert [tool["type"] for tool in body["tools"]] == ["web_search", "function"]
    assert sent(server, provider, "Hello", max_output_tokens=20)["max_output_tokens"] == 20
    provider = build(OpenAIResponsesProvider, request={"include": None})
    assert "include" not in sent(server, provider, "Hello")


def test_arguments_about_tools_are_left_out_of_a_request_without_tools(server, build):
    request = {"tool_choice": "required", "parallel_tool_calls": False}
    provider = build(OpenAIResponsesProvider, request=request)
    assert request.keys() <= sent(server, provider, "Hello", tools=(WEATHER,)).keys()
    assert not request.keys() & sent(server, provider, "Hello").keys()


@pytest.mark.parametrize("way", WAYS)
def test_a_model_without_encrypted_reasoning_is_asked_without_it_from_then_on(
    server, provider, way
):
    refused = {
        "message": "Encrypted content is not supported with this model.",
        "type": "invalid_request_error",
        "param": "include",
        "code": None,
    }
    server.script(
        answer({"error": refused}, 400),
        responding(way, response(said("One."))),
        responding(way, response(said("Two."))),
        responding(way, response(said("Three."))),
    )
    assert step_of(provider, prompt("Hello"), way).text == "One."
    assert step_of(provider, prompt("Hello"), way).text == "Two."
    assert step_of(provider, prompt("Hello", model="another"), way).text == "Three."
    includes = [body.get("include") for body in server.bodies]
    encrypted = ["reasoning.encrypted_content"]
    assert includes == [encrypted, None, None, encrypted]


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize(
    "arguments",
    [
        '{"city": "',
        "[1]",
        '"text"',
        '{"a": NaN}',
        '{"a": 1e999}',
        '{"a":' + "[" * 150 + "]" * 150 + "}",
        "[" * 100_000,
        '{"a": ' + "9" * 5000 + "}",
    ],
)
@pytest.mark.parametrize("way", ["complete", "stream"])
def test_arguments_that_are_no_json_object_are_kept_as_text_and_echoed_as_json(
    server, provider, way, arguments
):
    server.script(responding(way, response(called("call_1", "pay", arguments))))
    step = step_of(provider, prompt("Hello"), way)
    (call,) = step.tool_calls()
    assert (call.arguments, call.raw_arguments) == ({}, arguments)

    answered = step.with_results({0: ToolResult(value="No JSON.", failed=True)})
    body = sent(server, provider, "Hello", steps=(answered,))
    assert json.loads(body["input"][1]["arguments"]) == {"raw_arguments": arguments}
    neutral = answered.model_copy(update={"replay": None})
    body = sent(server, provider, "Hello", steps=(neutral,))
    assert json.loads(body["input"][1]["arguments"]) == {"raw_arguments": arguments}


def reasoned_step(provider: OpenAIResponsesProvider, server: ScriptedServer) -> Step:
    server.script(answer(response(REASONED, called("call_1", "get_weather", '{ "city":"P" }'))))
    step = provider.complete(prompt("Weather?")).step
    return step.with_results({0: ToolResult(value={"c": 21})})


def test_a_step_of_the_running_turn_is_echoed_as_it_came(server, provider):
    step = reasoned_step(provider, server)
    body = sent(server, provider, "Weather?", steps=(step,))
    assert body["input"] == [
        {"type": "message", "role": "user", "content": "Weather?"},
        REASONED,
        called("call_1", "get_weather", '{ "city":"P" }'),
        {"type": "function_call_output", "call_id": "call_1", "output": '{"c": 21}'},
    ]


@pytest.mark.parametrize("update", [{"provider": "openai_chat"}, {"model": "another"}])
def test_opaque_blocks_never_cross_to_another_provider_or_model(server, provider, update):
    step = reasoned_step(provider, server)
    assert step.replay is not None
    foreign = step.model_copy(update={"replay": step.replay.model_copy(update=update)})
    body = sent(server, provider, "Weather?", steps=(foreign,))
    assert body["input"][1:] == [
        {
            "type": "function_call",
            "call_id": "call_1",
            "name": "get_weather",
            "arguments": '{"city": "P"}',
        },
        {"type": "function_call_output", "call_id": "call_1", "output": '{"c": 21}'},
    ]


@pytest.mark.parametrize("replayed", [True, False])
def test_a_call_without_a_result_is_told_as_interrupted(server, provider, replayed):
    step = reasoned_step(provider, server)
    step = step.model_copy(
        update={
            "items": (ToolCall(id="call_1", name="get_weather"),),
            "replay": step.replay if replayed else None,
        }
    )
    body = sent(server, provider, "Weather?", steps=(step,))
    assert "may or may not have run" in body["input"][-1]["output"]


def test_lone_surrogates_are_escaped_and_everything_else_goes_verbatim(server, provider):
    text = "a\ud800b \0 \U0001f600 \uffff \\ud800 e\u0301"
    call = ToolCall(id="call_1", name="f", arguments={"k\udfff": [text]})
    body = sent(
        server,
        provider,
        text,
        Message("assistant", (), tool_calls=(call,)),
        Message("tool", text, tool_call_id="call_1"),
        instructions=text,
    )
    escaped = text.replace("\ud800", "\\ud800")
    assert body["instructions"] == escaped
    assert body["input"][0]["content"] == escaped
    assert json.loads(body["input"][1]["arguments"]) == {"k\\udfff": [escaped]}
    assert body["input"][2]["output"] == escaped
