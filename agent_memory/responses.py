"""What a call gives back: one ``Response``, or a stream of events that ends with it."""

from __future__ import annotations

from dataclasses import dataclass

from agent_memory.approvals import PendingApproval
from agent_memory.messages import Status, Step, ToolCall, Turn, Usage


@dataclass(frozen=True, slots=True)
class Response:
    """
    The answer to one prompt.

    ``turn`` is what the call added to the history, with or without memory. The
    ids are ``None`` when nothing was stored. ``status`` is ``paused`` when tool
    calls wait for a person: ``pending_approvals`` are those that do.
    """

    turn: Turn
    conversation_id: str | None = None
    user_message_id: str | None = None
    assistant_message_id: str | None = None
    pending_approvals: tuple[PendingApproval, ...] = ()

    @property
    def text(self) -> str:
        """The text of the last step."""
        return self.turn.text

    @property
    def usage(self) -> Usage:
        """The tokens of all steps together."""
        return self.turn.usage

    @property
    def status(self) -> Status:
        """``completed``, or ``paused`` when calls wait."""
        return self.turn.status

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Event:
    """Base of the events of a stream."""


@dataclass(frozen=True, slots=True)
class Started(Event):
    """The first event: the turn has its conversation, or ``None`` without memory."""

    conversation_id: str | None


@dataclass(frozen=True, slots=True)
class TextDelta(Event):
    """A further piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class RefusalDelta(Event):
    """A further piece of a refusal."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta(Event):
    """A further piece of a readable summary of the reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted(Event):
    """A tool is about to run."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolFinished(Event):
    """A tool has run; the call carries its result."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class StepFinished(Event):
    """The provider has finished one step; its tools have not run yet."""

    step: Step


@dataclass(frozen=True, slots=True)
class ApprovalRequested(Event):
    """A call waits for a person; the turn is saved, and ``Finished`` follows."""

    pending: PendingApproval


@dataclass(frozen=True, slots=True)
class Waiting(Event):
    """Nothing new for 15 seconds; the model is still at work."""


@dataclass(frozen=True, slots=True)
class Finished(Event):
    """The last event: the turn is saved."""

    response: Response
