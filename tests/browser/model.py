"""A model on loopback that says what a test scripted, as fast as the test lets it."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from example_project.endpoints.openai_shapes import Called, ResponsesShapes
from tests.providers.strictness import faults

PATIENCE = 30
TITLE = "A drafted title"


class Model(ThreadingHTTPServer):
    """
    Speaks OpenAI's Responses API; requests for a title get ``title``.

    ``script()`` says what the next turns are answered with: a text, a ``Called``
    (a tool call), or an ``int`` (an HTTP status, as an error). What is not
    scripted gets ``"Fine."``. ``bodies`` are the requests of turns.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.changed = threading.Condition()
        self.reset()

    def reset(self) -> None:
        self.title = TITLE
        self.answers: deque[str | Called | int] = deque()
        self.bodies: list[dict[str, Any]] = []
        self.faults: list[str] = []
        self.holding = False
        self.held = self.hung_up = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def script(self, *answers: str | Called | int) -> None:
        self.answers.extend(answers)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Let answers stop after their first word, until the end of the block."""
        self.holding = True
        try:
            yield
        finally:
            self.release()

    def release(self) -> None:
        with self.changed:
            self.holding = False
            self.changed.notify_all()

    def wait_until_held(self, count: int = 1) -> None:
        """Wait until so many answers of this test have been stopped."""
        self._wait("held", count)

    def wait_until_left(self, count: int = 1) -> None:
        """Wait until so many readers have left answers that were stopped."""
        self._wait("hung_up", count)

    def count(self, name: str) -> None:
        with self.changed:
            setattr(self, name, getattr(self, name) + 1)
            self.changed.notify_all()

    def _wait(self, name: str, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: getattr(self, name) >= count, PATIENCE), name

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent: a client that hangs up is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Model

    def log_message(self, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "title" in body.get("instructions", "") and "tools" not in body:
            return self._send(ResponsesShapes("model", self.server.title, 1))
        self.server.bodies.append(body)
        self.server.faults += faults(body)
        given = self.server.answers.popleft() if self.server.answers else "Fine."
        if isinstance(given, int):
            return self._plain(given, {"error": {"message": "Scripted.", "code": None}})
        called = given if isinstance(given, Called) else None
        shapes = ResponsesShapes("model", "" if called else str(given), 1, called)
        return self._stream(shapes) if body.get("stream") else self._send(shapes)

    def _send(self, shapes: ResponsesShapes) -> None:
        self._plain(200, shapes.plain())

    def _plain(self, status: int, data: dict[str, Any]) -> None:
        text = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _stream(self, shapes: ResponsesShapes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        counted = False
        try:
            for event in shapes.events():
                self._chunk(f"data: {json.dumps(event)}\n\n")
                if event["type"] == "response.output_text.delta" and self.server.holding:
                    if not counted:
                        self.server.count("held")
                        counted = True
                    self._wait_for_release()
            self._chunk("")
        except OSError:
            self.close_connection = True
            self.server.count("hung_up")

    def _wait_for_release(self) -> None:
        while self.server.holding:
            self._chunk(": still here\n\n")
            with self.server.changed:
                self.server.changed.wait(0.02)

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()


@contextmanager
def serving() -> Iterator[Model]:
    with Model() as model:
        thread = threading.Thread(target=model.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield model
        finally:
            model.release()
            model.shutdown()
            thread.join()
