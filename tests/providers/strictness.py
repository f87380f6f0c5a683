"""What the strictest servers refuse in a request: calls without results, ids that come twice."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def faults(body: dict[str, Any]) -> list[str]:
    """Return what is wrong with the history of a request to either API."""
    messages = body.get("messages")
    found = list(_chat(messages) if messages is not None else _responses(body["input"]))
    ids = Counter(call_id for call_id, _, _ in _calls(body))
    found += [f"the id {call_id!r} comes twice" for call_id, count in ids.items() if count > 1]
    for call_id, name, arguments in _calls(body):
        if not call_id:
            found.append("a call has no id")
        if not NAME.fullmatch(name):
            found.append(f"{name!r} is no name of a function")
        if not isinstance(json.loads(arguments), dict):
            found.append(f"the arguments of {name!r} are no object")
    return found


def _calls(body: dict[str, Any]) -> list[tuple[str, str, str]]:
    if "input" in body:
        items = [item for item in body["input"] if item["type"] == "function_call"]
        return [(item["call_id"], item["name"], item["arguments"]) for item in items]
    calls = [call for message in body["messages"] for call in message.get("tool_calls", ())]
    functions = [(call["id"], call["function"]) for call in calls]
    return [(call_id, function["name"], function["arguments"]) for call_id, function in functions]


def _chat(messages: list[dict[str, Any]]) -> list[str]:
    found = []
    waiting: list[str] = []
    for message in [*messages, {"role": "end"}]:
        if message["role"] == "tool":
            if message["tool_call_id"] in waiting:
                waiting.remove(message["tool_call_id"])
            else:
                found.append(f"{message['tool_call_id']!r} answers no call before it")
            continue
        found += [f"{call_id!r} is not answered at once" for call_id in waiting]
        waiting = [call["id"] for call in message.get("tool_calls", ())]
        if message["role"] == "assistant" and not (message["content"] or waiting):
            found.append("an assistant's message is empty")
    return found


def _responses(items: list[dict[str, Any]]) -> list[str]:
    found = []
    waiting: list[str] = []
    for item in items:
        if item["type"] == "function_call":
            waiting.append(item["call_id"])
        elif item["type"] == "function_call_output":
            if item["call_id"] in waiting:
                waiting.remove(item["call_id"])
            else:
                found.append(f"{item['call_id']!r} answers no call before it")
        elif item.get("role") in ("user", "system", "developer"):
            found += [f"{call_id!r} is not answered in its turn" for call_id in waiting]
    return found + [f"{call_id!r} is not answered" for call_id in waiting]
