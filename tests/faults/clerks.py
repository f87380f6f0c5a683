"""An agent whose answers tell what it was sent, and whose tool leaves a trace outside."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Callable, Generator
from pathlib import Path
from typing import Any

from agent_memory import Agent, RemembersConversations, tool
from agent_memory.messages import Step, TextPart, ToolCall, Usage
from agent_memory.providers.base import Provider, ProviderReply, ProviderRequest
from agent_memory.responses import Event, TextDelta


def asking(prompt: str, *, steps: int = 0, calls: int = 1) -> str:
    """Return what to ask a clerk who is to call tools in so many steps first."""
    return json.dumps({"prompt": prompt, "steps": steps, "calls": calls})


class ClerkProvider(Provider):
    """
    Answers by the prompt: calls tools as it says, then tells how many turns it was sent.

    ``requests`` is what it was asked so far; ``asked`` is called with how many these are.
    """

    name = "clerk"

    def __init__(self, asked: Callable[[int], None] = lambda number: None) -> None:
        super().__init__()
        self.requests: list[ProviderRequest] = []
        self.asked = asked

    def complete(self, request: ProviderRequest) -> ProviderReply:
        self.requests.append(request)
        self.asked(len(self.requests))
        said, number = json.loads(request.messages[-1].text), len(request.steps)
        items: list[Any] = []
        if number < said["steps"]:
            items = [
                ToolCall(
                    id=f"call_{number}_{index}",
                    name="note",
                    arguments={"prompt": said["prompt"], "call": f"call_{number}_{index}"},
                )
                for index in range(said["calls"])
            ]
        else:
            history = sum(message.role == "user" for message in request.messages) - 1
            text = json.dumps({"answer": said["prompt"], "history": history})
            items = [TextPart(text=text)]
        return ProviderReply(
            Step(
                items=tuple(items),
                finish_reason="tool_calls" if number < said["steps"] else "stop",
                usage=Usage(input_tokens=number + 3, output_tokens=2, cached_tokens=1),
                provider=self.name,
                model=request.model,
            )
        )

    async def acomplete(self, request: ProviderRequest) -> ProviderReply:
        return self.complete(request)

    def stream(self, request: ProviderRequest) -> Generator[Event | ProviderReply, None, None]:
        reply = self.complete(request)
        for half in (reply.step.text[:9], reply.step.text[9:]):
            if half:
                yield TextDelta(half)
        yield reply

    async def astream(
        self, request: ProviderRequest
    ) -> AsyncGenerator[Event | ProviderReply, None]:
        for event in self.stream(request):
            yield event


class Ledger:
    """A file in which tools note what they have begun and done, whatever becomes of the turn."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, *words: str) -> None:
        line = json.dumps(words).encode() + b"\n"
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(file, line)
        finally:
            os.close(file)

    def lines(self) -> list[tuple[str, ...]]:
        if not self.path.exists():
            return []
        return [tuple(json.loads(line)) for line in self.path.read_text().splitlines()]


def note_in(
    ledger: Ledger, at: Callable[[str], None] = lambda name: None, *, gated: bool = False
) -> Any:
    """
    Return the tool of a clerk; ``at`` is called before, between and after its two notes.

    ``gated``: a person must allow each call.
    """

    @tool(needs_approval=gated)
    def note(prompt: str, call: str) -> str:
        at("tool started")
        ledger.note("begun", prompt, call)
        at("tool acting")
        ledger.note("done", prompt, call)
        at("tool done")
        return f"noted {call}"

    return note


class Clerk(RemembersConversations, Agent):
    """Remembers every turn, under a label that does not name a module."""

    label = "clerk"
    keep_last_turns = 0
    generate_titles = False
