"""Faults of the real databases: told from lasting ones, and tried again within bounds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import DatabaseError, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import load_backend
from django.utils import timezone

from agent_memory.models import Conversation
from agent_memory.stores.database import retrying
from agent_memory.stores.database.retrying import is_passing, retried
from tests.faults.databases import PATIENCE, kill, number_of


@pytest.fixture
def rows(shared: None) -> None:
    for name in ("a", "b"):
        Conversation.objects.create(id=name, last_activity=timezone.now())


def only(vendor: str) -> pytest.MarkDecorator:
    from tests.settings import TEST_DATABASE

    vendors = {"postgresql": "postgresql", "mariadb": "mysql", "sqlite": "sqlite"}
    return pytest.mark.skipif(
        vendors[TEST_DATABASE] != vendor, reason=f"a fault that only {vendor} has"
    )


def run(on: Any, sql: str, *params: Any) -> None:
    with on.cursor() as cursor:
        cursor.execute(sql, params)


def write(name: str, on: Any = connection) -> None:
    run(on, "UPDATE agent_conversations SET turn_count = turn_count + 1 WHERE id = %s", name)


def read(on: Any = connection) -> None:
    run(on, "SELECT turn_count FROM agent_conversations")


def fault(work: Callable[[], object]) -> DatabaseError:
    """Return the error that work ends in."""
    with pytest.raises(DatabaseError) as caught:
        work()
    connection.close()
    return caught.value


# What passes.


def test_a_locked_database_passes(rows: None, other: BaseDatabaseWrapper) -> None:
    if connection.vendor == "sqlite":
        run(connection, "PRAGMA busy_timeout = 1")
        run(other, "BEGIN IMMEDIATE")
    elif connection.vendor == "postgresql":
        run(connection, "SET lock_timeout = '10ms'")
        run(other, "BEGIN")
    else:
        run(connection, "SET innodb_lock_wait_timeout = 1")
        run(other, "BEGIN")
    write("a", other)
    assert is_passing(fault(lambda: write("a")))
    run(other, "ROLLBACK")


def test_a_deadlock_passes(server: None, rows: None) -> None:
    together, errors = threading.Barrier(2), []

    def cross(first: str, second: str) -> None:
        try:
            if connection.vendor == "postgresql":
                run(connection, "SET deadlock_timeout = '10ms'")
            with transaction.atomic():
                write(first)
                together.wait(PATIENCE)
                write(second)
        except DatabaseError as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=cross, args=names) for names in ("ab", "ba")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    (error,) = errors
    assert is_passing(error)


@only("postgresql")
@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_a_serialization_failure_passes(rows: None, other: BaseDatabaseWrapper, level: str) -> None:
    def collide() -> None:
        with transaction.atomic():
            run(connection, f"SET TRANSACTION ISOLATION LEVEL {level}")
            read()
            write("a", other)
            write("a")

    assert is_passing(fault(collide))


@only("mysql")
def test_a_snapshot_that_is_out_of_date_passes(rows: None, other: BaseDatabaseWrapper) -> None:
    def collide() -> None:
        run(connection, "SET SESSION innodb_snapshot_isolation = ON")
        run(connection, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        with transaction.atomic():
            read()
            write("a", other)
            write("a")

    assert is_passing(fault(collide))


@only("postgresql")
@pytest.mark.parametrize("inside", [False, True])
def test_a_connection_that_the_server_ended_for_idleness_passes(rows: None, inside: bool) -> None:
    def idle() -> None:
        with transaction.atomic() if inside else connection.cursor():
            kind = "idle_in_transaction_session_timeout" if inside else "idle_session_timeout"
            run(connection, f"SET {kind} = '10ms'")
            time.sleep(0.1)
            read()

    assert is_passing(fault(idle))


@only("mysql")
def test_a_connection_that_the_server_ended_for_idleness_passes_too(rows: None) -> None:
    run(connection, "SET SESSION wait_timeout = 1")
    time.sleep(1.2)
    assert is_passing(fault(read))


def test_a_lost_connection_passes_before_inside_and_at_the_end_of_a_transaction(
    server: None, rows: None, other: BaseDatabaseWrapper
) -> None:
    def before() -> None:
        kill(connection, other)
        write("a")

    def inside() -> None:
        with transaction.atomic():
            write("a")
            kill(connection, other)
            write("b")

    def at_the_commit() -> None:
        with transaction.atomic():
            write("a")
            kill(connection, other)

    for work in (before, inside, at_the_commit):
        assert is_passing(fault(work)), work
    number_of(connection)
    kill(connection, other)
    for _ in range(2):  # the driver knows, the second time
        with pytest.raises(DatabaseError) as caught:
            read()
        assert is_passing(caught.value)
    connection.close()


def test_a_server_that_is_not_there_may_come_back(server: None) -> None:
    settings = {**connections.settings["default"], "PORT": "1"}
    absent = load_backend(settings["ENGINE"]).DatabaseWrapper(settings, "absent")
    assert is_passing(fault(absent.ensure_connection))


# What lasts.


@pytest.mark.parametrize("wrong", ["NAME", "USER"])
def test_a_server_that_lets_nobody_in_lasts(server: None, wrong: str) -> None:
    settings = {**connections.settings["default"], wrong: "nobody_s", "OPTIONS": {}}
    refused = load_backend(settings["ENGINE"]).DatabaseWrapper(settings, "refused")
    error = fault(refused.ensure_connection)
    assert not is_passing(error), error


def test_a_fault_of_ours_or_of_the_data_lasts(rows: None) -> None:
    long = "x" * 256

    def twice() -> None:
        Conversation.objects.create(id="a", last_activity=timezone.now())

    def dangling() -> None:
        with transaction.atomic():
            Conversation.objects.filter(id="a").update(participant_type_id=4711)
            connection.check_constraints()

    lasting: list[Callable[[], object]] = [
        lambda: run(connection, "SELEC 1"),
        lambda: run(connection, "SELECT 1 FROM nowhere"),
        twice,
        dangling,
    ]
    if connection.vendor != "sqlite":
        lasting.append(lambda: Conversation.objects.filter(id="a").update(title=long))
    for work in lasting:
        assert not is_passing(fault(work))


# Trying again.


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return how long was waited before each further try; nobody waits."""
    slept: list[float] = []
    monkeypatch.setattr(retrying, "time", SimpleNamespace(sleep=slept.append))
    return slept


def locked(other: BaseDatabaseWrapper) -> Callable[[], None]:
    """Lock the database, or a row of it, and return work that does not wait for it."""
    run(other, "BEGIN IMMEDIATE" if connection.vendor == "sqlite" else "BEGIN")
    write("a", other)

    def work() -> None:
        if connection.vendor == "sqlite":
            run(connection, "PRAGMA busy_timeout = 1")
        elif connection.vendor == "postgresql":
            run(connection, "SET lock_timeout = '5ms'")
        else:
            run(connection, "SET innodb_lock_wait_timeout = 0")
        write("a")

    return work


def test_work_is_tried_again_until_the_fault_has_passed(
    rows: None, other: BaseDatabaseWrapper, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    work = locked(other)

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            run(other, "ROLLBACK")

    monkeypatch.setattr(retrying, "time", SimpleNamespace(sleep=sleep))
    retried("default", work)
    assert len(slept) == 3
    assert Conversation.objects.get(id="a").turn_count == 1


def test_a_fault_that_stays_is_raised_after_as_many_tries_as_there_are_delays(
    rows: None, other: BaseDatabaseWrapper, slept: list[float]
) -> None:
    work, tries = locked(other), []

    def counted() -> None:
        tries.append(1)
        work()

    with pytest.raises(DatabaseError):
        retried("default", counted)
    run(other, "ROLLBACK")
    assert len(tries) == len(retrying.DELAYS) + 1
    assert all(
        delay / 2 <= seconds <= delay for seconds, delay in zip(slept, retrying.DELAYS, strict=True)
    )
    assert sum(retrying.DELAYS) < 5


def test_a_lasting_error_is_raised_at_once(rows: None, slept: list[float]) -> None:
    with pytest.raises(DatabaseError):
        retried("default", lambda: run(connection, "SELECT 1 FROM nowhere"))
    connection.close()
    assert slept == []


def test_each_try_has_a_fresh_connection(
    server: None, rows: None, other: BaseDatabaseWrapper, slept: list[float]
) -> None:
    numbers = []

    def work() -> None:
        numbers.append(number_of(connection))
        if len(numbers) < 3:
            kill(connection, other)
        write("a")

    retried("default", work)
    assert len(set(numbers)) == 3


def test_inside_a_transaction_of_the_callers_nothing_is_tried_again(
    rows: None, other: BaseDatabaseWrapper, slept: list[float]
) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("A transaction of SQLite begins with the lock, so nothing in it is locked.")
    work = locked(other)
    with pytest.raises(DatabaseError), transaction.atomic():
        retried("default", work)
    run(other, "ROLLBACK")
    assert slept == []
