"""A connection that is lost, or a lock that is held, at any point of what a store does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper

from agent_memory.stores.database import retrying
from tests.faults.boundaries import boundaries
from tests.faults.databases import empty, end_connection, lose, number_of
from tests.faults.operations import (
    OPERATIONS,
    Operation,
    append,
    append_what_is_journalled,
    find_the_last_conversation,
    journal_a_step,
    load,
)
from tests.faults.pauses import PAUSE_OPERATIONS

every_operation = pytest.mark.parametrize(
    "operation", [*OPERATIONS, *PAUSE_OPERATIONS], ids=lambda operation: operation.__name__
)


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return how long was waited before each further try; nobody waits."""
    slept: list[float] = []
    monkeypatch.setattr(retrying, "time", SimpleNamespace(sleep=slept.append))
    return slept


def ready(operation: Callable[[], Operation]) -> tuple[Operation, Callable[[], Any]]:
    """Make an operation ready on empty tables; return it and its work."""
    empty()
    ContentType.objects.get_by_natural_key("auth", "user")
    begun = operation()
    return begun, next(begun)


def finish(begun: Operation, result: Any) -> None:
    """Have an operation look at what its work has done."""
    with pytest.raises(StopIteration):
        begun.send(result)


def points_of(operation: Callable[[], Operation]) -> list[str]:
    """Return the points at which an operation's work can be hit."""
    names: list[str] = []
    begun, work = ready(operation)
    with boundaries(names.append):
        result = work()
    finish(begun, result)
    return names


@every_operation
def test_work_is_done_once_although_a_passing_fault_hits_it(
    shared: None,
    other: BaseDatabaseWrapper,
    slept: list[float],
    operation: Callable[[], Operation],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if connection.vendor == "sqlite":
        lock_for_a_while(operation, other, monkeypatch)
        return
    points = points_of(operation)
    last = len(points) - 1
    for number in {0, max(0, last - 1), last}:  # at the start, before and after the commit
        lose_at(number, operation, other, slept)


@pytest.mark.heavy
@every_operation
def test_work_is_done_once_although_its_connection_is_lost_at_any_point(
    server: None,
    other: BaseDatabaseWrapper,
    slept: list[float],
    operation: Callable[[], Operation],
) -> None:
    for number, _ in enumerate(points_of(operation)):
        lose_at(number, operation, other, slept)


def lose_at(
    number: int,
    operation: Callable[[], Operation],
    other: BaseDatabaseWrapper,
    slept: list[float],
) -> None:
    """Do an operation's work, and have the server end its connection at one point of it."""
    begun, work = ready(operation)
    reached: list[str] = []

    def hit(name: str) -> None:
        if len(reached) == number:
            reached.append(name)
            lose(other)
        reached.append(name)

    slept.clear()
    lost = number_of(connection)
    with boundaries(hit):
        result = work()
    assert slept
    assert number_of(connection) != lost
    finish(begun, result)


def lock_for_a_while(
    operation: Callable[[], Operation], other: BaseDatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Do an operation's work while another connection has locked the file for two tries."""
    begun, work = ready(operation)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            other.cursor().execute("ROLLBACK")

    monkeypatch.setattr(retrying, "time", SimpleNamespace(sleep=sleep))
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "timeout", 0)
    connection.close()
    other.cursor().execute("BEGIN IMMEDIATE")
    result = work()
    if operation in (load, find_the_last_conversation):  # reading needs no lock
        other.cursor().execute("ROLLBACK")
    else:
        assert len(slept) == 2
    finish(begun, result)


@pytest.mark.heavy
@pytest.mark.parametrize("operation", [journal_a_step, append, append_what_is_journalled])
def test_work_is_done_once_although_its_connection_is_lost_during_the_commit(
    server: None,
    slow_commits: None,
    other: BaseDatabaseWrapper,
    slept: list[float],
    operation: Callable[[], Operation],
) -> None:
    other.inc_thread_sharing()
    for number in range(30):
        begun, work = ready(operation)
        threads: list[threading.Thread] = []

        def hit(name: str, threads: list[threading.Thread] = threads, number: int = number) -> None:
            if name == "before COMMIT" and not threads:
                victim = number_of(connection)
                threads.append(threading.Timer(number / 5000, end_connection, (victim, other)))
                threads[0].start()

        with boundaries(hit):
            result = work()
        threads[0].join()
        connection.close()
        finish(begun, result)
