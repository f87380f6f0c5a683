"""A database that several connections share, and ways to hurt one of them."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from agent_memory import models

SQLITE_FILE = {
    "transaction_mode": "IMMEDIATE",
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
}

STRICTER: dict[str, dict[str, Any]] = {
    "sqlite": {},  # transactions are deferred, and readers and writers lock each other out
    "postgresql": {"isolation_level": 4},  # serializable
    "mysql": {"isolation_level": "serializable"},
}
"""Options under which more transactions fail."""

PATIENCE = 30
"""Seconds after which a test that waits in vain fails."""


def another() -> BaseDatabaseWrapper:
    """Return a connection to the same database that is nobody else's; close it."""
    return connections.create_connection("default")


@contextmanager
def a_connection_of_its_own(**changes: Any) -> Iterator[None]:
    """
    Put another connection in place of the suite's, which a test's transaction occupies.

    ``changes`` are those of the settings, for the threads of the test too.
    """
    suites, usual = connections["default"], connections.settings["default"]
    connections.settings["default"] = {**usual, **changes}
    connections["default"] = another()
    ContentType.objects.clear_cache()
    try:
        yield
    finally:
        connections["default"].close()
        connections["default"] = suites
        connections.settings["default"] = usual
        ContentType.objects.clear_cache()


def make_file(path: Path) -> Path:
    """Write an SQLite file with the suite's tables: its database in memory has one connection."""
    with a_connection_of_its_own(NAME=str(path), OPTIONS=SQLITE_FILE):
        call_command("migrate", verbosity=0)
    return path


def leave_the_write_ahead_log(path: Path) -> None:
    """Have readers and writers of a file lock each other out; nobody else may have it open."""
    with closing(sqlite3.connect(path)) as alone:
        assert alone.execute("PRAGMA journal_mode=DELETE").fetchone() == ("delete",)


def place() -> dict[str, Any]:
    """Return the settings by which another process reaches the database."""
    settings = connections.settings["default"]
    return {"NAME": str(settings["NAME"]), "OPTIONS": settings["OPTIONS"]}


def empty() -> None:
    """Delete the app's rows."""
    for model in (
        models.ToolApproval,
        models.TurnJournal,
        models.ConversationAttachment,
        models.ConversationMessage,
        models.Conversation,
    ):
        model._default_manager.all().delete()


def kill(victim: BaseDatabaseWrapper, killer: BaseDatabaseWrapper) -> None:
    """See end_connection()."""
    end_connection(number_of(victim), killer)


def end_connection(number: int, killer: BaseDatabaseWrapper) -> None:
    """Have the server end a connection, and wait until it has."""
    if killer.vendor == "postgresql":
        end = "SELECT pg_terminate_backend(%s)"
        look = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
    else:
        end, look = "KILL %s", "SELECT 1 FROM information_schema.processlist WHERE id = %s"
    with killer.cursor() as cursor:
        cursor.execute(end, [number])

        def is_gone() -> bool:
            cursor.execute(look, [number])
            return not cursor.fetchall()

        until(is_gone)


def lose(killer: BaseDatabaseWrapper) -> None:
    """Have the server end this thread's connection, and raise what its next statement raises."""
    kill(connections["default"], killer)
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT 1")


def number_of(connection: Any) -> int:
    """Return what the server tells one connection from another by."""
    connection.ensure_connection()
    if connection.vendor == "postgresql":
        return int(connection.connection.info.backend_pid)
    return int(connection.connection.thread_id())


def until(condition: Callable[[], object]) -> None:
    """Wait for something that happens elsewhere."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.001)
