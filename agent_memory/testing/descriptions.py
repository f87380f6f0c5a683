"""Requests and conversations in words, for the messages of failed tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from agent_memory.messages import FilePart, Message, Step, ToolCall
from agent_memory.providers.base import ProviderRequest

LONGEST = 300
NEWEST = 10
"""How many messages of a history are shown."""


def brief(text: str) -> str:
    """Return text on one line, cut when it is long."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def request_lines(request: ProviderRequest) -> Iterator[str]:
    """Yield what a provider was asked, a line each."""
    yield f"  model: {request.model}"
    if request.instructions:
        yield f"  instructions: {brief(request.instructions)}"
    if request.tools:
        yield f"  tools: {', '.join(tool.name for tool in request.tools)}"
    *history, prompt = request.messages
    if len(history) > NEWEST:
        yield f"  ... {len(history) - NEWEST} messages before these"
    yield from message_lines(history[-NEWEST:])
    yield f"  prompt: {_said(prompt)}"
    for step in request.steps:
        yield from _step_lines(step)


def message_lines(messages: Iterable[Message]) -> Iterator[str]:
    """Yield who said what, a line each."""
    for message in messages:
        yield f"  {message.role}: {_said(message)}"


def _said(message: Message) -> str:
    files = (part for part in message.content if isinstance(part, FilePart))
    named = (f"[{part.file_name or part.media_type or 'file'}]" for part in files)
    return " ".join(filter(None, [brief(message.text), *named, *map(_call, message.tool_calls)]))


def _step_lines(step: Step) -> Iterator[str]:
    if step.text:
        yield f"  answered: {brief(step.text)}"
    for call in step.tool_calls():
        result = "no result" if call.result is None else brief(call.result.text)
        yield f"  called: {_call(call)} -> {result}"


def _call(call: ToolCall) -> str:
    written = call.raw_arguments
    return f"{call.name}({brief(json.dumps(call.arguments) if written is None else written)})"
