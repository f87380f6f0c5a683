"""The system checks of databases: where conversations are kept, and under which names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.core.checks import CheckMessage, Error, Warning, run_checks  # noqa: A004  Django's own name
from django.core.checks.registry import registry
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.db.migrations.recorder import MigrationRecorder
from django.test import override_settings

from agent_memory import checks, conf
from agent_memory.testing import override_agent_memory

IN_MEMORY = "agent_memory.stores.inmemory.InMemoryConversationStore"
MEMORY_ROUTER = "agent_memory.routers.MemoryRouter"


class EverywhereRouter:
    def db_for_write(self, model: Any, **hints: Any) -> str:
        return "default"


class NoTypesRouter:
    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        return False if app_label == "contenttypes" else None


class OtherRouter:
    """Keeps conversations in another database, and content types in the first one only."""

    def db_for_write(self, model: Any, **hints: Any) -> str | None:
        return "other" if model._meta.app_label == "agent_memory" else None

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        return db == "default" if app_label == "contenttypes" else None


def told(*numbers: str) -> list[CheckMessage]:
    """Return what the checks say that need no database; other numbers are unexpected."""
    messages = run_checks(tags=["agent_memory"], databases=[])
    assert [message.id for message in messages] == [f"agent_memory.{one}" for one in numbers]
    return messages


# W002, E006, E007: the database of the conversations.


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the project have a second database, ``other``."""
    monkeypatch.setitem(connections.databases, "other", dict(connections.databases["default"]))


def atomic(monkeypatch: pytest.MonkeyPatch, alias: str) -> None:
    monkeypatch.setitem(connections.databases[alias], "ATOMIC_REQUESTS", True)


def test_atomic_requests_are_warned_of_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    atomic(monkeypatch, "default")
    (warning,) = told("W002")
    assert isinstance(warning, Warning)
    assert "@transaction.non_atomic_requests," in str(warning.hint)


@pytest.mark.usefixtures("other")
def test_atomic_requests_matter_on_the_database_of_the_conversations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    atomic(monkeypatch, "other")
    assert told() == []
    with (
        override_settings(DATABASE_ROUTERS=[MEMORY_ROUTER]),
        override_agent_memory(DATABASE="other"),
    ):
        (warning,) = told("W002")
    assert '@transaction.non_atomic_requests(using="other")' in str(warning.hint)


def test_atomic_requests_do_not_matter_to_another_store(monkeypatch: pytest.MonkeyPatch) -> None:
    atomic(monkeypatch, "default")
    with override_agent_memory(STORE=IN_MEMORY), override_settings(DEBUG=True):
        assert told() == []


def test_a_database_that_does_not_exist_is_an_error_that_names_those_that_do() -> None:
    with override_agent_memory(DATABASE="nowhere"):
        (error,) = told("E006")
    assert isinstance(error, Error)
    assert "'nowhere'" in error.msg
    assert error.hint == "DATABASES has 'default'."


@pytest.mark.usefixtures("other")
@pytest.mark.parametrize(
    "routers",
    [
        [],
        [f"{__name__}.EverywhereRouter", MEMORY_ROUTER],
        [f"{__name__}.NoTypesRouter", MEMORY_ROUTER],
    ],
)
def test_conversations_that_are_not_routed_to_their_database_are_an_error(
    routers: list[str],
) -> None:
    with override_agent_memory(DATABASE="other"), override_settings(DATABASE_ROUTERS=routers):
        (error,) = told("E007")
    assert isinstance(error, Error)
    assert f"Add '{MEMORY_ROUTER}' to DATABASE_ROUTERS" in str(error.hint)


@pytest.mark.usefixtures("other")
def test_content_types_that_a_router_of_your_own_leaves_behind_are_an_error() -> None:
    with override_settings(DATABASE_ROUTERS=[f"{__name__}.OtherRouter"]):
        (error,) = told("E007")
        assert "content types that they refer to, are not migrated in the database 'other'" in (
            error.msg
        )
        with override_agent_memory(STORE=IN_MEMORY), override_settings(DEBUG=True):
            assert told() == []


@pytest.mark.usefixtures("other")
@pytest.mark.parametrize(
    "routers", [[MEMORY_ROUTER], [MEMORY_ROUTER, f"{__name__}.EverywhereRouter"]]
)
def test_conversations_that_are_routed_to_their_database_are_no_error(routers: list[str]) -> None:
    with override_agent_memory(DATABASE="other"), override_settings(DATABASE_ROUTERS=routers):
        assert told() == []


# E008: tables that were renamed too late.


@contextmanager
def renamed(old: str, new: str) -> Iterator[None]:
    """Rename a table in the database, for a block."""
    quote = connection.ops.quote_name
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {quote(old)} RENAME TO {quote(new)}")
        try:
            yield
        finally:
            cursor.execute(f"ALTER TABLE {quote(new)} RENAME TO {quote(old)}")


@contextmanager
def unrecorded() -> Iterator[None]:
    """Let no migration of the app be recorded, for a block."""
    applied = MigrationRecorder.Migration.objects.filter(app="agent_memory")
    rows = list(applied)
    applied.delete()
    try:
        yield
    finally:
        MigrationRecorder.Migration.objects.bulk_create(rows)


@pytest.mark.django_db(transaction=True)
def test_a_table_that_is_not_there_under_its_present_name_is_an_error() -> None:
    table = conf.table("messages")
    with renamed(table, "chat_messages"):
        (error,) = checks.check_tables(databases=["default"])
        with pytest.raises(CommandError, match="E008"):
            call_command("check", databases=["default"])
        assert checks.check_tables(databases=None) == []
    assert isinstance(error, Error)
    assert table in error.msg
    assert "before the first migrate only" in str(error.hint)


@pytest.mark.django_db(transaction=True)
def test_tables_that_are_yet_to_be_migrated_are_no_error() -> None:
    with renamed(conf.table("messages"), "chat_messages"), unrecorded():
        assert checks.check_tables(databases=["default"]) == []


@pytest.mark.django_db
def test_tables_that_are_where_they_should_be_are_no_error() -> None:
    assert checks.check_tables(databases=["default"]) == []


@pytest.mark.django_db
@pytest.mark.usefixtures("other")
def test_a_database_that_keeps_no_conversations_needs_no_tables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nothing_else = lambda *args: ["django_migrations"]  # noqa: E731  short
    monkeypatch.setattr(connection.introspection, "table_names", nothing_else)
    with override_settings(DATABASE_ROUTERS=[MEMORY_ROUTER]):
        assert checks.check_tables(databases=["default"])
        with override_agent_memory(DATABASE="other"):
            assert checks.check_tables(databases=["default"]) == []


def test_what_asks_the_database_runs_only_when_a_database_is_named() -> None:
    tags = {check: check.tags for check in registry.get_checks()}
    assert tags[checks.check_tables] == ("database",)
    assert "database" not in tags[checks.check_database]
