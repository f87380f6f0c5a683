"""What one prompt asks for, checked before anything happens."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

from agent_memory import conf
from agent_memory.approvals import Decisions
from agent_memory.attachments import check_part
from agent_memory.exceptions import TooLarge
from agent_memory.history import check_keep_last_turns
from agent_memory.messages import DocumentPart, ImagePart, Message, Value
from agent_memory.parts import check_provider_options
from agent_memory.providers import Provider
from agent_memory.records import Once, check_conversation_id
from agent_memory.tools import Tool


class PromptOptions(TypedDict, total=False):
    """
    What a prompt takes beside its message; left out or ``None`` is the agent's or the setting's.

    - ``attachments``: images and documents, which follow the message's own content.
    - ``conversation_id``: the conversation for this call, opened if it is new.
    - ``keep_last_turns``: how many turns of the history are sent, 0 for all.
    - ``model``: the model's name.
    - ``idempotency_key``: text of 1 to 255 characters; the same message sent again
      under it gets the stored answer, in a stream too, and is no second turn. While
      it still runs: ``ConversationBusy`` with ``same_message``. Recorded as failed:
      ``TurnFailed``. Another message: ``ConversationConflict``.
    - ``wait``: how many seconds to wait for another turn of the conversation, 0 by
      default.
    """

    attachments: Iterable[ImagePart | DocumentPart] | None
    conversation_id: str | None
    keep_last_turns: int | None
    model: str | None
    idempotency_key: str | None
    wait: float


class ResumeOptions(TypedDict, total=False):
    """
    What going on with a paused turn takes beside the decisions.

    - ``decided_by``: a participant, kept beside the decisions as a record; it
      permits nothing.
    - ``note``: text, kept beside the decisions too.
    - ``model``: the model's name; left out, the turn goes on with the one it began
      with.
    - ``wait``: how many seconds to wait for whoever else is at it, 0 by default.
    """

    decided_by: Any
    note: str
    model: str | None
    wait: float


@dataclass(frozen=True, slots=True)
class Resumption:
    """What goes on with a paused turn: the decisions that are made with it, and by whom."""

    decisions: Decisions | None
    decided_by: Any = None
    note: str = ""
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """
    One prompt, or a resumption, with all that it was given, checked.

    ``instructions`` and ``tools`` are those that the agent's hooks return for it.
    """

    message: Message | None
    provider: Provider
    model: str
    streamed: bool = False
    conversation_id: str | None = None
    keep_last_turns: int | None = None
    once: Once | None = None
    wait: float = 0
    resumption: Resumption | None = None
    instructions: str = ""
    tools: dict[str, Tool] = field(default_factory=dict)


def check_options(what: str, options: Mapping[str, object], known: type) -> None:
    """Raise ``TypeError`` for an option that a call does not take."""
    names = known.__annotations__
    if unknown := options.keys() - names:
        raise TypeError(
            f"{what} takes no {', '.join(sorted(unknown))}; it takes {', '.join(names)}."
        )


def make_call(
    message: object, options: PromptOptions, provider: Provider, model: str, *, streamed: bool
) -> Call:
    """Return a prompt, checked; raises ``ValueError`` and ``InvalidConversationId``."""
    asked = user_message(message, options.get("attachments"))
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


def user_message(message: object, attachments: object = None) -> Message:
    """Return what a prompt asks; raises ``ValueError`` for what cannot be asked."""
    if isinstance(message, str):
        # A prompt may be its attachments alone, and APIs refuse empty text beside them.
        message = Message("user", message or ())
    if not isinstance(message, Message):
        raise TypeError(f"A prompt is text or a Message, not {type(message).__name__}.")
    if message.role != "user" or message.tool_calls or message.tool_call_id is not None:
        raise ValueError(
            "A prompt is a user message without tool calls; give other history to with_messages()."
        )
    if added := _attachments(attachments):
        message = message.model_copy(update={"content": (*message.content, *added)})
    files = [part for part in message.content if isinstance(part, ImagePart | DocumentPart)]
    if not (files or message.text.strip()):
        raise ValueError("The prompt is empty: it needs text that is not blank, or attachments.")
    check_provider_options(message.content)
    _check_files(files)
    limit = conf.limit("message")
    if limit is not None and message.size > limit:
        raise TooLarge(
            f"The prompt has {message.size} bytes; AGENT_MEMORY['LIMITS'] allows {limit}."
        )
    return message


def _attachments(given: Any) -> tuple[ImagePart | DocumentPart, ...]:
    """Return attachments as they were given; raises ``TypeError`` for what is none."""
    if given is None:
        return ()
    lone = not isinstance(given, Iterable) or isinstance(given, str | bytes | Mapping | Value)
    parts = (given,) if lone else tuple(given)
    for part in parts:
        if lone or not isinstance(part, ImagePart | DocumentPart):
            raise TypeError(
                "attachments is a list of what load_image(), load_pdf() and load_file() return, "
                f"not {'' if lone else 'of '}{type(part).__name__}."
            )
    return parts


def _check_files(files: Sequence[ImagePart | DocumentPart]) -> None:
    limit = conf.attachment_limit("MAX_COUNT")
    if limit is not None and len(files) > limit:
        raise TooLarge(
            f"The prompt has {len(files)} attachments; AGENT_MEMORY['ATTACHMENTS']['MAX_COUNT'] "
            f"allows {limit}."
        )
    for part in files:
        check_part(part)


def check_wait(wait: object) -> float:
    """Return how many seconds to wait; raises ``ValueError`` for anything but a finite number."""
    if isinstance(wait, bool) or not isinstance(wait, int | float):
        raise ValueError(f"wait is a number of seconds, not {wait!r}.")
    if not (math.isfinite(wait) and wait >= 0):
        raise ValueError(f"wait is a finite number of seconds, 0 or more, not {wait!r}.")
    return wait
