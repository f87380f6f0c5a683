"""The connection of a streamed answer: nothing holds events back, and who leaves ends the turn."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from django.test import AsyncRequestFactory, Client, RequestFactory

from agent_memory.flow import TurnAbandoned
from agent_memory.responses import Event, Started
from agent_memory.sse import aevent_stream, event_stream
from agent_memory.streams import AsyncAgentStream
from agent_memory.testing import ScriptedProvider
from tests.agents import Noting, scripted
from tests.flows import Gate, in_loop, until
from tests.sse_parsing import names
from tests.sse_visits import ASGIVisit, WSGIVisit, site

# Django's handlers look after old connections at each request.
pytestmark = [pytest.mark.urls("tests.sse_visits"), pytest.mark.django_db]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "django.middleware.http.ConditionalGetMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
]


@pytest.fixture
def middleware(settings: Any) -> None:
    settings.MIDDLEWARE = MIDDLEWARE


def test_middleware_of_a_wsgi_project_holds_no_event_back(middleware: None) -> None:
    gate = threading.Event()
    site.agent, site.options = Noting(provider=ScriptedProvider(["Hello"], gate=gate)), {}
    parts = iter(WSGIVisit(HTTP_ACCEPT_ENCODING="gzip"))
    assert names(next(parts)) == ["started"]
    gate.set()
    assert [names(part) for part in parts] == [["text_delta"], ["step"], ["finished"]]


def test_middleware_of_an_asgi_project_holds_no_event_back(middleware: None) -> None:
    gate = threading.Event()
    site.agent, site.options = Noting(provider=ScriptedProvider(["Hello"], gate=gate)), {}

    async def main() -> None:
        async with ASGIVisit(headers={"accept-encoding": "gzip"}) as client:
            await client.begin()
            assert names(await client.part() or b"") == ["started"]
            gate.set()
            parts = [await client.part() for _ in range(3)]
            told = [names(part or b"") for part in parts]
            assert told == [["text_delta"], ["step"], ["finished"]]
            assert await client.part() is None

    in_loop(main())


# Ends.


def silent() -> tuple[Noting, ScriptedProvider]:
    """Return an agent whose provider is asked, and does not answer."""
    provider = ScriptedProvider(["never"], gate=threading.Event())
    return Noting(provider=provider), provider


def is_abandoned(agent: Noting) -> bool:
    return isinstance(agent.outcome.error, TurnAbandoned)


@pytest.mark.parametrize("read", [0, 1, 2])
def test_a_wsgi_server_that_closes_the_response_ends_the_turn(read: int, middleware: None) -> None:
    agent = Noting(provider=scripted("one two three"))
    site.agent, site.options = agent, {}
    client = WSGIVisit()
    parts = iter(client)
    for _ in range(read):
        next(parts)
    client.response.close()
    assert is_abandoned(agent)


def test_a_response_that_has_no_body_ends_the_turn() -> None:
    agent, provider = silent()
    site.agent, site.options = agent, {}
    response = Client().head("/chat/")
    assert b"".join(response) == b""
    assert is_abandoned(agent)
    assert provider.requests == []


def test_a_client_that_leaves_while_the_model_is_silent_ends_the_turn(middleware: None) -> None:
    agent, provider = silent()
    site.agent, site.options = agent, {}

    async def main() -> None:
        async with ASGIVisit():
            await until(provider.asked)
        assert is_abandoned(agent)

    in_loop(main())


def test_a_client_that_leaves_before_the_first_event_gets_the_model_asked_nothing() -> None:
    gate, provider = Gate(), scripted("never")

    class Recalling(Noting):
        async def amessages(self) -> tuple[()]:
            await gate.await_()
            return ()

    site.agent, site.options = Recalling(provider=provider), {}

    async def main() -> None:
        async with ASGIVisit() as client:
            await until(gate.reached)
            client.left.set()
            await asyncio.sleep(0)
            gate.open()

    in_loop(main())
    assert provider.requests == []


@pytest.mark.parametrize("room", [1, 2], ids=["event", "heartbeat"])
def test_a_client_that_leaves_while_it_takes_nothing_ends_the_turn(
    room: int, middleware: None
) -> None:
    agent, _ = silent()
    site.agent, site.options = agent, {"heartbeat": 0.001}

    async def main() -> None:
        async with ASGIVisit(room=room) as client:
            await client.is_stuck.wait()
        assert is_abandoned(agent)

    in_loop(main())


def test_a_turn_is_ended_in_peace_however_often_its_task_is_cancelled() -> None:
    begun, may_end, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def events() -> AsyncGenerator[Event, None]:
        yield Started(None)
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            await may_end.wait()
            ended.set()

    async def main() -> None:
        response: Any = await aevent_stream(
            AsyncRequestFactory().get("/"), AsyncAgentStream(events())
        )

        async def read() -> None:
            async with contextlib.aclosing(aiter(response)) as parts:
                async for _ in parts:
                    pass

        task = asyncio.create_task(read())
        await begun.wait()
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
        assert not task.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended.is_set()

    in_loop(main())


def test_a_response_that_is_dropped_unread_ends_the_turn() -> None:
    agent, _ = silent()
    response: Any = event_stream(RequestFactory().get("/"), agent.stream("Hello"))
    assert response.status_code == 200
    del response
    assert is_abandoned(agent)
