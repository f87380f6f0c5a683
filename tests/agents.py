"""Agents for tests, and the four ways to ask one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from agent_memory import Agent, Message, tool
from agent_memory.agents import Outcome, Recalled
from agent_memory.flow import Flow
from agent_memory.messages import ToolCall, ToolResult, Usage
from agent_memory.responses import Event, Finished, Response
from agent_memory.testing import ScriptedProvider
from agent_memory.tools import Tool

STREAMS = ("stream", "astream")
WAYS = ("prompt", "aprompt", *STREAMS)

in_every_way = pytest.mark.parametrize("way", WAYS)
in_both_streams = pytest.mark.parametrize("way", STREAMS)


@tool
def area(width: int, height: int) -> int:
    """Return the area of a rectangle."""
    return width * height


def scripted(*replies: Any, **options: Any) -> ScriptedProvider:
    """Return a provider that gives these replies."""
    return ScriptedProvider(replies, **options)


def a_turn_with_everything() -> ScriptedProvider:
    """Return a provider that calls ``area`` twice, once with too few arguments, and answers."""
    return ScriptedProvider(
        [
            [
                "Let me see. ",
                calling("area", "a", width=2, height=3),
                calling("area", "b", width=4),
            ],
            "It is six.",
        ],
        usage=Usage(input_tokens=10, output_tokens=2, cached_tokens=5, reasoning_tokens=1),
    )


def ask(way: str, agent: Agent, message: Any = "Hello", **options: Any) -> Response:
    """Ask in one of the four ways; a stream is read to its end."""
    if way == "prompt":
        return agent.prompt(message, **options)
    if way == "aprompt":
        return async_to_sync(agent.aprompt)(message, **options)
    last = events(way, agent, message, **options)[-1]
    assert isinstance(last, Finished)
    return last.response


def events(way: str, agent: Agent, message: Any = "Hello", **options: Any) -> list[Event]:
    """Ask in one of the two ways that stream, and return all events."""
    if way == "stream":
        return list(agent.stream(message, **options))

    async def read() -> list[Event]:
        return [event async for event in agent.astream(message, **options)]

    return async_to_sync(read)()


def calling(name: str, call_id: str = "call-1", /, **arguments: Any) -> ToolCall:
    """Return a call as a model asks for it."""
    return ToolCall(id=call_id, name=name, arguments=arguments)


def run_tool(function: Callable[..., Any], **arguments: Any) -> ToolResult:
    """Return what a tool makes of a call with these arguments."""
    made = function if isinstance(function, Tool) else Tool(function)
    return made.run(calling(made.name, **arguments))


def told(*texts: str) -> list[Message]:
    """Return a history in which user and assistant speak in turn."""
    return [Message("assistant" if index % 2 else "user", text) for index, text in enumerate(texts)]


class Noting(Agent):
    """Notes how its last turn ended, which an agent without memory tells nobody."""

    outcome: Outcome

    def remember(self, recalled: Recalled, outcome: Outcome) -> Flow[Response]:
        self.outcome = outcome
        return (yield from super().remember(recalled, outcome))
