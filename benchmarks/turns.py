"""The turn that every contestant stores: four messages, about 1.5 kB of text."""

from __future__ import annotations

import json
import random
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

MESSAGES = 4
"""A question, a tool call, its result, an answer."""

WORDS = ["memory", "window", "turn", "agent", "tool", "result", "answer", "history", "model"]
SIZES = (250, 120, 600, 530)
TAG = re.compile(r"T\[([^\]]+)\.(\d)\]")


def _text(size: int, seed: int) -> str:
    chosen = random.Random(seed)
    return " ".join(chosen.choice(WORDS) for _ in range(size // 4))[:size]


TEXTS = [[_text(size, 10 * each + size) for size in SIZES] for each in range(16)]


@cache
def image() -> bytes:
    """Return what looks like a PNG and cannot be compressed: 1 MB."""
    return b"\x89PNG\r\n\x1a\n" + random.Random(1).randbytes(1_000_000)


@cache
def image_url() -> str:
    return "data:image/png;base64," + b64encode(image()).decode()


@dataclass(frozen=True)
class Turn:
    """A turn whose four messages can be told from all others by its tag."""

    tag: str
    pictured: bool = False

    @property
    def _texts(self) -> list[str]:
        texts = TEXTS[sum(self.tag.encode()) % len(TEXTS)]
        return [f"T[{self.tag}.{number}] {text}" for number, text in enumerate(texts)]

    @property
    def user(self) -> str:
        return self._texts[0]

    @property
    def arguments(self) -> dict[str, Any]:
        return {"query": self._texts[1], "limit": 5}

    @property
    def result(self) -> str:
        return self._texts[2]

    @property
    def answer(self) -> str:
        return self._texts[3]

    @property
    def call_id(self) -> str:
        return f"call_{self.tag}"

    def as_plain(self) -> list[dict[str, Any]]:
        """Return the messages as data that a hand-written store might keep."""
        call = {"id": self.call_id, "name": "search", "arguments": self.arguments}
        usage = {"input": 812, "output": 164}
        said: dict[str, Any] = {"role": "user", "content": self.user}
        if self.pictured:
            said["image"] = "image/png"
        return [
            said,
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": self.call_id, "content": self.result},
            {"role": "assistant", "content": self.answer, "usage": usage},
        ]

    def as_items(self) -> list[dict[str, Any]]:
        """Return the messages as items of OpenAI's Responses API."""
        said: Any = self.user
        if self.pictured:
            picture = {"type": "input_image", "image_url": image_url(), "detail": "auto"}
            said = [{"type": "input_text", "text": self.user}, picture]
        text = {"type": "output_text", "text": self.answer, "annotations": []}
        answer = {"type": "message", "id": f"msg_{self.tag}", "role": "assistant"}
        return [
            {"role": "user", "content": said},
            {
                "type": "function_call",
                "id": f"fc_{self.tag}",
                "call_id": self.call_id,
                "name": "search",
                "arguments": json.dumps(self.arguments),
                "status": "completed",
            },
            {"type": "function_call_output", "call_id": self.call_id, "output": self.result},
            {**answer, "status": "completed", "content": [text]},
        ]

    def as_langchain(self) -> list[Any]:
        """Return the messages as LangChain's."""
        from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

        said: Any = self.user
        if self.pictured:
            picture = {"type": "image_url", "image_url": {"url": image_url()}}
            said = [{"type": "text", "text": self.user}, picture]
        call = {"id": self.call_id, "name": "search", "args": self.arguments}
        usage: Any = {"input_tokens": 812, "output_tokens": 164, "total_tokens": 976}
        return [
            HumanMessage(content=said),
            AIMessage(content="", tool_calls=[call]),
            ToolMessage(content=self.result, tool_call_id=self.call_id),
            AIMessage(content=self.answer, usage_metadata=usage),
        ]


def turns(key: str, count: int) -> Iterator[Turn]:
    """Yield so many turns of a conversation."""
    return (Turn(f"{key}-{number}") for number in range(count))


def tags(messages: Iterable[Any]) -> list[tuple[str, int]]:
    """Return which message of which turn each one is, whatever shape it has."""
    found = (TAG.search(str(message)) for message in messages)
    return [(match[1], int(match[2])) for match in found if match]
