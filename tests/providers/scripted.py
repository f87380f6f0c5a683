"""
A real HTTP server on loopback that answers what a test scripted and keeps what it was sent.

A request whose history the strictest servers would refuse, it refuses.
"""

from __future__ import annotations

import json
import socket
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from tests.providers.strictness import faults


@dataclass(frozen=True)
class Answer:
    """One scripted answer: a body, or events that are streamed."""

    body: bytes = b""
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    events: tuple[str, ...] | None = None
    end: Literal["clean", "drop", "hold"] = "clean"
    """How it ends: ``hold`` waits, a stream with comments, until the client hangs up."""


def answer(data: Any, status: int = 200, **headers: str) -> Answer:
    return Answer(json.dumps(data).encode(), status, headers=headers)


def events(*pieces: Any, done: bool = False, end: Any = "clean", **headers: str) -> Answer:
    """Script a stream; a piece that is text is sent as it is."""
    data = [piece if isinstance(piece, str) else json.dumps(piece) for piece in pieces]
    return Answer(
        events=(*data, "[DONE]") if done else tuple(data),
        content_type="text/event-stream",
        end=end,
        headers=headers,
    )


class ScriptedServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: deque[Answer] = deque()
        self.bodies: list[dict[str, Any]] = []
        self.faults: list[str] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.hung_up = threading.Event()
        self.silent = False
        self.connections = 0
        self.total = 0
        self.changed = threading.Condition()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent: a client that hangs up is what some tests are about."""

    def script(self, *answers: Answer) -> None:
        self.answers.extend(answers)

    def count(self, difference: int) -> None:
        with self.changed:
            self.connections += difference
            self.total += max(difference, 0)
            self.changed.notify_all()

    def wait_for_connections(self, number: int) -> bool:
        """Return whether so many connections are open, at the latest after ten seconds."""
        with self.changed:
            return self.changed.wait_for(lambda: self.connections == number, timeout=10)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: ScriptedServer

    def setup(self) -> None:
        super().setup()
        self.server.count(1)

    def finish(self) -> None:
        try:
            super().finish()
        finally:
            self.server.count(-1)

    def log_message(self, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        body = json.loads(self.rfile.read(length))
        self.server.bodies.append(body)
        self.server.paths.append(self.path)
        self.server.headers.append({key.lower(): value for key, value in self.headers.items()})
        wrong = faults(body)
        self.server.faults += wrong
        given = answer({"error": {}}, 400) if wrong else self.server.answers.popleft()
        if given.events is None and given.end != "clean":
            self._break_off(given)
            return
        self.send_response(given.status)
        self.send_header("Content-Type", given.content_type)
        for key, value in given.headers.items():
            self.send_header(key.replace("_", "-"), value)
        if given.events is None:
            self.send_header("Content-Length", str(len(given.body)))
            self.end_headers()
            self.wfile.write(given.body)
        else:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self._stream(given.events, given.end)

    def _break_off(self, given: Answer) -> None:
        """Send half of a plain answer, or nothing where it has no body."""
        if given.body:
            self.send_response(given.status)
            self.send_header("Content-Length", str(2 * len(given.body)))
            self.end_headers()
            self.wfile.write(given.body)
        if given.end == "hold":
            self.server.hung_up.wait(10)
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def _stream(self, pieces: Iterable[str], end: str) -> None:
        for piece in pieces:
            self._chunk(f"data: {piece}\n\n")
        if end == "hold":
            try:
                while not self.server.hung_up.wait(0.01):
                    if not self.server.silent:
                        self._chunk(": still here\n\n")
            except OSError:
                self.server.hung_up.set()
            self.close_connection = True
        elif end == "drop":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()


@contextmanager
def serving() -> Iterator[ScriptedServer]:
    server = ScriptedServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.hung_up.set()
        server.shutdown()
        thread.join()
        server.server_close()
