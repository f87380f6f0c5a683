"""The clients: built when first needed, shared, closed with their loop, clear when they fail."""

from __future__ import annotations

import asyncio
import functools
import gc
import subprocess
import sys
import threading

import pytest
from asgiref.sync import async_to_sync

from agent_memory.exceptions import InvalidProvider
from agent_memory.messages import Message, ToolCall
from agent_memory.providers import build_provider
from agent_memory.providers.openai_chat import OpenAIChatProvider
from agent_memory.providers.openai_responses import OpenAIResponsesProvider
from agent_memory.responses import TextDelta
from tests.providers.asking import (
    TWO_WAYS,
    WAYS,
    WEATHER,
    ask,
    chunk,
    completing,
    completion,
    prompt,
    responding,
    response,
    said,
)
from tests.providers.conftest import BOTH, KEY
from tests.providers.scripted import events

HELLO = completion({"role": "assistant", "content": "Hello."})

both = pytest.mark.parametrize("kind", BOTH)
each_way = pytest.mark.parametrize("way", WAYS)


@pytest.fixture
def chat(build):
    return build(OpenAIChatProvider)


def test_the_app_and_its_providers_are_imported_without_openai():
    script = (
        "import sys, agent_memory, agent_memory.providers.openai_chat as chat, "
        "agent_memory.providers.openai_responses as responses;"
        "chat.OpenAIChatProvider(api_key='k'); responses.OpenAIResponsesProvider();"
        "sys.exit('openai' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@both
@each_way
def test_what_is_left_out_comes_from_the_environment(server, kind, way, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    script = (
        responding(way, response(said("Hello."))) if kind is BOTH[0] else completing(way, HELLO)
    )
    server.script(script)
    assert ask(kind(), prompt("Hello"), way)[1].step.text == "Hello."
    (headers,) = server.headers
    assert headers["authorization"] == "Bearer sk-from-environment"
    assert headers["openai-organization"] == "org-1"


@each_way
def test_the_options_are_the_arguments_of_the_client(server, build, way):
    server.script(completing(way, HELLO))
    provider = build(OpenAIChatProvider, organization="org-2", default_headers={"X-Team": "blue"})
    ask(provider, prompt("Hello"), way)
    (headers,) = server.headers
    assert (headers["openai-organization"], headers["x-team"]) == ("org-2", "blue")
    assert headers["authorization"] == f"Bearer {KEY}"


@both
def test_a_longer_history_costs_the_client_little(server, build, kind):
    answered = {
        OpenAIResponsesProvider: responding("complete", response(said("Hello."))),
        OpenAIChatProvider: completing("complete", HELLO),
    }[kind]
    provider = build(kind)
    short, long = (_history(count) for count in (1, 101))

    def functions_called(request):
        server.script(answered)
        count = 0

        def note(frame, event, argument):
            nonlocal count
            count += event == "call"

        sys.setprofile(note)
        try:
            provider.complete(request)
        finally:
            sys.setprofile(None)
        return count

    functions_called(long)  # what is done once only
    assert functions_called(long) - functions_called(short) < 90 * 100


def _history(turns):
    """Make a prompt after so many turns, each of a question, a call, its result and an answer."""
    messages = [Message("user", "What is the weather?")]
    for number in range(turns):
        call = ToolCall(id=f"call_{number}", name="get_weather", arguments={"city": "Paris"})
        messages += [
            Message("assistant", "", tool_calls=[call]),
            Message("tool", "Rain.", tool_call_id=call.id),
            Message("assistant", "It rains."),
            Message("user", "And now?"),
        ]
    return prompt(*messages, tools=(WEATHER,))


@both
@pytest.mark.parametrize("way", TWO_WAYS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"api_keyy": KEY}, "no option 'api_keyy'"),
        ({"_strict_response_validation": True}, "no option '_strict_response_validation'"),
        ({}, "OPENAI_API_KEY"),
        ({"api_key": ""}, "OPENAI_API_KEY"),
        ({"api_key": KEY + "\n"}, r'\["api_key"\] holds characters'),
        ({"api_key": KEY + " "}, r'\["api_key"\] holds characters'),
        ({"api_key": KEY + "\u00e9"}, r'\["api_key"\] holds characters'),
        ({"api_key": KEY, "base_url": "localhost:8080/v1"}, r'\["base_url"\] is no http'),
        ({"api_key": KEY, "base_url": "no address"}, r'\["base_url"\] is no http'),
        ({"api_key": KEY, "base_url": "http://localhost:port/v1"}, "OPENAI_BASE_URL"),
        ({"api_key": KEY, "max_retries": "many"}, "max_retries"),
        ({"api_key": KEY, "http_client": object()}, "http_client"),
        ({"api_key": KEY, "request": ["temperature"]}, r'\["request"\] is a dict'),
        ({"api_key": KEY, "request": {"extra_body": "top_k"}}, r"extra_body.* is a dict"),
        ({"api_key": KEY, "request": {"temprature": 1}}, "cannot set 'temprature'"),
        ({"api_key": KEY, "request": {"stream": True}}, "cannot set 'stream'"),
        ({"api_key": KEY, "request": {"model": "m"}}, "cannot set 'model'"),
    ],
)
def test_options_that_are_wrong_are_named_and_the_key_is_not(kind, way, options, message):
    with pytest.raises(InvalidProvider, match=message) as raised:
        ask(kind(**options), prompt("Hello"), way)
    assert KEY not in str(raised.value)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("name", ["previous_response_id", "conversation", "background"])
def test_state_at_the_provider_cannot_be_asked_for(name):
    provider = OpenAIResponsesProvider(api_key=KEY, request={name: "x"})
    with pytest.raises(InvalidProvider, match=f"cannot set '{name}'"):
        provider.complete(prompt("Hello"))


@pytest.mark.parametrize("name", ["audio", "modalities", "n", "functions"])
def test_answers_that_no_step_holds_cannot_be_asked_for(name):
    provider = OpenAIChatProvider(api_key=KEY, request={name: "x"})
    with pytest.raises(InvalidProvider, match=f"cannot set '{name}'"):
        provider.complete(prompt("Hello"))


def test_a_provider_is_built_of_its_setting(server):
    options = {"api_key": KEY, "base_url": server.url}
    path = "agent_memory.providers.openai_chat.OpenAIChatProvider"
    server.script(completing("complete", HELLO))
    assert build_provider(path, options).complete(prompt("Hello")).step.text == "Hello."


def test_the_sync_client_and_its_connection_are_shared(server, chat):
    server.script(*[completing("complete", HELLO)] * 3)
    for _ in range(3):
        chat.complete(prompt("Hello"))
    assert server.total == 1


def test_threads_share_one_client(server, chat, monkeypatch):
    import openai

    built = []
    original = openai.OpenAI.__init__

    @functools.wraps(original)
    def counting(self, **options):
        built.append(self)
        original(self, **options)

    monkeypatch.setattr(openai.OpenAI, "__init__", counting)
    server.script(*[completing("complete", HELLO)] * 8)
    texts, barrier = [], threading.Barrier(8)

    def work():
        barrier.wait()
        texts.append(chat.complete(prompt("Hello")).step.text)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["Hello."] * 8
    assert len(built) == 1


def test_calls_in_one_loop_share_a_connection(server, chat):
    server.script(*[completing("acomplete", HELLO)] * 3)

    async def thrice():
        for _ in range(3):
            await chat.acomplete(prompt("Hello"))

    asyncio.run(thrice())
    assert server.total == 1


def test_tasks_that_begin_together_share_one_client(server, chat):
    server.script(*[completing("acomplete", HELLO)] * 4)

    async def together():
        await asyncio.gather(*[chat.acomplete(prompt("Hello")) for _ in range(4)])
        assert len(chat._clients._async_clients) == 1

    asyncio.run(together())
    assert len(server.bodies) == 4


@pytest.mark.parametrize("way", ["acomplete", "astream"])
def test_each_loop_has_its_client_and_leaves_no_socket_open(server, chat, way):
    for number in range(3):
        server.script(completing(way, HELLO))
        assert ask(chat, prompt("Hello"), way)[1].step.text == "Hello."
        assert server.wait_for_connections(0), f"a connection of loop {number} is open"
    assert chat._clients._async_clients == {}


def test_async_to_sync_leaves_no_socket_open(server, chat):
    for _ in range(2):
        server.script(completing("acomplete", HELLO))
        assert async_to_sync(chat.acomplete)(prompt("Hello")).step.text == "Hello."
        assert server.wait_for_connections(0)


def test_loops_in_threads_do_not_disturb_each_other(server, chat):
    server.script(*[completing("acomplete", HELLO)] * 12)
    texts = []

    async def twice():
        texts.extend([(await chat.acomplete(prompt("Hello"))).step.text for _ in range(2)])

    threads = [threading.Thread(target=asyncio.run, args=(twice(),)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["Hello."] * 12
    assert server.wait_for_connections(0)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_loop_that_was_closed_without_shutting_down_is_forgotten(server, chat):
    server.script(completing("acomplete", HELLO), completing("acomplete", HELLO))
    loop = asyncio.new_event_loop()
    loop.run_until_complete(chat.acomplete(prompt("Hello")))
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    del loop
    ask(chat, prompt("Hello"), "acomplete")
    assert chat._clients._async_clients == {}
    gc.collect()


def held(kind):
    delta = {"type": "response.output_text.delta", "delta": "Hel"}
    return events(delta if kind is BOTH[0] else chunk({"content": "Hel"}), end="hold")


@both
def test_closing_a_stream_early_closes_its_connection(server, build, kind):
    server.script(held(kind))
    stream = build(kind).stream(prompt("Hello"))
    assert next(stream) == TextDelta("Hel")
    stream.close()
    assert server.wait_for_connections(0)
    assert server.hung_up.is_set()


@both
def test_closing_an_async_stream_early_closes_its_connection(server, build, kind):
    server.script(held(kind))

    async def read_one():
        stream = build(kind).astream(prompt("Hello"))
        assert await anext(stream) == TextDelta("Hel")
        await stream.aclose()
        assert await asyncio.to_thread(server.wait_for_connections, 0)

    asyncio.run(read_one())
    assert server.hung_up.is_set()


@both
def test_cancelling_an_async_stream_closes_its_connection(server, build, kind):
    server.script(held(kind))

    async def cancelled():
        seen = asyncio.Event()

        async def read():
            async for _ in build(kind).astream(prompt("Hello")):
                seen.set()

        task = asyncio.create_task(read())
        await seen.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.wait_for_connections, 0)

    asyncio.run(cancelled())


@both
def test_nothing_is_sent_before_a_stream_is_read(server, build, kind):
    build(kind).stream(prompt("Hello")).close()
    assert server.total == 0


@each_way
def test_own_http_clients_are_used(server, build, way):
    import httpx2

    made = []

    def make():
        made.append(httpx2.AsyncClient(headers={"X-Mine": "async"}))
        return made[-1]

    with httpx2.Client(headers={"X-Mine": "sync"}) as client:
        provider = build(OpenAIChatProvider, http_client=client, async_http_client=make)
        for _ in range(2):
            server.script(completing(way, HELLO))
            ask(provider, prompt("Hello"), way)
    mine = "async" if way in ("acomplete", "astream") else "sync"
    assert [headers["x-mine"] for headers in server.headers] == [mine] * 2
    assert all(client.is_closed for client in made)


@pytest.mark.parametrize("way", ["acomplete", "astream"])
def test_a_sync_http_client_is_not_silently_left_out_of_async_calls(build, way):
    import httpx2

    with httpx2.Client() as client:
        provider = build(OpenAIChatProvider, http_client=client)
        with pytest.raises(InvalidProvider, match="async_http_client"):
            ask(provider, prompt("Hello"), way)


@pytest.mark.parametrize("way", ["acomplete", "astream"])
def test_an_async_http_client_in_the_place_of_what_makes_one_is_refused(build, way):
    provider = build(OpenAIChatProvider, async_http_client=object())
    with pytest.raises(InvalidProvider, match=r"async_http_client.* is a callable"):
        ask(provider, prompt("Hello"), way)


@each_way
def test_a_key_may_be_a_function_that_is_asked_each_time(server, build, way):
    keys = iter(["sk-one", "sk-two"])
    provider = build(OpenAIChatProvider, api_key=lambda: next(keys))
    for _ in range(2):
        server.script(completing(way, HELLO))
        ask(provider, prompt("Hello"), way)
    given = [headers["authorization"] for headers in server.headers]
    assert given == ["Bearer sk-one", "Bearer sk-two"]
