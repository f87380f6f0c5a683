"""What the answers of the Responses API become."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent_memory.exceptions import (
    ProviderRefused,
    ProviderUnavailable,
)
from agent_memory.messages import (
    ProviderToolCall,
    Reasoning,
    RefusalPart,
    Replay,
    Step,
    TextPart,
    ToolCall,
    Usage,
)
from agent_memory.providers.openai_responses import OpenAIResponsesProvider
from agent_memory.responses import ReasoningDelta, RefusalDelta, TextDelta
from tests.providers.asking import (
    TWO_WAYS,
    WAYS,
    ask,
    called,
    prompt,
    responding,
    response,
    said,
    step_of,
)
from tests.providers.scripted import answer, events

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


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_becomes_a_step_of_its_items_in_order(server, provider, way):
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"q": "x"}}
    cited = said("See this.")
    cited["content"][0]["annotations"] = [{"type": "url_citation", "url": "https://x.test"}]
    output = [
        search,
        REASONED,
        said("Let me ", "look."),
        called("call_1", "get_weather", '{"city": "Paris"}'),
        cited,
        called("call_2", "get_time", ""),
    ]
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 8},
        "total_tokens": 30,
    }
    server.script(responding(way, response(*output, usage=usage), x_request_id="req_7"))
    _, reply = ask(provider, prompt("Hello"), way)
    assert reply.request_id == "req_7"
    assert reply.step == Step(
        items=(
            ProviderToolCall(name="web_search_call", data=search),
            Reasoning(text="The city\n\nis Paris."),
            TextPart(text="Let me "),
            TextPart(text="look."),
            ToolCall(id="call_1", name="get_weather", arguments={"city": "Paris"}),
            TextPart(
                text="See this.",
                provider_metadata={"annotations": cited["content"][0]["annotations"]},
            ),
            ToolCall(id="call_2", name="get_time", arguments={}),
        ),
        finish_reason="tool_calls",
        usage=Usage(input_tokens=10, output_tokens=20, cached_tokens=4, reasoning_tokens=8),
        provider="openai_responses",
        model="test-model-2026",
        replay=Replay(
            provider="openai_responses",
            model="test-model",
            blocks=(*output[:5], {**output[5], "arguments": "{}"}),
        ),
    )


@pytest.mark.parametrize("way", TWO_WAYS)
def test_an_answer_of_text_alone_has_nothing_to_replay(server, provider, way):
    server.script(responding(way, response(said("Hello."), usage=None)))
    step = step_of(provider, prompt("Hello"), way)
    assert step.items == (TextPart(text="Hello."),)
    assert (step.finish_reason, step.usage, step.replay) == ("stop", Usage(), None)


HOSTED = [
    {"type": "web_search_call", "id": "ws_1", "action": {"query": "x"}},
    {"type": "file_search_call", "id": "fs_1", "queries": ["x"], "results": None},
    {"type": "code_interpreter_call", "id": "ci_1", "code": "1", "outputs": []},
    {"type": "image_generation_call", "id": "ig_1", "result": "iVBORw0="},
    {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []},
    {"type": "mcp_call", "id": "mcp_1", "name": "roll", "arguments": "{}", "output": "4"},
    {"type": "tool_search_call", "id": "ts_1", "execution": "server", "arguments": {}},
    {"type": "shell_call", "id": "sh_1", "call_id": "c1", "action": {"commands": ["ls"]}},
    {"type": "shell_call_output", "id": "sho_1", "call_id": "c1", "output": []},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA="},
]


@pytest.mark.parametrize("way", TWO_WAYS)
def test_what_the_provider_runs_itself_is_kept_as_it_came_and_in_its_place(server, provider, way):
    server.script(responding(way, response(*HOSTED[:5], said("Look."), *HOSTED[5:])))
    step = step_of(provider, prompt("Hello"), way)
    kept = [ProviderToolCall(name=item["type"], data=item) for item in HOSTED]
    assert step.items == (*kept[:5], TextPart(text="Look."), *kept[5:])
    assert step.finish_reason == "stop"


@pytest.mark.parametrize("way", TWO_WAYS)
def test_citations_and_probabilities_stay_with_the_text(server, provider, way):
    more = {
        "annotations": [
            {"type": "url_citation", "url": "https://x.test"},
            {"type": "file_citation", "file_id": "file-1", "index": 3},
        ],
        "logprobs": [{"token": "See", "logprob": -0.5}],
    }
    part = {"type": "output_text", "text": "See this.", **more}
    server.script(responding(way, response(said(content=[part]))))
    step = step_of(provider, prompt("Hello"), way)
    assert step.items == (TextPart(text="See this.", provider_metadata=more),)


@pytest.mark.parametrize(
    "usage",
    [
        {},
        [1],
        {"input_tokens": None, "output_tokens": "many", "input_tokens_details": [1]},
        {"input_tokens": -5, "output_tokens": 1.5, "output_tokens_details": None},
    ],
)
@pytest.mark.parametrize("way", TWO_WAYS)
def test_a_usage_that_is_no_count_is_zero_and_loses_no_answer(server, provider, way, usage):
    server.script(responding(way, response(said("Hello."), usage=usage)))
    step = step_of(provider, prompt("Hello"), way)
    assert (step.text, step.usage) == ("Hello.", Usage())


@pytest.mark.parametrize("way", TWO_WAYS)
def test_an_empty_normal_answer_is_a_finished_step_without_items(server, provider, way):
    server.script(responding(way, response(said(""))))
    step = step_of(provider, prompt("Hello"), way)
    assert (step.items, step.finish_reason) == ((), "stop")


@pytest.mark.parametrize("way", TWO_WAYS)
def test_a_refusal_is_a_part_and_a_finish_reason(server, provider, way):
    refusal = said(content=[{"type": "refusal", "refusal": "I will not."}])
    server.script(responding(way, response(refusal)))
    step = step_of(provider, prompt("Hello"), way)
    assert step.items == (RefusalPart(text="I will not."),)
    assert step.finish_reason == "refusal"


@pytest.mark.parametrize(
    ("reason", "finish_reason"),
    [("max_output_tokens", "length"), ("content_filter", "content_filter")],
)
@pytest.mark.parametrize("way", TWO_WAYS)
def test_an_answer_that_was_cut_says_why(server, provider, way, reason, finish_reason):
    body = response(said("Half"), status="incomplete", incomplete_details={"reason": reason})
    server.script(responding(way, body))
    step = step_of(provider, prompt("Hello"), way)
    assert (step.text, step.finish_reason) == ("Half", finish_reason)


@pytest.mark.parametrize("by_setting", [True, False])
def test_an_answer_as_long_as_the_limit_is_cut_whatever_the_server_says(server, build, by_setting):
    request = {"max_output_tokens": 7} if by_setting else {}
    provider = build(OpenAIResponsesProvider, request=request)
    asked = prompt("Hello", max_output_tokens=None if by_setting else 7)
    for item, normal in ((said("Hello."), "stop"), (called("c", "f", "{}"), "tool_calls")):
        for tokens, finish_reason in ((6, normal), (7, "length")):
            server.script(answer(response(item, usage={"output_tokens": tokens})))
            assert provider.complete(asked).step.finish_reason == finish_reason


@pytest.mark.parametrize("way", TWO_WAYS)
def test_an_answer_that_was_cut_for_an_unknown_reason_is_a_failed_one(server, provider, way):
    body = response(said("Half"), status="incomplete", incomplete_details={"reason": "moonrise"})
    server.script(responding(way, body))
    with pytest.raises(ProviderUnavailable, match=r"incomplete \(moonrise\)"):
        ask(provider, prompt("Hello"), way)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("server_error", ProviderUnavailable),
        ("rate_limit_exceeded", ProviderUnavailable),
        (None, ProviderUnavailable),
        ("invalid_prompt", ProviderRefused),
    ],
)
@pytest.mark.parametrize("way", TWO_WAYS)
def test_a_failed_response_is_an_error(server, provider, way, code, error):
    failed = {"code": code, "message": "secret words"} if code else None
    body = response(said("Half"), status="failed", error=failed)
    server.script(responding(way, body, x_request_id="req_9"))
    with pytest.raises(error) as raised:
        ask(provider, prompt("Hello"), way)
    assert raised.value.request_id == "req_9"
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("status", ["in_progress", "queued", "cancelled", None])
@pytest.mark.parametrize("way", ["complete", "acomplete"])
def test_a_plain_answer_that_is_not_finished_is_a_failed_one(server, provider, way, status):
    server.script(answer(response(said("Half"), status=status)))
    with pytest.raises(ProviderUnavailable, match="broke off"):
        ask(provider, prompt("Hello"), way)


@pytest.mark.parametrize(
    "item",
    [
        {"type": "mcp_approval_request", "id": "mcpr_1", "name": "pay", "arguments": "{}"},
        {"type": "computer_call", "id": "cc_1", "call_id": "c1", "action": {}},
        {"type": "shell_call", "id": "sh_1", "call_id": "c1", "action": {"commands": ["ls"]}},
        {"type": "tool_search_call", "id": "ts_1", "call_id": "c1", "execution": "client"},
    ],
)
@pytest.mark.parametrize("way", TWO_WAYS)
def test_an_item_that_waits_for_an_answer_is_refused_by_name(server, provider, way, item):
    server.script(responding(way, response(item, called("call_1", "f", "{}"))))
    with pytest.raises(ProviderRefused, match=item["type"]):
        ask(provider, prompt("Hello"), way)


@pytest.mark.parametrize("way", TWO_WAYS)
def test_missing_and_repeated_call_ids_are_replaced_and_echoed_as_replaced(server, provider, way):
    body = response(
        called(None, "one", "{}"),
        called("", "two", "{}"),
        called("same", "three", "{}"),
        called("same", "four", "{}"),
    )
    server.script(responding(way, body))
    step = step_of(provider, prompt("Hello"), way)
    ids = [call.id for call in step.tool_calls()]
    assert len(set(ids)) == 4
    assert all(ids)
    assert ids[2] == "same"
    assert step.replay is not None
    assert [block["call_id"] for block in step.replay.blocks] == ids


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_stream_yields_its_deltas_as_they_come(server, provider, way):
    refusal = said(content=[{"type": "refusal", "refusal": "No."}])
    server.script(
        events(
            {"type": "response.created", "response": {}},
            {"type": "response.reasoning_summary_text.delta", "delta": "Hm"},
            {"type": "response.reasoning_text.delta", "delta": "m."},
            {"type": "response.output_text.delta", "delta": "He"},
            {"type": "response.output_text.delta", "delta": "llo."},
            {"type": "response.refusal.delta", "delta": "No."},
            {"type": "response.brand_new_event", "delta": 1},
            {"type": "response.completed", "response": response(said("Hello."), refusal)},
        )
    )
    seen, reply = ask(provider, prompt("Hello"), way)
    assert seen == [
        ReasoningDelta("Hm"),
        ReasoningDelta("m."),
        TextDelta("He"),
        TextDelta("llo."),
        RefusalDelta("No."),
    ]
    assert reply.step.items == (TextPart(text="Hello."), RefusalPart(text="No."))
    assert reply.step.finish_reason == "refusal"


def test_the_deltas_of_a_summary_make_what_the_step_keeps(server, provider):
    deltas = [
        event
        for number, text in enumerate(("The city", "is Paris."))
        for event in (
            {"type": "response.reasoning_summary_part.added", "summary_index": number},
            {"type": "response.reasoning_summary_text.delta", "delta": text},
        )
    ]
    server.script(events(*deltas, {"type": "response.completed", "response": response(REASONED)}))
    seen, reply = ask(provider, prompt("Hello"), "stream")
    assert reply.step.items == (Reasoning(text="".join(event.text for event in seen)),)


@pytest.mark.parametrize("indexed", [True, False])
def test_items_of_events_stand_in_where_the_last_event_has_none(server, provider, indexed):
    items = [said("One."), called("call_1", "f", "{}")]
    done = [{"type": "response.output_item.done", "item": item} for item in items]
    if indexed:
        done = [{**event, "output_index": index} for index, event in enumerate(done)][::-1]
    server.script(events(*done, {"type": "response.completed", "response": response()}))
    step = step_of(provider, prompt("Hello"), "stream")
    assert [item.type for item in step.items] == ["text", "tool_call"]


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_stream_without_a_last_event_is_a_failed_answer(server, provider, way):
    done = {"type": "response.output_item.done", "output_index": 0, "item": said("Hello.")}
    server.script(events({"type": "response.output_text.delta", "delta": "Hello."}, done))
    with pytest.raises(ProviderUnavailable, match="without a finish reason"):
        ask(provider, prompt("Hello"), way)


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_stream_that_says_error_is_a_failed_answer(server, provider, way):
    told = {"type": "error", "code": "server_error", "message": "secret words", "param": None}
    server.script(events({"type": "response.output_text.delta", "delta": "He"}, told))
    with pytest.raises(ProviderUnavailable, match=r"\(server_error\)") as raised:
        ask(provider, prompt("Hello"), way)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "body",
    [
        {"status": "completed"},
        {"status": "completed", "output": [{}]},
        {"status": "completed", "output": [{"type": "message", "content": [{"type": "new"}]}]},
        {"status": "completed", "output": [{"type": "message", "content": [None]}]},
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
