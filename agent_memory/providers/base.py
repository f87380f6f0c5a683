"""
The provider contract: a request of values in, one finished step out.

A provider knows HTTP and its API's shapes, and nothing of memory. It is shared
by threads and event loops, and keeps no state of a turn.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass
from typing import Any

from agent_memory.messages import Message, Step
from agent_memory.responses import Event


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model is told of it; ``parameters`` is a JSON schema of type object."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ProviderRequest:
    """
    All that one round trip needs.

    ``messages`` is the history, oldest first, and ends with the user's prompt;
    ``steps`` are the finished steps of the running turn, their calls answered.
    """

    model: str
    messages: tuple[Message, ...]
    instructions: str = ""
    steps: tuple[Step, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    max_output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ProviderReply:
    """One finished round trip; ``step`` carries usage, finish reason, model and provider."""

    step: Step
    request_id: str | None = None


class Provider:
    """
    Base of providers: subclass it and write the four methods.

    ``options`` are those of the setting. Errors are ``ProviderUnavailable``
    and ``ProviderRefused``; an answer that breaks off, or ends without a finish
    reason, is ``ProviderUnavailable``.
    """

    name = ""
    """The name that is stored beside each step."""

    def __init__(self, **options: Any) -> None:
        self.options = options

    def complete(self, request: ProviderRequest) -> ProviderReply:
        """Make one round trip."""
        raise NotImplementedError(f"{type(self).__name__} must define complete().")

    async def acomplete(self, request: ProviderRequest) -> ProviderReply:
        """See complete()."""
        raise NotImplementedError(f"{type(self).__name__} must define acomplete().")

    def stream(self, request: ProviderRequest) -> Generator[Event | ProviderReply, None, None]:
        """Yield events (TextDelta, RefusalDelta, ReasoningDelta) and last the reply."""
        raise NotImplementedError(f"{type(self).__name__} must define stream().")

    def astream(self, request: ProviderRequest) -> AsyncGenerator[Event | ProviderReply, None]:
        """See stream()."""
        raise NotImplementedError(f"{type(self).__name__} must define astream().")
