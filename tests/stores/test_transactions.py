"""What a transaction costs, and what a power cut may take: of a turn on SQLite its reservation."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import connection, connections, transaction
from django.utils import timezone

from agent_memory.models import Conversation, ConversationMessage
from agent_memory.records import Heading, new_id
from agent_memory.stores.database import appending, reserving
from agent_memory.stores.database.transactions import BEGINNING, durable, fleeting
from tests.stores.test_database import a_turn

FULL, NORMAL = 2, 1

Opened = Callable[[str], str]


@pytest.fixture
def opened(tmp_path, django_db_blocker) -> Iterator[Opened]:
    """Open a SQLite file with a journal of some mode, as the database of this alias."""
    alias = "on_disk"

    def opened(mode: str) -> str:
        connections.databases[alias] = {
            **connections.databases["default"],
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": tmp_path / "db.sqlite3",
            "OPTIONS": {"init_command": f"PRAGMA journal_mode={mode}; PRAGMA synchronous=FULL"},
        }
        return alias

    with django_db_blocker.unblock():
        yield opened
    connections[alias].close()
    del connections[alias]
    del connections.databases[alias]


def level(using: str) -> int:
    connections[using].ensure_connection()
    ((found,),) = connections[using].connection.execute("PRAGMA synchronous")
    return int(found)


def test_only_the_reservation_of_a_turn_does_not_wait_for_the_disk(opened):
    using = opened("wal")
    with connections[using].schema_editor() as editor:
        for model in (ContentType, Conversation, ConversationMessage):
            editor.create_model(model)
    heading = Heading("kept")
    wanted = reserving.Wanted(using, heading, new_id(), create=True)
    appending.append_directly(using, heading, a_turn())
    waited: list[tuple[str, int]] = []

    def note(execute, sql, params, many, context):
        waited.append((sql.split()[0], level(using)))
        return execute(sql, params, many, context)

    with connections[using].execute_wrapper(note):
        reservation = reserving.reserve(wanted)
        appending.append(using, heading, a_turn(), reservation)
    assert [each for each in waited if each[0] != "BEGIN"] == [
        ("UPDATE", NORMAL),
        ("UPDATE", FULL),
        ("INSERT", FULL),
    ]
    assert level(using) == FULL


def test_the_level_comes_back_after_an_error(opened):
    using = opened("wal")
    with pytest.raises(sqlite3.OperationalError), fleeting(using):
        connections[using].connection.execute("SELECT nothing")
    assert level(using) == FULL


@pytest.mark.parametrize("mode", ["delete", "truncate", "memory"])
def test_without_a_write_ahead_log_each_commit_waits(opened, mode):
    using = opened(mode)
    with fleeting(using):
        assert level(using) == FULL


def test_a_connection_made_anew_is_asked_anew(opened):
    using = opened("wal")
    with fleeting(using):
        assert level(using) == NORMAL
    connections[using].close()
    connections[using].settings_dict["OPTIONS"] = {
        "init_command": "PRAGMA journal_mode=delete; PRAGMA synchronous=FULL"
    }
    with fleeting(using):
        assert level(using) == FULL


def test_a_lower_level_of_the_project_stays(opened):
    using = opened("wal")
    connections[using].ensure_connection()
    connections[using].connection.execute("PRAGMA synchronous = OFF")
    with fleeting(using):
        assert level(using) == 0
    assert level(using) == 0


@pytest.mark.parametrize("of_test_case", [False, True])
def test_inside_a_transaction_the_level_stays(opened, of_test_case):
    using = opened("wal")
    block = transaction.atomic(using)
    block._from_testcase = of_test_case
    with block, fleeting(using):
        assert level(using) == FULL


on_mysql = pytest.mark.skipif(
    connection.vendor != "mysql",  # how others begin is not touched
    reason="needs MariaDB or MySQL: TEST_DATABASE=mariadb uv run --extra mysql pytest",
)


def asked() -> int:
    """Return how often this connection has asked its server."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW SESSION STATUS LIKE 'Questions'")
        return int(cursor.fetchone()[1])


@on_mysql
def test_mariadb_is_asked_once_to_begin_a_transaction_and_once_to_end_it(transactional_db):
    before = asked()
    with durable("default"), connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    assert asked() - before == len(["BEGIN", "SELECT", "COMMIT", "SHOW"])


@on_mysql
@pytest.mark.parametrize("fails", [False, True])
def test_afterwards_a_connection_is_as_it_was(transactional_db, fails):
    try:
        with durable("default"):
            Conversation.objects.create(id="there", last_activity=timezone.now())
            if fails:
                raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    assert Conversation.objects.exists() is not fails
    assert connection.get_autocommit()
    assert connection.connection.get_autocommit()
    assert not hasattr(connection, BEGINNING)
