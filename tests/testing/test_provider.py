"""The scripted provider answers as told, says what it was asked, and lets a test look inside."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from asgiref.sync import async_to_sync

from agent_memory import titles
from agent_memory.exceptions import ProviderUnavailable
from agent_memory.messages import (
    Message,
    ProviderToolCall,
    Reasoning,
    RefusalPart,
    Step,
    TextPart,
    ToolCall,
    Usage,
)
from agent_memory.providers import Provider, ProviderReply, ProviderRequest
from agent_memory.responses import ReasoningDelta, RefusalDelta, TextDelta
from agent_memory.testing import Answer, ScriptedProvider, ScriptExhausted, Title, calls
from agent_memory.testing import provider as provider_module
from agent_memory.testing.descriptions import request_lines

CALL = ToolCall(id="call-1", name="look", arguments={"at": "sky"})
USAGE = Usage(input_tokens=5, output_tokens=2)


def request(prompt: str = "Hello", **fields) -> ProviderRequest:
    return ProviderRequest(model="test-model", messages=(Message("user", prompt),), **fields)


TITLE = request(instructions=titles.INSTRUCTIONS)


def complete(provider: Provider, asked: ProviderRequest) -> ProviderReply:
    return provider.complete(asked)


def acomplete(provider: Provider, asked: ProviderRequest) -> ProviderReply:
    return async_to_sync(provider.acomplete)(asked)


def stream(provider: Provider, asked: ProviderRequest) -> ProviderReply:
    return list(provider.stream(asked))[-1]


def astream(provider: Provider, asked: ProviderRequest) -> ProviderReply:
    async def collect():
        return [event async for event in provider.astream(asked)]

    return async_to_sync(collect)()[-1]


@pytest.fixture(params=[complete, acomplete, stream, astream], ids=lambda way: way.__name__)
def ask(request):
    return request.param


def read_stream(provider: Provider, asked: ProviderRequest, seen: list) -> None:
    seen.extend(provider.stream(asked))


def aread_stream(provider: Provider, asked: ProviderRequest, seen: list) -> None:
    async def read():
        nonlocal seen
        async for item in provider.astream(asked):
            seen += (item,)

    async_to_sync(read)()


both_streams = pytest.mark.parametrize("read", [read_stream, aread_stream])


def step(*items, finish_reason="stop") -> Step:
    return Step(
        items=items,
        finish_reason=finish_reason,
        usage=USAGE,
        provider="scripted",
        model="test-model",
    )


@pytest.mark.parametrize(
    ("reply", "wanted"),
    [
        ("Hello", step(TextPart(text="Hello"))),
        ("", step(TextPart(text=""))),
        (CALL, step(CALL, finish_reason="tool_calls")),
        ([CALL, CALL], step(CALL, CALL, finish_reason="tool_calls")),
        (["Wait.", CALL], step(TextPart(text="Wait."), CALL, finish_reason="tool_calls")),
        ((Reasoning(text="Hm"), "Hi"), step(Reasoning(text="Hm"), TextPart(text="Hi"))),
        (RefusalPart(text="No"), step(RefusalPart(text="No"), finish_reason="refusal")),
        (Answer("Sto", "red"), step(TextPart(text="Stored"))),
        (ProviderToolCall(name="search"), step(ProviderToolCall(name="search"))),
        ([], step()),
        (Step(finish_reason="length"), Step(finish_reason="length")),
        (lambda asked: asked.messages[-1].text, step(TextPart(text="Hello"))),
        (lambda asked: lambda again: [CALL], step(CALL, finish_reason="tool_calls")),
    ],
)
def test_a_reply_is_text_calls_a_step_or_a_function_of_the_request(ask, reply, wanted):
    assert ask(ScriptedProvider([reply], usage=USAGE), request()) == ProviderReply(wanted)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (ProviderUnavailable("Overload."), ProviderUnavailable),
        (TimeoutError, TimeoutError),
        (lambda asked: ValueError("late"), ValueError),
    ],
)
def test_a_reply_that_is_an_error_is_raised(ask, reply, error):
    provider = ScriptedProvider([reply, "Now."])
    with pytest.raises(error):
        ask(provider, request())
    assert ask(provider, request()).step.text == "Now."


def test_replies_come_in_the_order_of_the_script_and_requests_are_kept(ask):
    provider = ScriptedProvider(["one", "two"])
    provider.extend(["three"])
    asked = [request(f"{number}") for number in range(3)]
    assert [ask(provider, each).step.text for each in asked] == ["one", "two", "three"]
    assert provider.requests == asked
    provider.assert_exhausted()


def test_a_request_beyond_the_script_is_an_error_that_counts(ask):
    provider = ScriptedProvider(["one"])
    ask(provider, request())
    with pytest.raises(ScriptExhausted, match="asked for reply 2, and its script has 1") as caught:
        ask(provider, request("surplus"))
    assert isinstance(caught.value, AssertionError)
    assert "surplus" in str(caught.value)
    assert len(provider.requests) == 1
    with pytest.raises(ScriptExhausted, match="asked for reply 1, and its script has 0"):
        ask(ScriptedProvider(), request())


def test_a_request_beyond_the_script_is_kept_and_told_with_what_came_before():
    provider = ScriptedProvider(["one"])
    provider.complete(request("Hi"))
    with pytest.raises(ScriptExhausted) as caught:
        provider.complete(request("surplus"))
    assert provider.unexpected == [request("surplus")]
    assert str(caught.value).splitlines() == [
        "The provider was asked for reply 2, and its script has 1:",
        *request_lines(request("surplus")),
        "Before it was asked: 'Hi'",
    ]


def test_replies_that_nobody_asked_for_can_be_asserted():
    provider = ScriptedProvider(["one", "two", "three"])
    provider.complete(request("Hi"))
    with pytest.raises(AssertionError, match=r"2 of 3 scripted replies were not used.*'two'.*'Hi'"):
        provider.assert_exhausted()
    with pytest.raises(AssertionError, match="was asked: nothing"):
        ScriptedProvider(["one"]).assert_exhausted()
    ScriptedProvider().assert_exhausted()


def test_a_single_text_is_no_script():
    with pytest.raises(TypeError, match="list of replies"):
        ScriptedProvider("Hello")


def test_it_is_a_provider_with_the_options_of_one():
    provider = ScriptedProvider([], timeout=5)
    assert isinstance(provider, Provider)
    assert (provider.name, provider.options) == ("scripted", {"timeout": 5})


# Streams.


def test_a_stream_gives_the_pieces_of_the_reply_and_then_the_reply():
    items = (Reasoning(text="Hm  so"), TextPart(text=" Hello\n you "), CALL, RefusalPart(text="No"))
    provider = ScriptedProvider([Step(items=items)])
    assert list(provider.stream(request())) == [
        *(ReasoningDelta("Hm  "), ReasoningDelta("so")),
        *(TextDelta(" "), TextDelta("Hello\n "), TextDelta("you ")),
        RefusalDelta("No"),
        ProviderReply(Step(items=items)),
    ]


@pytest.mark.parametrize("text", ["", " ", "a", " a", "a b  c\n\nd ", "\u3000x\u3000"])
def test_the_pieces_of_a_text_are_the_text(text):
    *events, reply = ScriptedProvider([text]).stream(request())
    assert "".join(event.text for event in events) == text == reply.step.text


def test_a_stream_that_nobody_reads_asks_nothing():
    provider = ScriptedProvider(["Hello"])
    provider.stream(request())
    provider.astream(request())
    assert provider.requests == []
    assert not provider.asked.is_set()


@both_streams
def test_a_stream_that_breaks_off_gives_its_pieces_and_then_the_error(read):
    provider = ScriptedProvider([Answer("Sto", "red", ProviderUnavailable("Gone."))])
    seen = []
    with pytest.raises(ProviderUnavailable, match=r"Gone\."):
        read(provider, request(), seen)
    assert seen == [TextDelta("Sto"), TextDelta("red")]


# Calls.


@pytest.mark.parametrize("way", [complete, stream], ids=lambda way: way.__name__)
def test_calls_without_an_id_are_numbered_through_the_script(way):
    provider = ScriptedProvider(
        [calls("look", CALL), ["Again.", *calls("look")], Answer(*calls("look", "look"))]
    )
    ids = [[call.id for call in way(provider, request()).step.tool_calls()] for _ in range(3)]
    assert ids == [["call-1", "call-1"], ["call-2"], ["call-3", "call-4"]]


# Titles.


def test_a_title_takes_no_reply_of_the_script(ask):
    provider = ScriptedProvider(["Hello"], title="Greetings")
    assert ask(provider, TITLE).step.text == "Greetings"
    assert ask(provider, request()).step.text == "Hello"
    assert (provider.title_requests, provider.requests) == ([TITLE], [request()])
    provider.assert_exhausted()


def test_titles_of_the_script_are_given_to_one_draft_each(ask):
    provider = ScriptedProvider([Title("Greetings"), "Hello", Title(["More"])], title="Usual")
    assert [ask(provider, TITLE).step.text for _ in range(3)] == ["Greetings", "More", "Usual"]
    assert provider.replies == ["Hello"]


def test_without_a_title_the_draft_fails(ask):
    provider = ScriptedProvider()
    with pytest.raises(ProviderUnavailable):
        ask(provider, TITLE)
    assert provider.title_requests == [TITLE]


# Threads, and turns that are running.


def test_threads_share_a_script_without_using_a_reply_twice():
    provider = ScriptedProvider([f"{number}" for number in range(200)])
    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(provider.complete, [request()] * 200))
    assert sorted(int(reply.step.text) for reply in replies) == list(range(200))
    provider.assert_exhausted()


def test_a_gate_holds_replies_back_until_it_is_opened():
    gate = threading.Event()
    provider = ScriptedProvider(["Hello"], gate=gate)
    replies = []
    thread = threading.Thread(target=lambda: replies.append(provider.complete(request())))
    thread.start()
    assert provider.asked.wait(10)
    assert (provider.requests, replies) == ([request()], [])
    gate.set()
    thread.join(10)
    assert [reply.step.text for reply in replies] == ["Hello"]


def test_a_gate_blocks_no_event_loop():
    gate = threading.Event()
    provider = ScriptedProvider(["Hello"], gate=gate)

    async def ask_and_open():
        asked = asyncio.create_task(provider.acomplete(request()))
        assert await asyncio.to_thread(provider.asked.wait, 10)
        assert not asked.done()
        gate.set()
        return await asked

    assert asyncio.run(ask_and_open()).step.text == "Hello"


def test_a_call_that_waits_at_a_gate_can_be_cancelled():
    provider = ScriptedProvider(["Hello"], gate=threading.Event())

    async def ask_and_leave():
        asked = asyncio.create_task(provider.acomplete(request()))
        assert await asyncio.to_thread(provider.asked.wait, 10)
        asked.cancel()
        await asyncio.wait([asked])
        return asked.cancelled()

    assert asyncio.run(ask_and_leave())


def test_a_gate_that_stays_shut_is_an_error(ask, monkeypatch):
    monkeypatch.setattr(provider_module, "GATE_SECONDS", 0.01)
    with pytest.raises(AssertionError, match="gate"):
        ask(ScriptedProvider(["Hello"], gate=threading.Event()), request())
