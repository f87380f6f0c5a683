"""What MariaDB and MySQL take in one statement; the other databases have no such limit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from django.db import connections

from agent_memory import conf
from agent_memory.exceptions import TooLarge
from agent_memory.messages import Message
from agent_memory.records import readable
from agent_memory.stores import codec
from agent_memory.stores.attachments import files_of, set_aside
from agent_memory.stores.database.retrying import retried

SMALL = 100_000
"""Bytes of a message that fits into the smallest packet worth the name, however it is escaped."""


def check_fits(using: str, message: Message) -> None:
    """Raise ``TooLarge`` for a message that the server would not take in one statement."""
    if connections[using].vendor != "mysql" or message.size <= SMALL:
        return
    # A row holds the parts and the readable content; one statement writes the bytes of all files.
    content = readable(message.text)
    parts = codec.encode_parts(set_aside("", message.content), content)
    needed = SMALL + max(
        sent(parts.encode()) + sent(content.encode()),
        0 if conf.attachment_storage() else sum(map(sent, _contents(message))),
    )
    if needed > (limit := max_allowed_packet(using)):
        raise TooLarge(
            f"The prompt would need a statement of {needed} bytes; max_allowed_packet of the "
            f"database server is {limit}. Raise it, or send less."
        )


def sent(data: bytes) -> int:
    """Return the size of text or bytes in a statement, in which some characters take one more."""
    return len(data) + sum(map(data.count, b"'\"\\\n\r\0\x1a"))


def _contents(message: Message) -> Iterator[bytes]:
    return (part.data or b"" for part in files_of([message]).values())


@cache
def max_allowed_packet(using: str) -> int:
    """Return the bytes that the server takes in one statement."""

    def ask() -> int:
        with connections[using].cursor() as cursor:
            cursor.execute("SELECT @@max_allowed_packet")
            return int(cursor.fetchone()[0])

    return retried(using, ask)
