"""A thread of its own leaves no database connection behind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connections

from agent_memory import tool
from agent_memory.connections import closed_afterwards
from agent_memory.messages import ToolResult
from agent_memory.tools import Tool
from tests.agents import calling

OTHER = "beside"


@pytest.fixture
def seen(
    django_db_blocker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[Any]]:
    """Make a database in a file, and return where connections to it are noted."""
    there = {"ENGINE": "django.db.backends.sqlite3", "NAME": tmp_path / "db", "OPTIONS": {}}
    monkeypatch.setitem(connections.databases, OTHER, {**connections.databases["default"], **there})
    with django_db_blocker.unblock():
        yield []


def in_a_thread(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def use(seen: list[Any]) -> None:
    with connections[OTHER].cursor() as cursor:
        cursor.execute("SELECT 1")
    assert connections[OTHER].connection is not None
    seen.append(connections[OTHER])


def break_off(seen: list[Any]) -> None:
    with closed_afterwards():
        use(seen)
        raise LookupError


def test_what_a_block_has_opened_is_closed_when_it_ends_or_fails(seen: list[Any]) -> None:
    def work() -> None:
        with closed_afterwards():
            use(seen)
        with pytest.raises(LookupError):
            break_off(seen)

    in_a_thread(work)
    assert [one.connection for one in seen] == [None, None]


def run(made: Tool) -> ToolResult:
    results: list[ToolResult] = []
    in_a_thread(lambda: results.append(made.run_beside(calling("ask"))))
    return results[0]


async def arun(made: Tool) -> ToolResult:
    first, second = await asyncio.gather(*(made.arun(calling("ask")) for _ in range(2)))
    assert first == second
    return first


@pytest.mark.parametrize("run", [run, async_to_sync(arun)])
@pytest.mark.parametrize("failing", [False, True])
def test_a_concurrent_tool_leaves_no_connection_behind(
    run: Callable[[Tool], ToolResult], failing: bool, seen: list[Any]
) -> None:
    @tool(concurrent=True)
    def ask() -> int:
        use(seen)
        return 1 // (not failing)

    assert run(ask).failed is failing
    assert {one.connection for one in seen} == {None}
