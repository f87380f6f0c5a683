"""The transactions of the store, and those of its callers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from django.db import connections, transaction

from agent_memory.exceptions import TransactionOpen

BEGINNING = "_start_transaction_under_autocommit"
"""What Django calls on a connection that has it, to begin a transaction; its backend of SQLite does."""

NORMAL = 1
"""The level of ``PRAGMA synchronous`` at which a commit to a write-ahead log does not wait."""


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
    with _begun_by_statement(using), transaction.atomic(using, durable=True):
        yield


@contextmanager
def _begun_by_statement(using: str) -> Iterator[None]:
    """
    Have Django begin a transaction on MySQL or MariaDB by ``BEGIN``, as it does on SQLite.

    It would turn autocommit off and on again, and ask the server twice for it.
    """
    connection = connections[using]
    if connection.vendor != "mysql":
        yield
        return
    setattr(connection, BEGINNING, lambda: connection.cursor().execute("BEGIN"))
    try:
        yield
    finally:
        delattr(connection, BEGINNING)


@contextmanager
def fleeting(using: str) -> Iterator[None]:
    """
    Let what the block commits be lost by a power cut, where SQLite would wait for the disk.

    A power cut ends all who use the file, so what says that one of them is at work may
    go with them. Only with a write-ahead log: there the next commit that waits brings
    those before it along, in order.
    """
    connection = connections[using]
    # In a TestCase's transaction too the level cannot be changed.
    if (
        connection.vendor != "sqlite"
        or connection.in_atomic_block
        or not connection.get_autocommit()
    ):
        yield
        return
    run = connection.connection.execute
    ((synchronous,),) = run("PRAGMA synchronous")
    if synchronous <= NORMAL or not _writes_ahead(connection):
        yield
        return
    run(f"PRAGMA synchronous = {NORMAL}")
    try:
        yield
    finally:
        run(f"PRAGMA synchronous = {synchronous}")


_writing_ahead: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
"""Django's connections that write ahead, with the driver's, of which that is known."""


def _writes_ahead(connection: Any) -> bool:
    """Tell whether a connection uses a write-ahead log; nobody can end it while one is open."""
    opened = connection.connection
    if _writing_ahead.get(connection) is not opened:
        ((mode,),) = opened.execute("PRAGMA journal_mode")
        if mode != "wal":
            return False
        _writing_ahead[connection] = opened
    return True


def connected() -> set[str]:
    """Return the databases that this thread has a connection to."""
    return {one.alias for one in connections.all(initialized_only=True) if one.connection}


def give_back(using: str) -> None:
    """Close this thread's connection, or return it to its pool, unless a transaction is open."""
    connection = connections[using]
    if not connection.in_atomic_block and connection.autocommit:
        connection.close()
