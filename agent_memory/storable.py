"""Short texts as every store and database can hold them: ids, titles, labels and keys."""

from __future__ import annotations

import re

from agent_memory.exceptions import InvalidConversationId

MAX_LENGTH = 255
UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def check_conversation_id(conversation_id: object) -> str:
    """
    Return a conversation id that every store can hold, compared byte for byte.

    Raises ``InvalidConversationId`` for anything but text of 1 to 255
    characters without NUL and lone surrogates.
    """
    if conversation_id == "":
        raise InvalidConversationId("A conversation id cannot be empty; None starts afresh.")
    return check_text("A conversation id", conversation_id, InvalidConversationId)


def is_storable(text: str) -> bool:
    """Tell whether every database holds a text: it has no NUL and no lone surrogates."""
    return (text.isascii() and "\0" not in text) or not UNSTORABLE.search(text)


def readable(text: str) -> str:
    """Return a copy of text that every database holds."""
    return text if is_storable(text) else UNSTORABLE.sub("\ufffd", text)


def check_title(title: object) -> str:
    """Return a title that every store can hold; raises ``ValueError`` for anything else."""
    return check_text("A title", title)


def check_text(what: str, text: object, error: type[Exception] = ValueError) -> str:
    """Return short text that every store can hold; raises ``error`` for anything else."""
    if not isinstance(text, str):
        raise error(f"{what} is text, not {type(text).__name__}.")
    if len(text) > MAX_LENGTH:
        raise error(f"{what} has at most {MAX_LENGTH} characters, not {len(text)}.")
    if not is_storable(text):
        raise error(f"{what} holds neither NUL nor lone surrogates.")
    return text
