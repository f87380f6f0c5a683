"""One answer in the shapes of OpenAI's two text APIs, plain and as events; a word is a token."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Called:
    """A function that the model wants called."""

    name: str
    arguments: dict[str, Any]


class Shapes:
    """The base: what the two APIs tell of an answer in common."""

    path: str

    def __init__(
        self, model: str, text: str, words_sent: int, called: Called | None = None
    ) -> None:
        self.model = model
        self.text = text
        self.called = called
        self.id = uuid.uuid4().hex
        self.created = int(time.time())
        self.input_tokens = words_sent
        self.output_tokens = len(text.split())

    def deltas(self) -> list[str]:
        """Return the text in pieces of one word."""
        return re.findall(r"\S+\s*", self.text)

    def plain(self) -> dict[str, Any]:
        """Return the whole answer."""
        raise NotImplementedError

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield the answer as the data of server-sent events."""
        raise NotImplementedError


class ChatShapes(Shapes):
    """``/v1/chat/completions``."""

    path = "/v1/chat/completions"

    def plain(self) -> dict[str, Any]:
        """See Shapes.plain()."""
        message = {"role": "assistant", "content": self.text, "refusal": None, **self._calls()}
        choice = {"index": 0, "message": message, "finish_reason": self._end(), "logprobs": None}
        return {**self._head("chat.completion"), "choices": [choice], "usage": self._usage()}

    def events(self) -> Iterator[dict[str, Any]]:
        """See Shapes.events(); the usage comes in a chunk of its own, asked for or not."""
        head = self._head("chat.completion.chunk")
        deltas = [{"role": "assistant", "content": ""}, *({"content": d} for d in self.deltas())]
        if self.called:
            deltas.append(self._calls())
        for delta in deltas:
            yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": self._end()}]}
        yield {**head, "choices": [], "usage": self._usage()}

    def _calls(self) -> dict[str, Any]:
        if self.called is None:
            return {}
        function = {"name": self.called.name, "arguments": json.dumps(self.called.arguments)}
        call = {"index": 0, "id": f"call_{self.id}", "type": "function", "function": function}
        return {"tool_calls": [call]}

    def _end(self) -> str:
        return "tool_calls" if self.called else "stop"

    def _head(self, kind: str) -> dict[str, Any]:
        head = {"id": f"chatcmpl-{self.id}", "object": kind}
        return {**head, "created": self.created, "model": self.model}

    def _usage(self) -> dict[str, Any]:
        return {
            "prompt_tokens": self.input_tokens,
            "completion_tokens": self.output_tokens,
            "total_tokens": self.input_tokens + self.output_tokens,
        }


class ResponsesShapes(Shapes):
    """``/v1/responses``."""

    path = "/v1/responses"

    def plain(self) -> dict[str, Any]:
        """See Shapes.plain()."""
        return self._response("completed", output=self._output(), usage=self._usage())

    def events(self) -> Iterator[dict[str, Any]]:
        """See Shapes.events()."""
        begun = self._response("in_progress", output=[], usage=None)
        events = [
            ("created", {"response": begun}),
            *(self._text_events() if self.text else ()),
            *(self._call_events(self.called) if self.called else ()),
            ("completed", {"response": self.plain()}),
        ]
        for number, (kind, fields) in enumerate(events):
            yield {"type": f"response.{kind}", "sequence_number": number, **fields}

    def _text_events(self) -> Iterator[tuple[str, dict[str, Any]]]:
        item = {"output_index": 0}
        part = {**item, "item_id": f"msg_{self.id}", "content_index": 0}
        full = self._part(self.text)
        yield "output_item.added", {**item, "item": self._item("in_progress")}
        yield "content_part.added", {**part, "part": self._part("")}
        for delta in self.deltas():
            yield "output_text.delta", {**part, "delta": delta, "logprobs": []}
        yield "output_text.done", {**part, "text": self.text, "logprobs": []}
        yield "content_part.done", {**part, "part": full}
        yield "output_item.done", {**item, "item": self._item("completed", full)}

    def _call_events(self, called: Called) -> Iterator[tuple[str, dict[str, Any]]]:
        index = {"output_index": 1 if self.text else 0}
        asked = {**index, "item_id": f"fc_{self.id}"}
        call = self._call(called)
        arguments = {"arguments": call["arguments"]}
        begun = {**call, "status": "in_progress", "arguments": ""}
        yield "output_item.added", {**index, "item": begun}
        yield "function_call_arguments.delta", {**asked, "delta": call["arguments"]}
        yield "function_call_arguments.done", {**asked, **arguments, "name": called.name}
        yield "output_item.done", {**index, "item": call}

    def _output(self) -> list[dict[str, Any]]:
        said = [self._item("completed", self._part(self.text))] if self.text else []
        return said + ([self._call(self.called)] if self.called else [])

    def _call(self, called: Called) -> dict[str, Any]:
        return {
            "id": f"fc_{self.id}",
            "type": "function_call",
            "status": "completed",
            "call_id": f"call_{self.id}",
            "name": called.name,
            "arguments": json.dumps(called.arguments),
        }

    def _response(self, status: str, **fields: Any) -> dict[str, Any]:
        return {
            "id": f"resp_{self.id}",
            "object": "response",
            "created_at": self.created,
            "model": self.model,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            **fields,
        }

    def _item(self, status: str, *content: dict[str, Any]) -> dict[str, Any]:
        head = {"id": f"msg_{self.id}", "type": "message", "role": "assistant"}
        return {**head, "status": status, "content": list(content)}

    def _part(self, text: str) -> dict[str, Any]:
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}

    def _usage(self) -> dict[str, Any]:
        return {
            "input_tokens": self.input_tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": self.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": self.input_tokens + self.output_tokens,
        }
