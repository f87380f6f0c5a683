"""What one prompt asks for, checked before anything happens."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TypedDict

from agent_memory import conf
from agent_memory.exceptions import TooLarge, UnsupportedAttachment
from agent_memory.history import check_keep_last_turns
from agent_memory.messages import FilePart, Message, size
from agent_memory.providers import Provider
from agent_memory.records import Once, check_conversation_id
from agent_memory.tools import Tool


class PromptOptions(TypedDict, total=False):
    """
    What a prompt takes beside its message; left out or ``None`` is the agent's or the setting's.

    ``conversation_id``: the conversation for this call, opened if it is new.
    ``keep_last_turns``: how many turns of the history are sent, 0 for all.
    ``model``: the model's name.
    ``idempotency_key``: text of 1 to 255 characters; the same message sent again
    under it gets the stored answer, and is no second turn.
    ``wait``: how many seconds to wait for another turn of the conversation.
    """

    conversation_id: str | None
    keep_last_turns: int | None
    model: str | None
    idempotency_key: str | None
    wait: float


@dataclass(frozen=True, slots=True)
class Call:
    """
    One prompt with all that it was given, checked.

    ``instructions`` and ``tools`` are those that the agent's hooks return for it.
    """

    message: Message
    provider: Provider
    model: str
    streamed: bool = False
    conversation_id: str | None = None
    keep_last_turns: int | None = None
    once: Once | None = None
    wait: float = 0
    instructions: str = ""
    tools: dict[str, Tool] = field(default_factory=dict)


def make_call(
    message: object, options: PromptOptions, provider: Provider, model: str, *, streamed: bool
) -> Call:
    """Return a prompt, checked; raises ``ValueError`` and ``InvalidConversationId``."""
    asked = user_message(message)
    conversation_id = options.get("conversation_id")
    keep_last_turns = options.get("keep_last_turns")
    key = options.get("idempotency_key")
    if conversation_id is not None:
        check_conversation_id(conversation_id)
    if keep_last_turns is not None:
        check_keep_last_turns(keep_last_turns)
    return Call(
        asked,
        provider,
        model,
        streamed,
        conversation_id,
        keep_last_turns,
        None if key is None else Once.of(key, asked),
        check_wait(options.get("wait", 0)),
    )


def user_message(message: object) -> Message:
    """Return what a prompt asks; raises ``ValueError`` for what cannot be asked."""
    if isinstance(message, str):
        message = Message("user", message)
    if not isinstance(message, Message):
        raise TypeError(f"A prompt is text or a Message, not {type(message).__name__}.")
    if message.role != "user" or message.tool_calls or message.tool_call_id is not None:
        raise ValueError(
            "A prompt is a user message without tool calls; give other history to with_messages()."
        )
    if any(isinstance(part, FilePart) for part in message.content):
        raise UnsupportedAttachment("Prompts take text; attachments cannot be sent yet.")
    if not message.text.strip():
        raise ValueError("The prompt is empty: it needs text that is not blank.")
    limit = conf.limit("message")
    if limit is not None and size(message) > limit:
        raise TooLarge(
            f"The prompt has {size(message)} bytes; AGENT_MEMORY['LIMITS'] allows {limit}."
        )
    return message


def check_wait(wait: object) -> float:
    """Return how many seconds to wait; raises ``ValueError`` for anything but a finite number."""
    if isinstance(wait, bool) or not isinstance(wait, int | float):
        raise ValueError(f"wait is a number of seconds, not {wait!r}.")
    if not (math.isfinite(wait) and wait >= 0):
        raise ValueError(f"wait is a finite number of seconds, 0 or more, not {wait!r}.")
    return wait
