"""What is sent to the Chat Completions API."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from agent_memory.messages import (
    Message,
    RefusalPart,
    TextPart,
    ToolCall,
    ToolResult,
)
from agent_memory.providers.openai_chat import OpenAIChatProvider
from tests.providers.asking import (
    WAYS,
    WEATHER,
    ask,
    completing,
    completion,
    prompt,
    step_of,
    tool_call,
)
from tests.providers.scripted import ScriptedServer, answer

ASSISTANT = {"role": "assistant", "content": "Hello."}


@pytest.fixture
def provider(build: Callable[..., OpenAIChatProvider]) -> OpenAIChatProvider:
    return build(OpenAIChatProvider)


def sent(server: ScriptedServer, provider: OpenAIChatProvider, *messages: Any, **more: Any):
    """Ask once; return the body of the request."""
    server.script(answer(completion(ASSISTANT)))
    provider.complete(prompt(*messages, **more))
    return server.bodies[-1]


def test_instructions_are_the_first_system_message(server, provider):
    body = sent(server, provider, "Hello", instructions="Be kind.", max_output_tokens=20)
    assert body == {
        "model": "test-model",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Hello"},
        ],
        "max_tokens": 20,
        "stream": False,
    }
    assert server.paths == ["/v1/chat/completions"]


def test_a_history_is_sent_as_messages_in_order(server, provider):
    call = ToolCall(id="call_1", name="get_weather", arguments={"city": "Köln"})
    again = call.model_copy(update={"id": "call_2"})
    sent_call = tool_call("call_1", "get_weather", '{"city": "Köln"}')
    body = sent(
        server,
        provider,
        Message("system", "Rules."),
        Message("developer", "More rules."),
        "Weather?",
        Message("assistant", "Wait.", tool_calls=(call,)),
        Message("tool", "21 C", tool_call_id="call_1"),
        Message("assistant", (), tool_calls=(again,)),
        Message("tool", "22 C", tool_call_id="call_2"),
        Message("assistant", [TextPart(text="It is"), TextPart(text=" 22 C.")]),
        "Thanks.",
    )
    assert body["messages"] == [
        {"role": "system", "content": "Rules."},
        {"role": "developer", "content": "More rules."},
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": "Wait.", "tool_calls": [sent_call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "21 C"},
        {"role": "assistant", "content": None, "tool_calls": [{**sent_call, "id": "call_2"}]},
        {"role": "tool", "tool_call_id": "call_2", "content": "22 C"},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "It is"}, {"type": "text", "text": " 22 C."}],
        },
        {"role": "user", "content": "Thanks."},
    ]


def test_an_empty_answer_is_left_out_and_a_refusal_is_told_as_text(server, provider):
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
    assert [(message["role"], message["content"]) for message in body["messages"]] == [
        ("user", "One"),
        ("user", "Two"),
        ("user", "Three"),
        ("assistant", "No."),
        ("user", "Four"),
    ]


def test_a_tool_is_told_with_strict_said_explicitly(server, provider):
    function = {
        "name": "get_weather",
        "description": "Tell the weather.",
        "parameters": WEATHER.parameters,
        "strict": False,
    }
    body = sent(server, provider, "Hello", tools=(WEATHER,))
    assert body["tools"] == [{"type": "function", "function": function}]


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_the_usage_of_a_stream_is_asked_for_unless_the_settings_say_otherwise(server, build, way):
    for request, expected in (
        ({}, {"include_usage": True}),
        ({"stream_options": None}, None),
        ({"stream_options": {"other": True}}, {"other": True}),
    ):
        server.script(completing(way, completion(ASSISTANT)))
        ask(build(OpenAIChatProvider, request=request), prompt("Hello"), way)
        assert server.bodies[-1].get("stream_options") == expected


def test_request_defaults_are_merged_into_every_call(server, build):
    request = {"temperature": 0.5, "max_completion_tokens": 99, "tool_choice": "auto"}
    provider = build(OpenAIChatProvider, request=request)
    body = sent(server, provider, "Hello")
    assert (body["temperature"], body["max_completion_tokens"]) == (0.5, 99)
    assert "tool_choice" not in body
    body = sent(server, provider, "Hello", max_output_tokens=20, tools=(WEATHER,))
    assert body["max_completion_tokens"] == 20
    assert "max_tokens" not in body
    assert body["tool_choice"] == "auto"


@pytest.mark.parametrize("way", WAYS)
def test_a_model_that_refuses_max_tokens_is_told_the_limit_under_its_other_name(
    server, provider, way
):
    refused = {"message": "Use another.", "param": "max_tokens", "code": "unsupported_parameter"}
    server.script(
        answer({"error": refused}, 400),
        completing(way, completion(ASSISTANT)),
        completing(way, completion(ASSISTANT)),
    )
    for _ in range(2):
        assert step_of(provider, prompt("Hello", max_output_tokens=20), way).text == "Hello."
    limits = [(body.get("max_tokens"), body.get("max_completion_tokens")) for body in server.bodies]
    assert limits == [(20, None), (None, 20), (None, 20)]


def test_a_step_of_the_running_turn_is_echoed_with_its_reasoning(server, provider):
    message = {
        "role": "assistant",
        "content": None,
        "reasoning_content": "Hm.",
        "tool_calls": [tool_call("call_1", "get_weather", '{ "city":"P" }')],
    }
    server.script(answer(completion(message, "tool_calls")))
    step = provider.complete(prompt("Weather?")).step
    step = step.with_results({0: ToolResult(value={"c": 21})})
    result = {"role": "tool", "tool_call_id": "call_1", "content": '{"c": 21}'}
    body = sent(server, provider, "Weather?", steps=(step,))
    assert body["messages"][1:] == [message, result]

    body = sent(server, provider, "Weather?", steps=(step,), model="another")
    neutral = tool_call("call_1", "get_weather", '{"city": "P"}')
    assert body["messages"][1:] == [
        {"role": "assistant", "content": None, "tool_calls": [neutral]},
        result,
    ]


def test_arguments_that_are_no_json_object_are_kept_as_text_and_sent_as_json(server, provider):
    broken = [tool_call("call_1", "pay", '{"city": "', extra=1)]
    message = {"role": "assistant", "content": None, "tool_calls": broken}
    server.script(answer(completion(message, "tool_calls")))
    step = provider.complete(prompt("Pay.")).step
    assert step.tool_calls()[0].raw_arguments == '{"city": "'
    assert step.replay is not None
    answered = step.with_results({0: ToolResult(value="No JSON.", failed=True)})
    for told in (answered, answered.model_copy(update={"replay": None})):
        body = sent(server, provider, "Pay.", steps=(told,))
        (call,) = body["messages"][1]["tool_calls"]
        assert json.loads(call["function"]["arguments"]) == {"raw_arguments": '{"city": "'}


def test_lone_surrogates_are_escaped_and_everything_else_goes_verbatim(server, provider):
    text = "a\ud800b \0 \U0001f600 \uffff \\ud800 e\u0301"
    call = ToolCall(id="call_1", name="f", arguments={"k": text})
    body = sent(
        server,
        provider,
        text,
        Message("assistant", (), tool_calls=(call,)),
        Message("tool", text, tool_call_id="call_1"),
        instructions=text,
    )
    escaped = text.replace("\ud800", "\\ud800")
    system, user, assistant, tool = body["messages"]
    assert [message["content"] for message in (system, user, tool)] == [escaped] * 3
    assert json.loads(assistant["tool_calls"][0]["function"]["arguments"]) == {"k": escaped}
