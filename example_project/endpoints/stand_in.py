"""
A stand-in for a model, on loopback. It is no language model.

It answers only from the messages it is sent, so a wrong history gives a wrong
answer. It speaks both of OpenAI's text APIs, plain and streamed, well enough
for the official client.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from agent_memory.providers.openai_responses import OpenAIResponsesProvider
from example_project.endpoints.openai_shapes import Called, ChatShapes, ResponsesShapes, Shapes
from example_project.endpoints.sent import Said, messages_of, no_proxy

NAME = "stand-in"
NOTHING = "I was sent nothing to recall."

REMEMBER = re.compile(r"\s*remember:\s*(.+?)[.!]?\s*", re.IGNORECASE | re.DOTALL)
RECALL = re.compile(r"\?\s*$|\brepeat\b|\brecall\b", re.IGNORECASE)
REFUND = re.compile(r"\brefund\s+(\d+(?:\.\d\d?)?)\b.*?\border\s+([\w-]+)", re.IGNORECASE)
HELP = re.compile(r"\s*(help|hello|hi)\W*", re.IGNORECASE)
TITLE = re.compile(r"\btitle\b", re.IGNORECASE)
SECONDS_A_WORD = 0.03
KNOWS = """I am a stand-in for a model, and know three things:

- *Remember: blue.* I repeat it.
- *What did I say?* I look it up in the messages that I was sent.
- *Refund 12.50 for order A7.* I call a **tool**, which waits for your approval."""
APIS: dict[str, type[Shapes]] = {api.path: api for api in (ChatShapes, ResponsesShapes)}


def answer(messages: list[Said]) -> str:
    """
    Answer the last message, from the messages alone.

    "Remember: X." is stored in so many words; a question, or a wish to hear
    something again, gets the last X that a user asked to remember before; a
    request for a title, known by its instructions, gets one of a few words.
    """
    *before, last = messages or [Said("user", "")]
    remember = REMEMBER.fullmatch(last.text)
    if any(TITLE.search(said.text) for said in before if said.role in ("system", "developer")):
        words = re.findall(r"[^\W_]+", remember[1] if remember else last.text)[:4]
        return " ".join(["About", *words]) if words else ""
    if remember:
        return f"Stored: {remember[1]}."
    if HELP.fullmatch(last.text):
        return KNOWS
    if not RECALL.search(last.text):
        return f"I am a stand-in for a model. I was sent {len(messages)} messages."
    users = (said.text for said in reversed(before) if said.role == "user")
    asked = next(filter(None, map(REMEMBER.fullmatch, users)), None)
    return f"Recalled: {asked[1]}." if asked else NOTHING


def reply(body: dict[str, Any]) -> str | Called:
    """
    Reply to a request, from what it holds alone.

    The result of a tool is told; "Refund 12.50 for order A7." calls the tool
    ``refund``, where there is one; for the rest see answer().
    """
    messages = messages_of(body)
    items = body.get("messages") or body.get("input")
    last = items[-1] if isinstance(items, list) and items else {}
    if last.get("type") == "function_call_output":
        return str(last["output"])
    if last.get("role") == "tool":
        return str(last["content"])
    tools = {tool.get("function", tool).get("name") for tool in body.get("tools") or ()}
    if "refund" in tools and (wanted := REFUND.search(messages[-1].text)):
        return Called("refund", {"order": wanted[2], "amount": wanted[1]})
    return answer(messages)


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        try:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            messages = messages_of(body)
            given = reply(body)
        except (ValueError, TypeError, KeyError, AttributeError):
            return self._refuse(400, "The stand-in cannot read this request.")
        if (api := APIS.get(self.path)) is None:
            return self._refuse(404, f"The stand-in does not serve {self.path}.")
        words = sum(len(said.text.split()) for said in messages)
        called = given if isinstance(given, Called) else None
        shapes = api(NAME, given if isinstance(given, str) else "", words, called)
        if not body.get("stream"):
            return self._send(200, "application/json", json.dumps(shapes.plain()))
        self._send(200, "text/event-stream")
        for event in shapes.events():
            if "type" in event:
                self._write(f"event: {event['type']}\n")
            self._write(f"data: {json.dumps(event)}\n\n")
            time.sleep(SECONDS_A_WORD if event.get("type", "").endswith("text.delta") else 0)
        return self._write("data: [DONE]\n\n") if api is ChatShapes else None

    def _refuse(self, status: int, message: str) -> None:
        error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
        self._send(status, "application/json", json.dumps({"error": error}))

    def _send(self, status: int, content_type: str, text: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.end_headers()
        self._write(text)

    def _write(self, text: str) -> None:
        self.wfile.write(text.encode())

    def log_message(self, *args: Any) -> None:
        """Stay silent: whoever uses the stand-in tells what was sent."""


@contextmanager
def serve() -> Iterator[str]:
    """Serve the stand-in on a free port of loopback; give the ``base_url`` for a client."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()


class StandInProvider(OpenAIResponsesProvider):
    """Asks a stand-in of this process: for a project that is told of no model."""

    def __init__(self) -> None:
        self._served = ExitStack()  # until the process ends
        os.environ["no_proxy"] = no_proxy()
        super().__init__(base_url=self._served.enter_context(serve()), api_key="unused")
