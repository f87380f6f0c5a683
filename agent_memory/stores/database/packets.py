"""What MariaDB and MySQL take in one statement; the other databases have no such limit."""

from __future__ import annotations

from functools import cache

from django.db import connections

from agent_memory.exceptions import TooLarge
from agent_memory.messages import Message, size
from agent_memory.records import readable
from agent_memory.stores import codec
from agent_memory.stores.database.retrying import retried

SMALL = 100_000
"""Bytes of a message that fits into the smallest packet worth the name, however it is escaped."""


def check_fits(using: str, message: Message) -> None:
    """Raise ``TooLarge`` for a message that the server would not take in one statement."""
    if connections[using].vendor != "mysql" or size(message) <= SMALL:
        return
    # A row holds the parts and a readable copy.
    needed = sent(codec.encode_parts(message.content)) + sent(readable(message.text)) + SMALL
    if needed > (limit := max_allowed_packet(using)):
        raise TooLarge(
            f"The prompt would need a statement of {needed} bytes; max_allowed_packet of the "
            f"database server is {limit}. Raise it, or send less."
        )


def sent(text: str) -> int:
    """Return the bytes of a text in a statement, in which some characters take one more."""
    return len(text.encode()) + sum(map(text.count, "'\"\\\n\r\0\x1a"))


@cache
def max_allowed_packet(using: str) -> int:
    """Return the bytes that the server takes in one statement."""

    def ask() -> int:
        with connections[using].cursor() as cursor:
            cursor.execute("SELECT @@max_allowed_packet")
            return int(cursor.fetchone()[0])

    return retried(using, ask)
