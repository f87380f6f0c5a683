"""What one prompt asks for, checked before anything happens."""

from __future__ import annotations

from dataclasses import dataclass

from agent_memory.exceptions import UnsupportedAttachment
from agent_memory.messages import FilePart, Message
from agent_memory.providers import Provider
from agent_memory.tools import Tool


@dataclass(frozen=True, slots=True)
class Call:
    """One prompt with all that it was given, checked."""

    message: Message
    provider: Provider
    model: str
    tools: dict[str, Tool]
    streamed: bool = False
    conversation_id: str | None = None
    keep_last_turns: int | None = None


def user_message(message: object) -> Message:
    """Return what a prompt asks; raises ``ValueError`` for what cannot be asked."""
    if isinstance(message, str):
        if not message.strip():
            raise ValueError("The prompt is empty.")
        return Message("user", message)
    if not isinstance(message, Message):
        raise TypeError(f"A prompt is text or a Message, not {type(message).__name__}.")
    if message.role != "user" or message.tool_calls or message.tool_call_id is not None:
        raise ValueError(
            "A prompt is a user message without tool calls; give other history to with_messages()."
        )
    if not message.content:
        raise ValueError("The prompt is empty: a message needs at least one part.")
    if any(isinstance(part, FilePart) for part in message.content):
        raise UnsupportedAttachment("Prompts take text; attachments cannot be sent yet.")
    return message
