"""A client that goes away while its answer is streamed: the turn ends, and is told of."""

from __future__ import annotations

import asyncio
import http.client
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest
import uvicorn
from asgiref.sync import async_to_sync
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import path

from agent_memory import Agent, RemembersConversations
from agent_memory.messages import ToolCall
from agent_memory.models import ConversationMessage
from agent_memory.responses import TextDelta
from agent_memory.sse import aevent_stream, event_stream
from agent_memory.stores.database import DatabaseConversationStore
from agent_memory.testing import ScriptedProvider, override_provider
from tests.faults.checker import faults_of_tables
from tests.faults.databases import PATIENCE
from tests.faults.operations import ADA
from tests.sse_visits import ASGIVisit, WSGIVisit

store = DatabaseConversationStore()


class Coach(RemembersConversations, Agent):
    label = "coach"

    def get_tools(self) -> list[Any]:
        return [act]


def act() -> str:
    return "done"


class Slow(ScriptedProvider):
    """Calls a tool, and never comes to the end of its answer: silent in a task, else babbling."""

    def stream(self, request: Any) -> Generator[Any, None, None]:
        while request.steps:
            yield TextDelta("Er. ")
            time.sleep(0.001)
        yield from super().stream(request)

    async def astream(self, request: Any) -> AsyncGenerator[Any, None]:
        if request.steps:
            await asyncio.Event().wait()
        async for item in super().astream(request):
            yield item


def coach() -> Coach:
    return Coach().continue_conversation("c", ADA)


async def achat(request: HttpRequest) -> HttpResponseBase:
    return await aevent_stream(request, coach().astream("b"))


def chat(request: HttpRequest) -> HttpResponseBase:
    return event_stream(request, coach().stream("b"))


urlpatterns = [path("achat/", achat), path("chat/", chat)]

pytestmark = pytest.mark.urls(__name__)


@pytest.fixture
def opened(shared: None) -> Iterator[None]:
    """A conversation whose next turn acts, and then takes its time."""
    call = ToolCall(id="call_1", name="act")
    with override_provider(Slow(["first", [call], "never"])):
        Coach().for_participant(ADA).prompt("a", conversation_id="c")
        yield


def is_recorded() -> bool:
    """Tell whether the turn stands there as failed, and holds nothing."""
    assert ConversationMessage.objects.get(status="failed").error_code == "TurnAbandoned"
    store.release(store.reserve("c"))
    assert faults_of_tables() == []
    return [message.text for message in store.load("c")][2:] == ["b", "", "done"]


def test_a_client_that_disconnects_ends_the_turn_of_an_async_view(opened: None) -> None:
    async def visit() -> None:
        async with ASGIVisit() as client:
            assert (await client.begin())[0] == 200
            while not (await client.part() or b"").startswith(b"event: tool_result"):
                pass

    async_to_sync(visit)()
    assert is_recorded()


def test_a_client_that_disconnects_ends_the_turn_of_a_sync_view(opened: None) -> None:
    client = WSGIVisit()
    parts = iter(client)
    while not next(parts).startswith(b"event: tool_result"):
        pass
    client.response.close()  # what a server does when it cannot write any more
    assert client.started[0] == 200
    assert is_recorded()


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def wsgiref_server() -> Iterator[tuple[int, str]]:
    """Serve one request; leave when the server is done with it."""
    with make_server("127.0.0.1", 0, WSGIHandler(), handler_class=Quiet) as server:
        thread = threading.Thread(target=server.handle_request, daemon=True)
        thread.start()
        yield server.server_port, "/chat/"
        thread.join(PATIENCE)
        assert not thread.is_alive()


@contextmanager
def uvicorn_server() -> Iterator[tuple[int, str]]:
    """Serve; leave when the server is done with every request."""
    config = uvicorn.Config(ASGIHandler(), port=0, lifespan="off", ws="none", log_config=None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until = time.monotonic() + PATIENCE
    while not server.started:
        assert time.monotonic() < until
        time.sleep(0.001)
    yield server.servers[0].sockets[0].getsockname()[1], "/achat/"
    server.should_exit = True
    thread.join(PATIENCE)
    assert not thread.is_alive()


@pytest.mark.parametrize("serve", [wsgiref_server, uvicorn_server])
def test_a_browser_that_closes_its_connection_to_a_real_server_ends_the_turn(
    opened: None, serve: Callable[[], AbstractContextManager[tuple[int, str]]]
) -> None:
    with serve() as (port, path):
        browser = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        browser.request("GET", path)
        with closing(browser), browser.getresponse() as response:
            assert response.headers["Content-Type"].startswith("text/event-stream")
            while not response.readline().startswith(b"event: tool_result"):
                pass
    assert is_recorded()
