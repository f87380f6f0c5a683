"""The transactions of the store, and those of its callers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections, transaction

from agent_memory.exceptions import TransactionOpen


def in_transaction(using: str) -> bool:
    """Tell whether a caller's transaction is open; that of a ``TestCase`` is not meant."""
    connection = connections[using]
    blocks = connection.atomic_blocks
    if blocks:
        return not blocks[-1]._from_testcase  # type: ignore[attr-defined]  # noqa: SLF001
    return connection.connection is not None and not connection.get_autocommit()


@contextmanager
def durable(using: str) -> Iterator[None]:
    """Open a transaction that ends with its block; raises ``TransactionOpen`` inside another."""
    if in_transaction(using):
        raise TransactionOpen
    with transaction.atomic(using, durable=True):
        yield


def connected() -> set[str]:
    """Return the databases that this thread has a connection to."""
    return {one.alias for one in connections.all(initialized_only=True) if one.connection}


def give_back(using: str) -> None:
    """Close this thread's connection, or return it to its pool, unless a transaction is open."""
    connection = connections[using]
    if not connection.in_atomic_block and connection.autocommit:
        connection.close()
