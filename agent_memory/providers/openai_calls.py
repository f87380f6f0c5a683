"""Tool calls: read from an answer, and told again in a form that an API takes."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn
from uuid import uuid4

from agent_memory.messages import ToolCall
from agent_memory.providers.base import ProviderRequest

MAX_DEPTH = 100
"""How deep arguments may nest; a stored turn adds some levels, and readers end near 250."""

_UNSENDABLE = re.compile(r"[^A-Za-z0-9_-]")
_MAX_NAME = 64


class CallReader:
    """
    Reads the tool calls of one answer.

    A missing id, and one that the request or the answer has already, is replaced
    by one of ours: some servers begin to count again with each answer, and others
    refuse a request that holds an id twice.
    """

    def __init__(self, request: ProviderRequest) -> None:
        calls = [call for message in request.messages for call in message.tool_calls]
        calls += [call for step in request.steps for call in step.tool_calls()]
        self._ids = {call.id for call in calls}

    def read(self, call_id: Any, name: Any, arguments: Any) -> ToolCall:
        """
        Return a call; ``raw_arguments`` keeps what is no JSON object of sane depth.

        A call without a name has an empty one: no tool is called so, and the model is told.
        """
        if not isinstance(call_id, str) or not call_id or call_id in self._ids:
            call_id = f"call_{uuid4().hex}"
        self._ids.add(call_id)
        name = name if isinstance(name, str) else ""
        if isinstance(arguments, dict):
            return ToolCall(id=call_id, name=name, arguments=arguments)
        text = arguments or ""
        parsed = parse_arguments(text)
        if parsed is None:
            return ToolCall(id=call_id, name=name, raw_arguments=text)
        return ToolCall(id=call_id, name=name, arguments=parsed)


def parse_arguments(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a text is, an empty one for no text, else ``None``."""
    if not text.strip():
        return {}
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and _is_shallow(value, MAX_DEPTH) else None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


def _is_shallow(value: Any, depth: int) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        return True
    return depth > 0 and all(_is_shallow(item, depth - 1) for item in value)


def sent_name(call: ToolCall) -> str:
    """Return a call's name in the characters that APIs take: a model may have made it up."""
    return _UNSENDABLE.sub("_", call.name)[:_MAX_NAME] or "unnamed"


def sent_arguments(call: ToolCall) -> str:
    """
    Return a call's arguments as JSON, which many servers parse.

    Those that are no JSON object are wrapped in one: sent as they are, they
    would make such a server refuse every later turn of the conversation.
    """
    arguments = call.arguments
    if call.raw_arguments is not None:
        arguments = {"raw_arguments": call.raw_arguments}
    return json.dumps(escaped(arguments), ensure_ascii=False)


def echoed(block: dict[str, Any], call: ToolCall) -> dict[str, Any]:
    """Return the block that names a call as it came, but for what could not be sent back."""
    arguments = block.get("arguments")
    if not isinstance(arguments, str) or not arguments or parse_arguments(arguments) is None:
        arguments = sent_arguments(call)
    return {**block, "name": sent_name(call), "arguments": arguments}


def escaped(value: Any) -> Any:
    """Return JSON data with lone surrogates, which UTF-8 has no form for, as backslash escapes."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {escaped(key): escaped(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [escaped(item) for item in value]
    return value
