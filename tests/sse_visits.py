"""Views that stream an answer, and visits to them through Django's own handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import pytest
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.test import RequestFactory
from django.urls import path

from agent_memory import Agent
from agent_memory.sse import aevent_stream, event_stream
from tests.flows import PATIENCE, in_loop
from tests.sse_parsing import ServerSent, parse


@dataclass
class Site:
    """What the views ask, and how they answer."""

    agent: Agent = field(default_factory=Agent)
    options: dict[str, Any] = field(default_factory=dict)


site = Site()


def chat(request: HttpRequest) -> HttpResponseBase:
    return event_stream(request, site.agent.stream("Hello"), **site.options)


async def achat(request: HttpRequest) -> HttpResponseBase:
    return await aevent_stream(request, site.agent.astream("Hello"), **site.options)


urlpatterns = [path("chat/", chat), path("achat/", achat)]

by_both_servers = pytest.mark.parametrize("server", ["wsgi", "asgi"])


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def events(self) -> list[ServerSent]:
        return parse(self.body)


class WSGIVisit:
    """A request as a WSGI server makes it; iterate it for the parts of the body."""

    def __init__(self, path: str = "/chat/", **environ: str) -> None:
        self.started: list[Any] = []
        environ = {**RequestFactory().get(path).environ, **environ}
        self.response: Any = WSGIHandler()(environ, self._start)

    def _start(self, status: str, headers: list[tuple[str, str]]) -> None:
        self.started += [int(status.split()[0]), dict(headers)]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.response)

    def read(self) -> Answer:
        body = b"".join(self)
        self.response.close()
        return Answer(*self.started, body)


class ASGIVisit:
    """
    A request as an ASGI server makes it; ``async with`` it.

    A client that reads nothing takes ``room`` messages, and then no more.
    """

    def __init__(
        self, path: str = "/achat/", headers: dict[str, str] | None = None, *, room: int = 0
    ) -> None:
        given = {"host": "testserver", **(headers or {})}
        self._scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "path": path,
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        }
        self._sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue(room)
        self._asked = self._ended = False
        self.left = asyncio.Event()
        self.is_stuck = asyncio.Event()

    async def __aenter__(self) -> Self:
        handler = ASGIHandler()
        self._task = asyncio.create_task(handler(self._scope, self._receive, self._send))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.leave()

    async def leave(self) -> None:
        """Close the connection; return when the server is done with it."""
        self.left.set()
        async with asyncio.timeout(PATIENCE):
            await self._task

    async def _receive(self) -> dict[str, Any]:
        if self._asked:
            await self.left.wait()
            return {"type": "http.disconnect"}
        self._asked = True
        return {"type": "http.request", "body": b""}

    async def _send(self, message: dict[str, Any]) -> None:
        if self._sent.full():
            self.is_stuck.set()
        await self._sent.put(message)

    async def _message(self) -> dict[str, Any]:
        coming = asyncio.ensure_future(self._sent.get())
        await asyncio.wait({coming, self._task}, return_when=asyncio.FIRST_COMPLETED)
        if coming.done():
            return coming.result()
        coming.cancel()
        await asyncio.wait({coming})
        await self._task
        raise AssertionError("The server has said all it had to say.")

    async def begin(self) -> tuple[int, dict[str, str]]:
        """Return status and headers of the answer."""
        started = await self._message()
        headers = {name.decode(): value.decode() for name, value in started["headers"]}
        return started["status"], headers

    async def part(self) -> bytes | None:
        """Return the next part of the body, or ``None`` after the last."""
        while not self._ended:
            message = await self._message()
            self._ended = not message.get("more_body", False)
            if body := message.get("body", b""):
                return bytes(body)
        return None

    async def rest(self) -> bytes:
        """Return what is left of the body."""
        parts = []
        while (part := await self.part()) is not None:
            parts.append(part)
        return b"".join(parts)


async def read(path: str = "/achat/") -> Answer:
    async with ASGIVisit(path) as client:
        status, headers = await client.begin()
        return Answer(status, headers, await client.rest())


def visit(server: str, agent: Agent, **options: Any) -> Answer:
    """Return what a client of one of the servers gets of an agent's answer."""
    site.agent, site.options = agent, options
    return WSGIVisit().read() if server == "wsgi" else in_loop(read())
