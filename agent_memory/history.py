"""The window of a history that a model is sent: whole turns, leading messages always kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent_memory import conf
from agent_memory.exceptions import TooLarge
from agent_memory.messages import Message
from agent_memory.parts import check_provider_options

LEADING_ROLES = ("system", "developer")


def check_keep_last_turns(keep_last_turns: object) -> int:
    """Return a number of turns, 0 meaning all; raises ``ValueError`` for anything else."""
    if (
        isinstance(keep_last_turns, bool)
        or not isinstance(keep_last_turns, int)
        or keep_last_turns < 0
    ):
        raise ValueError(
            f"keep_last_turns is a whole number of turns, 0 for all, not {keep_last_turns!r}."
        )
    return keep_last_turns


def check_leading(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return leading messages; raises ``ValueError`` unless all are system or developer ones."""
    leading = tuple(messages)
    for message in leading:
        if not isinstance(message, Message) or message.role not in LEADING_ROLES:
            raise ValueError(
                f"A leading message is a system or developer Message, not {message!r}."
            )
        check_provider_options(message.content)
    return leading


def window(messages: Sequence[Message], keep_last_turns: int) -> tuple[Message, ...]:
    """
    Return the leading messages and the last turns of a history.

    A turn begins with a user message and ends before the next one, so a tool
    call is never parted from its result. 0 keeps all.
    """
    check_keep_last_turns(keep_last_turns)
    starts = [index for index, message in enumerate(messages) if message.role == "user"]
    if not keep_last_turns or len(starts) <= keep_last_turns:
        return tuple(messages)
    lead = 0
    while messages[lead].role in LEADING_ROLES:
        lead += 1
    return (*messages[:lead], *messages[starts[-keep_last_turns] :])


def check_window(messages: Sequence[Message]) -> None:
    """Raise ``TooLarge`` for a history over the limit of ``AGENT_MEMORY["LIMITS"]``."""
    limit = conf.limit("window")
    if limit is not None and (total := sum(message.size for message in messages)) > limit:
        raise TooLarge(
            f"The history has {total} bytes; AGENT_MEMORY['LIMITS'] allows {limit} for a window. "
            "Keep fewer turns, or raise the limit."
        )
