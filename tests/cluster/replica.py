"""The replica of a project's database: what is asked of it, and what it is made to do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from django.db import connections

ALIASES = ("replica", "second replica")
PATIENCE_SECONDS = 30


class Notes:
    """Which work sends which statements to a replica."""

    def __init__(self) -> None:
        self.work = "nothing"
        self.statements: dict[str, list[str]] = {}

    @contextmanager
    def taken(self) -> Iterator[Notes]:
        with ExitStack() as stack:
            for alias in ALIASES:
                stack.enter_context(connections[alias].execute_wrapper(self.note))
            yield self

    @contextmanager
    def of(self, work: str) -> Iterator[None]:
        """Note what a block does under its name."""
        self.work, before = work, self.work
        yield
        self.work = before

    def note(self, execute: Any, sql: str, *rest: Any) -> Any:
        self.statements.setdefault(self.work, []).append(sql)
        return execute(sql, *rest)


def ask(alias: str, sql: str) -> Any:
    """Return what a server says of itself; it is not noted."""
    connection = connections[alias]
    wrappers, connection.execute_wrappers = connection.execute_wrappers, []
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchone()[0]
    finally:
        connection.execute_wrappers = wrappers


def catch_up() -> None:
    """Wait until the replica has all that was written so far."""
    written = ask("default", "SELECT pg_current_wal_insert_lsn()")
    has_it = f"SELECT pg_last_wal_replay_lsn() >= '{written}'::pg_lsn"
    _wait(lambda: ask("replica", has_it))


def stand_still() -> None:
    """Let the replica fall behind from now on."""
    ask("replica", "SELECT pg_wal_replay_pause()::text")
    _wait(lambda: ask("replica", "SELECT pg_get_wal_replay_pause_state()") == "paused")


def go_on() -> None:
    ask("replica", "SELECT pg_wal_replay_resume()::text")
    catch_up()


def _wait(true: Callable[[], Any]) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not true():
        if time.monotonic() > until:
            raise TimeoutError("The replica does not do as it is told.")
        time.sleep(0.02)
