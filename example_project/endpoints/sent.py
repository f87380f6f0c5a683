"""What is sent to a model: read from the requests as they leave the ``openai`` client."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple, Self

import httpx2
import openai


class Said(NamedTuple):
    """One message: who said it, and the text of it."""

    role: str
    text: str


def messages_of(body: dict[str, Any]) -> list[Said]:
    """Return the messages of a request to either of OpenAI's text APIs, instructions first."""
    items = body["messages"] if "messages" in body else body.get("input", [])
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    said = [Said(item["role"], _text(item.get("content"))) for item in items if "role" in item]
    if instructions := body.get("instructions"):
        said.insert(0, Said("system", instructions))
    return said


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or ())


def no_proxy() -> str:
    """Return the environment's ``no_proxy``, with loopback added."""
    named = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
    return f"{named},127.0.0.1" if named else "127.0.0.1"


class SentMessages:
    """
    Keeps the messages of each request of one HTTP client, which the block's end closes.

    The client is ``http_client``, for the provider's option of that name.
    """

    def __init__(self) -> None:
        self.requests: list[list[Said]] = []
        self.http_client = openai.DefaultHttpx2Client(
            event_hooks={"request": [self._note]},
            mounts={"http://127.0.0.1": None},  # no proxy of the environment leads there
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *args: object) -> None:
        self.http_client.close()

    def _note(self, request: httpx2.Request) -> None:
        self.requests.append(messages_of(json.loads(request.content)))

    def under(self, instructions: str) -> list[Said] | None:
        """Return what the last request with these instructions held beside them, if there is one."""
        for first, *rest in reversed(self.requests):
            if first.text == instructions:
                return rest
        return None
