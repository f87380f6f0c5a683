"""Whole turns over HTTP: what one API has begun goes on with the other, and nothing poisons it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from agent_memory import Agent, Message, RemembersConversations, tool
from agent_memory.messages import DocumentPart, ImagePart, Step, TextPart, ToolCall, ToolResult
from agent_memory.providers import Provider
from agent_memory.providers.openai_chat import OpenAIChatProvider
from agent_memory.providers.openai_responses import OpenAIResponsesProvider
from agent_memory.stores.inmemory import InMemoryConversationStore
from tests.providers.asking import (
    called,
    completing,
    completion,
    prompt,
    responding,
    response,
    said,
    step_of,
    tool_call,
)
from tests.providers.conftest import BOTH
from tests.providers.scripted import Answer, ScriptedServer, answer

both = pytest.mark.parametrize("kind", BOTH)

SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"q": "x"}}
REASONED = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Hm."}],
    "encrypted_content": "gAAAA=",
}
RESULT = '{"city": "Paris", "sky": "clear"}'


@pytest.fixture
def ran() -> list[str]:
    """The cities whose weather was asked for."""
    return []


@pytest.fixture
def coach(build: Callable[..., Provider], ran: list[str]) -> Callable[[type[Provider]], Agent]:
    """Build agents that share a store, each with a provider of its own."""

    @tool
    def get_weather(city: str) -> dict[str, str]:
        """Get the weather of a city."""
        ran.append(city)
        return {"city": city, "sky": "clear"}

    class Coach(RemembersConversations, Agent):
        model = "test-model"
        tools = [get_weather]
        conversation_id = "one"
        store = InMemoryConversationStore()

    return lambda kind: Coach(provider=build(kind))


def text_of(kind: type[Provider], text: str) -> Answer:
    if kind is OpenAIChatProvider:
        return answer(completion({"role": "assistant", "content": text}))
    return answer(response(said(text)))


def refusal_of(kind: type[Provider], text: str) -> Answer:
    if kind is OpenAIChatProvider:
        return answer(completion({"role": "assistant", "content": None, "refusal": text}))
    return answer(response(said(content=[{"type": "refusal", "refusal": text}])))


def call_of(kind: type[Provider], *ids: str, name: str = "get_weather", end: str = "") -> Answer:
    """Script reasoning, a search where it is hosted, and calls with the same arguments."""
    arguments = '{ "city": "Paris" }'
    if kind is OpenAIChatProvider:
        calls = [tool_call(call_id, name, arguments) for call_id in ids]
        message = {"role": "assistant", "content": None, "reasoning": "Hm.", "tool_calls": calls}
        return answer(completion(message, end or "tool_calls"))
    calls = [called(call_id, name, arguments) for call_id in ids]
    ended = {"status": "incomplete", "incomplete_details": {"reason": end}} if end else {}
    return answer(response(SEARCH, REASONED, *calls, **ended))


def history(server: ScriptedServer) -> list[dict[str, Any]]:
    body = server.bodies[-1]
    return body["messages"] if "messages" in body else body["input"]


def begin(server: ScriptedServer, agent: Agent, kind: type[Provider]) -> None:
    """Let one turn call a tool, and the next one be refused."""
    server.script(call_of(kind, "call_0"), text_of(kind, "Clear."), refusal_of(kind, "I will not."))
    agent.prompt("Weather?")
    agent.prompt("Steal.")


def test_a_conversation_of_the_responses_api_goes_on_with_chat_completions(server, coach, ran):
    begin(server, coach(OpenAIResponsesProvider), OpenAIResponsesProvider)
    server.script(text_of(OpenAIChatProvider, "Yes."))
    assert coach(OpenAIChatProvider).prompt("And now?").text == "Yes."
    assert history(server) == [
        {"role": "user", "content": "Weather?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [tool_call("call_0", "get_weather", '{"city": "Paris"}')],
        },
        {"role": "tool", "tool_call_id": "call_0", "content": RESULT},
        {"role": "assistant", "content": "Clear."},
        {"role": "user", "content": "Steal."},
        {"role": "assistant", "content": "I will not."},
        {"role": "user", "content": "And now?"},
    ]
    assert ran == ["Paris"]


def test_a_conversation_of_chat_completions_goes_on_with_the_responses_api(server, coach, ran):
    begin(server, coach(OpenAIChatProvider), OpenAIChatProvider)
    server.script(text_of(OpenAIResponsesProvider, "Yes."))
    assert coach(OpenAIResponsesProvider).prompt("And now?").text == "Yes."
    refusal = [{"type": "refusal", "refusal": "I will not."}]
    assert history(server) == [
        {"type": "message", "role": "user", "content": "Weather?"},
        {
            "type": "function_call",
            "call_id": "call_0",
            "name": "get_weather",
            "arguments": '{"city": "Paris"}',
        },
        {"type": "function_call_output", "call_id": "call_0", "output": RESULT},
        {"type": "message", "role": "assistant", "content": "Clear."},
        {"type": "message", "role": "user", "content": "Steal."},
        {"type": "message", "role": "assistant", "content": refusal},
        {"type": "message", "role": "user", "content": "And now?"},
    ]
    assert ran == ["Paris"]


@both
@pytest.mark.parametrize("then", BOTH)
def test_a_server_that_counts_its_calls_anew_in_each_answer_confuses_nothing(
    server, coach, ran, kind, then
):
    for provider in (kind, then, kind):
        server.script(
            call_of(provider, "call_0", "call_1"),
            call_of(provider, "call_0"),
            text_of(provider, "Clear."),
        )
        turn = coach(provider).prompt("Weather?").turn
        assert [call.result.value["city"] for call in turn.tool_calls()] == ["Paris"] * 3
    # The server itself refuses ids that come twice.
    assert len(ran) == 9


@both
@pytest.mark.parametrize("end", ["length", "content_filter"])
def test_the_calls_of_an_answer_that_was_cut_are_not_run_and_not_sent_back(
    server, coach, ran, kind, end
):
    told = "max_output_tokens" if (kind, end) == (BOTH[0], "length") else end
    server.script(call_of(kind, "call_0", end=told), text_of(kind, "Yes."))
    agent = coach(kind)
    turn = agent.prompt("Weather?").turn
    assert [step.finish_reason for step in turn.steps] == [end]
    assert [call.result for call in turn.tool_calls()] == [None]
    assert ran == []
    assert agent.prompt("And now?").text == "Yes."
    assert [item["content"] for item in history(server)] == ["Weather?", "And now?"]


def test_the_calls_beside_a_refusal_are_not_run(server, coach, ran):
    message = {"refusal": "No.", "tool_calls": [tool_call("call_0", "get_weather", "{}")]}
    server.script(answer(completion({"role": "assistant", "content": None, **message})))
    turn = coach(OpenAIChatProvider).prompt("Weather?").turn
    assert [step.finish_reason for step in turn.steps] == ["refusal"]
    refusal = said(content=[{"type": "refusal", "refusal": "No."}])
    server.script(answer(response(refusal, called("call_0", "get_weather", "{}"))))
    turn = coach(OpenAIResponsesProvider).prompt("Weather?").turn
    assert [step.finish_reason for step in turn.steps] == ["refusal"]
    assert ran == []


@both
@pytest.mark.parametrize("name", ["", None, "functions.get weather!", "x" * 99])
def test_a_call_of_a_tool_that_nobody_could_name_is_answered_and_sent_back(
    server, coach, ran, kind, name
):
    server.script(call_of(kind, "call_0", name=name), text_of(kind, "Sorry."), text_of(kind, "OK."))
    agent = coach(kind)
    (call,) = agent.prompt("Weather?").turn.tool_calls()
    assert call.name == (name or "")
    assert call.result.failed
    assert agent.prompt("And now?").text == "OK."
    assert ran == []


@both
def test_an_empty_answer_completes_the_turn_and_is_left_out_of_the_next(server, coach, kind):
    server.script(text_of(kind, ""), text_of(kind, "Yes."))
    agent = coach(kind)
    response = agent.prompt("Hello")
    assert (response.status, response.text) == ("completed", "")
    agent.prompt("And now?")
    assert [item["content"] for item in history(server)] == ["Hello", "And now?"]


@both
@pytest.mark.parametrize("then", BOTH)
def test_a_file_is_sent_with_its_turn_and_again_with_every_later_one(server, coach, kind, then):
    server.script(text_of(kind, "Seen."), text_of(then, "Yes."))
    picture = ImagePart(data=b"\x89PNG\r\n\x1a\n", media_type="image/png")
    coach(kind).prompt("See:", attachments=[picture])
    coach(then).prompt("And now?")
    for body in server.bodies:
        told = body["messages"] if "messages" in body else body["input"]
        assert "data:image/png;base64,iVBORw0KGgo=" in str(told[0]["content"])


@pytest.mark.parametrize("way", ["complete", "astream"])
@pytest.mark.parametrize(
    ("kind", "other", "part", "name"),
    [
        (*BOTH, DocumentPart(url="https://x.test/a.pdf"), "https://x.test/a.pdf"),
        (*BOTH, DocumentPart(url="https://x.test/a.pdf", file_name="a.pdf"), "a.pdf"),
        (*BOTH, ImagePart(file_id="file-1"), "file-1"),
    ],
)
def test_a_file_of_the_history_that_the_other_api_does_not_take_is_named_to_model_and_log(
    server, build, kind, other, part, name, way, caplog
):
    question = Message("user", [TextPart(text="See:"), part])
    asked = prompt(question, Message("assistant", "Seen."), "And now?")
    for provider in (kind, other):
        server.script(text_of(provider, "Yes.") if way == "complete" else streamed(provider))
        with caplog.at_level(logging.WARNING, logger="agent_memory"):
            assert step_of(build(provider), asked, way).text == "Yes."
    text = f"[Here stood a file of type {part.type} that you cannot see: {name}]"
    assert history(server)[0]["content"][1] == {"type": "text", "text": text}
    given = "url" if part.url else "file_id"
    (record,) = caplog.records
    assert (
        record.getMessage() == f"Not sent to test-model of openai_chat: 1 {part.type} by {given}."
    )


def streamed(kind: type[Provider]) -> Answer:
    if kind is OpenAIChatProvider:
        return completing("stream", completion({"role": "assistant", "content": "Yes."}))
    return responding("stream", response(said("Yes.")))


def paused_step(server: ScriptedServer, provider: Provider, kind: type[Provider]) -> Step:
    """Return a step as a store gives it back: one call answered, one with other arguments."""
    server.script(call_of(kind, "call_0", "call_1"))
    step = step_of(provider, prompt("Weather?"), "complete")
    step = step.with_results({0: ToolResult(value="clear"), 1: ToolResult(value="rain")})
    *items, edited = step.items
    assert isinstance(edited, ToolCall)
    edited = edited.model_copy(update={"edited": {"city": "Rome"}})
    step = step.model_copy(update={"items": (*items, edited)})
    return Step.model_validate_json(step.model_dump_json())


EDITED = 'A person changed the arguments to {"city": "Rome"}.\nrain'


@both
def test_a_paused_step_goes_back_with_its_own_blocks(server, build, kind, caplog):
    provider = build(kind)
    step = paused_step(server, provider, kind)
    server.script(text_of(kind, "Yes."))
    provider.complete(prompt("Weather?", steps=(step,)))
    *blocks, first, second = history(server)[1:]
    arguments = '{ "city": "Paris" }'
    if kind is OpenAIResponsesProvider:
        calls = [called(call_id, "get_weather", arguments) for call_id in ("call_0", "call_1")]
        assert blocks == [SEARCH, REASONED, *calls]
        assert (first["output"], second["output"]) == ("clear", EDITED)
    else:
        calls = [tool_call(call_id, "get_weather", arguments) for call_id in ("call_0", "call_1")]
        message = {"role": "assistant", "content": None, "tool_calls": calls, "reasoning": "Hm."}
        assert blocks == [message]
        assert (first["content"], second["content"]) == ("clear", EDITED)
    assert caplog.records == []


@both
@pytest.mark.parametrize("change", ["provider", "model"])
def test_a_paused_step_is_told_to_another_in_words_and_what_it_cannot_get_is_named(
    server, build, kind, change, caplog
):
    step = paused_step(server, build(kind), kind)
    (other,) = set(BOTH) - {kind} if change == "provider" else {kind}
    model = "another" if change == "model" else "test-model"
    server.script(text_of(other, "Yes."))
    with caplog.at_level(logging.WARNING, logger="agent_memory"):
        build(other).complete(prompt("Weather?", steps=(step,), model=model))
    told = str(history(server))
    assert EDITED in told.replace("\\n", "\n")
    assert '{"city": "Paris"}' in told
    assert "gAAAA" not in told
    assert "Hm." not in told
    kinds = "1 reasoning" + (", 1 web_search_call" if kind is OpenAIResponsesProvider else "")
    (record,) = caplog.records
    assert record.getMessage() == f"Not sent to {model} of {other.name}: {kinds}."


@both
def test_a_history_that_no_api_would_take_is_mended(server, build, kind):
    call = Message("assistant", "", tool_calls=(ToolCall(id="call_0", name="f"),))
    server.script(text_of(kind, "Yes."))
    build(kind).complete(
        prompt(
            Message("tool", "stray", tool_call_id="call_9"),
            "One",
            call,
            "Two",
            call,
            Message("tool", "two", tool_call_id="call_0"),
            "Three",
            Message("tool", "late", tool_call_id="call_0"),
        )
    )
    # The server itself refuses calls without results, strays, and ids that come twice.
    told = str(history(server))
    assert "stray" not in told
    assert told.index("late") < told.index("Two") < told.index("two")


@pytest.mark.parametrize("way", ["complete", "acomplete", "stream", "astream"])
def test_ids_of_the_running_turn_are_not_given_again(server, build, way):
    asked = prompt(
        Message("assistant", "", tool_calls=(ToolCall(id="call_0", name="f"),)),
        steps=(Step(items=(ToolCall(id="call_1", name="f", result=ToolResult()),)),),
    )
    calls = [tool_call(f"call_{number}", "f", "{}", extra=1) for number in range(3)]
    body = completion({"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls")
    server.script(completing(way, body))
    step = step_of(build(OpenAIChatProvider), asked, way)
    ids = [call.id for call in step.tool_calls()]
    assert not {"call_0", "call_1"} & set(ids)
    assert ids[2] == "call_2"
    output = [called(f"call_{number}", "f", "{}") for number in range(3)]
    server.script(responding(way, response(*output)))
    step = step_of(build(OpenAIResponsesProvider), asked, way)
    ids = [call.id for call in step.tool_calls()]
    assert not {"call_0", "call_1"} & set(ids)
    assert [block["call_id"] for block in step.replay.blocks] == ids
