"""The chunks of a streamed completion, put together to the message of a plain one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agent_memory.responses import Event, ReasoningDelta, RefusalDelta, TextDelta

REASONING = ("reasoning_content", "reasoning")
"""Where servers put readable reasoning; no part of OpenAI's own API."""

TEXTS = ("content", "refusal", *REASONING)
NAMED = ("role", "tool_calls", "function_call")

ECHOED = (*REASONING, "reasoning_details")
"""What servers want back within the turn, beside what they put into the calls."""

READ = {*TEXTS, *NAMED, *ECHOED}
"""What becomes items of the step; the rest of a message is kept as the text's metadata."""


class ChatAssembly:
    """The chunks of a streamed completion."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {"role": "assistant", "content": None}
        self._calls: list[dict[str, Any]] = []
        self._by_index: dict[Any, dict[str, Any]] = {}
        self._rest: dict[str, Any] = {}
        self._finish_reason: str | None = None

    def take(self, piece: Any) -> Iterator[Event]:
        """See Assembly.take()."""
        self._rest |= {key: piece[key] for key in ("usage", "model") if piece.get(key)}
        for choice in piece.get("choices") or ():
            self._finish_reason = choice.get("finish_reason") or self._finish_reason
            delta = choice.get("delta") or {}
            yield from self._texts(delta)
            for fragment in delta.get("tool_calls") or ():
                self._join(fragment)

    def whole(self) -> Any:
        """See Assembly.whole()."""
        message = self._message | {"tool_calls": self._calls}
        choice = {"message": message, "finish_reason": self._finish_reason}
        return self._rest | {"choices": [choice]}

    def _texts(self, delta: dict[str, Any]) -> Iterator[Event]:
        for key, piece in delta.items():
            if key in TEXTS and piece:
                self._message[key] = (self._message.get(key) or "") + piece
            elif key not in (*TEXTS, *NAMED):
                self._message[key] = _joined(self._message.get(key), piece)
        if reasoning := delta.get(REASONING[0]) or delta.get(REASONING[1]):
            yield ReasoningDelta(reasoning)
        if delta.get("content"):
            yield TextDelta(delta["content"])
        if delta.get("refusal"):
            yield RefusalDelta(delta["refusal"])

    def _join(self, fragment: dict[str, Any]) -> None:
        function = fragment.get("function") or {}
        call = self._call_of(fragment, function)
        joined = call["function"]
        call |= {
            key: value
            for key, value in fragment.items()
            if key not in ("index", "function") and not call.get(key)
        }
        if (name := function.get("name")) and name != joined["name"]:
            joined["name"] += name
        joined["arguments"] += function.get("arguments") or ""

    def _call_of(self, fragment: dict[str, Any], function: dict[str, Any]) -> dict[str, Any]:
        """Return the call that a fragment goes on with, or a new one."""
        index = fragment.get("index")
        last = self._calls[-1] if self._calls else None
        call = last if index is None else self._by_index.get(index)
        # Some servers give every parallel call the index 0, or none: then a named
        # function under another id begins a new call.
        other = (
            call and fragment.get("id") and function.get("name") and fragment["id"] != call["id"]
        )
        if call is None or other:
            call = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
            self._calls.append(call)
            self._by_index[index] = call
        return call


def _joined(before: Any, piece: Any) -> Any:
    """Return what two pieces of a field make together: of lists one list, else the last."""
    if isinstance(before, list) and isinstance(piece, list):
        return before + piece
    return piece or before
