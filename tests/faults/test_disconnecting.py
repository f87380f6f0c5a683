"""A client that goes away while its answer is streamed: the turn ends, and is told of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from asgiref.testing import ApplicationCommunicator
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpRequest, StreamingHttpResponse
from django.test import RequestFactory
from django.urls import path

from agent_memory import Agent, RemembersConversations
from agent_memory.messages import ToolCall
from agent_memory.models import ConversationMessage
from agent_memory.stores.database import DatabaseConversationStore
from agent_memory.testing import ScriptedProvider, override_provider
from tests.faults.checker import faults_of_tables
from tests.faults.databases import PATIENCE
from tests.faults.operations import ADA

store = DatabaseConversationStore()


class Coach(RemembersConversations, Agent):
    label = "coach"

    def get_tools(self) -> list[Any]:
        return [act]


def act() -> str:
    return "done"


class Slow(ScriptedProvider):
    """Calls a tool, and never comes to its answer in a task."""

    async def acomplete(self, request: Any) -> Any:
        if request.steps:
            await asyncio.Event().wait()
        return await super().acomplete(request)


def coach() -> Coach:
    return Coach().continue_conversation("c", ADA)


async def achat(request: HttpRequest) -> StreamingHttpResponse:
    async def lines() -> AsyncIterator[str]:
        async with coach().astream("b") as stream:
            async for event in stream:
                yield f"{type(event).__name__}\n"

    return StreamingHttpResponse(lines())


def chat(request: HttpRequest) -> StreamingHttpResponse:
    def lines() -> Iterator[str]:
        with coach().stream("b") as stream:
            for event in stream:
                yield f"{type(event).__name__}\n"

    return StreamingHttpResponse(lines())


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
    async def visit() -> list[str]:
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "path": "/achat/",
            "query_string": b"",
            "headers": [(b"host", b"testserver")],
        }
        client = ApplicationCommunicator(ASGIHandler(), scope)
        await client.send_input({"type": "http.request", "body": b""})
        assert (await client.receive_output(PATIENCE))["status"] == 200
        lines = []
        while lines[-1:] != ["ToolFinished\n"]:
            lines.append((await client.receive_output(PATIENCE))["body"].decode())
        await client.send_input({"type": "http.disconnect"})
        await client.wait(PATIENCE)
        return lines

    assert async_to_sync(visit)()[0] == "Started\n"
    assert is_recorded()


def test_a_client_that_disconnects_ends_the_turn_of_a_sync_view(opened: None) -> None:
    started: list[str] = []
    environ = RequestFactory().get("/chat/").environ
    response: Any = WSGIHandler()(environ, lambda status, headers: started.append(status))
    lines = iter(response)
    while next(lines) != b"ToolFinished\n":
        pass
    response.close()  # what a server does when it cannot write any more
    assert started == ["200 OK"]
    assert is_recorded()
