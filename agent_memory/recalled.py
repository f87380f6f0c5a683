"""What a turn begins with, and how it ends: the handle that memory gives to an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent_memory.approvals import Approval, PendingApproval
from agent_memory.calls import Call
from agent_memory.flow import Flow
from agent_memory.messages import Message, Step, ToolCall, ToolResult, Turn
from agent_memory.participants import Participant
from agent_memory.records import new_id
from agent_memory.responses import Response
from agent_memory.tools import Tool


@dataclass(frozen=True, slots=True)
class Noted:
    """A step whose calls are about to run (``index`` -1), one of them, or its result."""

    step: int
    index: int
    value: Step | ToolCall | ToolResult
    following: Tool | None = None
    """The tool that runs next."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """
    How a turn ended: answered, paused, or failed with an error that the caller is to get.

    ``waiting`` is what a paused one waits for.
    """

    turn: Turn
    error: BaseException | None = None
    waiting: tuple[PendingApproval, ...] = ()


@dataclass(slots=True, kw_only=True)
class Recalled:
    """
    The history that a turn is answered with.

    ``steps`` and ``approvals`` are those of a paused turn that goes on. The
    methods let memory take part; without memory they do nothing.
    """

    user: Message
    messages: tuple[Message, ...] = ()
    conversation_id: str | None = None
    speaker: Participant | None = None
    turn_id: str = field(default_factory=new_id)
    steps: tuple[Step, ...] = ()
    approvals: Mapping[tuple[int, int], Approval] = field(default_factory=dict)
    model: str | None = None
    """The model to ask, where it is not the call's."""
    patience: float | None = None
    """How many seconds to wait for a provider or a tool before ``hold()`` is called again."""
    response: Response | None = None
    """The answer that was given before, or that there is nothing to add to."""

    can_pause = False
    """Whether a turn that waits for a person would be kept."""

    def begin(self, call: Call) -> Flow[None]:
        """Begin what goes on beside the answer."""
        yield from ()

    def hold(self, tool: Tool | None = None) -> Flow[None]:
        """Keep what the turn holds, while a provider is waited for and before a tool runs."""
        yield from ()

    def journal(self, noted: Noted) -> Flow[None]:
        """Note what tools are about to do, and what they did."""
        yield from ()
