"""Fixtures of tests that break things: a database that several connections share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from pytest_django.plugin import DjangoDbBlocker

from tests.faults import databases
from tests.faults.acting import Acting
from tests.faults.clerks import Ledger
from tests.faults.processes import Process, Workers


@pytest.fixture(scope="session")
def empty_file(
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path | None:
    """An SQLite file with tables and no rows, to be copied; ``None`` where there is a server."""
    with django_db_blocker.unblock():
        if connection.vendor != "sqlite":
            return None
        return databases.make_file(tmp_path_factory.mktemp("faults") / "empty.sqlite3")


@pytest.fixture
def shared(
    request: pytest.FixtureRequest, db: None, empty_file: Path | None, tmp_path: Path
) -> Iterator[None]:
    """
    A database without rows that several connections and processes share, and no transaction.

    Its parameter may be ``stricter``.
    """
    changes: dict[str, Any] = {}
    if empty_file is not None:
        copied = shutil.copy(empty_file, tmp_path / "shared.sqlite3")
        changes = {"NAME": copied, "OPTIONS": databases.SQLITE_FILE}
    if getattr(request, "param", "") == "stricter":
        changes["OPTIONS"] = databases.STRICTER[connection.vendor]
        if empty_file is not None:
            databases.leave_the_write_ahead_log(changes["NAME"])
    with databases.a_connection_of_its_own(**changes):
        yield
        databases.empty()


@pytest.fixture
def other(shared: None) -> Iterator[BaseDatabaseWrapper]:
    """A second connection to the shared database."""
    other = databases.another()
    yield other
    other.close()


@pytest.fixture
def server(shared: None) -> None:
    """The shared database, where it is a server that connections can be lost to."""
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has no server to lose: TEST_DATABASE=postgresql uv run pytest")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger")


@pytest.fixture(scope="session")
def forking() -> Iterator[Process]:
    """A process in which Django is ready, of which workers are forks."""
    process = Process()
    yield process
    process.kill()


@pytest.fixture
def workers(shared: None, tmp_path: Path, forking: Process) -> Iterator[Workers]:
    with Workers(tmp_path, forking) as workers:
        yield workers


@pytest.fixture
def slow_commits(shared: None) -> Iterator[None]:
    """Have commits take a while, where a database can be made to."""
    tables = "agent_turn_journal", "agent_conversation_messages"
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_sleep(0.004); RETURN NULL; END $$"
        )
        for table in tables:
            cursor.execute(
                f"CREATE CONSTRAINT TRIGGER linger AFTER INSERT ON {table} "
                "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION linger()"
            )
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP FUNCTION linger() CASCADE")


@pytest.fixture
def acting(db: None) -> Acting:
    return Acting()
