"""The router: the app's tables in a database of their own, and all that works there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType

from agent_memory import conf
from agent_memory.models import Conversation
from agent_memory.routers import MemoryRouter
from agent_memory.testing import override_agent_memory

ROOT = Path(__file__).parent.parent

TWO_DATABASES = """
import django
django.setup()
from tests.two_databases import main
main()
"""

router = MemoryRouter()


@pytest.fixture(scope="module")
def seen() -> Any:
    """Return what was seen in a process with two databases."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", TWO_DATABASES],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings_two_databases"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# Where things are routed.


def test_the_apps_rows_are_read_and_written_in_the_database_that_the_setting_names() -> None:
    with override_agent_memory(DATABASE="memory"):
        assert router.db_for_read(Conversation) == "memory"
        assert router.db_for_write(Conversation) == "memory"


def test_rows_of_other_apps_are_left_to_other_routers() -> None:
    with override_agent_memory(DATABASE="memory"):
        for model in (User, ContentType):
            assert router.db_for_read(model) is None
            assert router.db_for_write(model) is None


def test_without_the_setting_everything_is_left_to_other_routers() -> None:
    with override_agent_memory(DATABASE=None):
        assert router.db_for_read(Conversation) is None
        assert router.db_for_write(Conversation) is None
        for app_label in ("agent_memory", "contenttypes", "auth"):
            assert router.allow_migrate("default", app_label) is None


@pytest.mark.parametrize(
    ("alias", "app_label", "allowed"),
    [
        ("memory", "agent_memory", True),
        ("default", "agent_memory", False),
        ("memory", "contenttypes", True),
        ("default", "contenttypes", None),
        ("memory", "auth", None),
        ("default", "auth", None),
    ],
)
def test_tables_are_made_where_rows_are_kept_with_content_types_beside_them(
    alias: str, app_label: str, allowed: bool | None
) -> None:
    with override_agent_memory(DATABASE="memory"):
        assert router.allow_migrate(alias, app_label) is allowed


# What works in a second database.


@pytest.mark.heavy
def test_migrate_makes_the_tables_and_the_content_types_there_and_nothing_else(seen: Any) -> None:
    assert sorted(seen["tables of memory"]) == sorted(
        [*conf.TABLES.values(), "django_content_type", "django_migrations"]
    )


@pytest.mark.heavy
def test_migrate_makes_no_table_of_the_app_in_the_first_database(seen: Any) -> None:
    assert not set(seen["tables of default"]) & set(conf.TABLES.values())
    assert {"auth_user", "django_content_type"} <= set(seen["tables of default"])


@pytest.mark.heavy
def test_no_check_objects_to_two_databases(seen: Any) -> None:
    assert seen["checks"] == []


@pytest.mark.heavy
def test_turns_and_pages_work_there_even_while_the_first_database_is_in_a_transaction(
    seen: Any,
) -> None:
    assert seen["answers"] == ["Noted.", "Blue."]
    assert seen["page"] == [
        ["Blue.", None],
        ["Which colour?", "auth.user"],
        ["Noted.", None],
        ["Remember: blue.", "auth.user"],
    ]
    assert (seen["rows of default"], seen["rows of memory"]) == ([], [1, 4])
    assert seen["rows after clearing"] == [1, 0]


@pytest.mark.heavy
def test_participants_are_read_from_their_own_database(seen: Any) -> None:
    assert seen["content types differ"]
    assert seen["row is from"] == "memory"
    assert seen["participant"] == ["ann", "default"]
    assert seen["prefetched"] == "ann"
    assert seen["found by participant"]


@pytest.mark.heavy
def test_a_participant_that_is_set_is_filed_under_the_content_type_beside_the_row(
    seen: Any,
) -> None:
    assert seen["set"] == "ann"


@pytest.mark.heavy
def test_a_content_type_of_another_database_is_refused(seen: Any) -> None:
    assert "router prevents this relation" in seen["a type of elsewhere"]


@pytest.mark.heavy
def test_participants_of_another_database_cannot_be_joined_and_are_refused(seen: Any) -> None:
    assert "auth.User is in the database 'default'" in seen["participants of elsewhere"]


@pytest.mark.heavy
def test_the_admin_shows_conversations_and_participants_from_both(seen: Any) -> None:
    assert seen["admin"] == [True, True]
    assert seen["admin finds"]
    assert seen["admin downloads"] == ["auth.user", 4]


@pytest.mark.heavy
def test_turns_wait_for_a_person_there_who_is_read_from_elsewhere(seen: Any) -> None:
    assert (seen["waits"], seen["waits for ann"]) == (["call-1"], 1)
    assert seen["decided by"] == ["ann", "memory"]


@pytest.mark.heavy
def test_conversations_are_handed_over_there_and_become_nobodys(seen: Any) -> None:
    assert seen["handed over"] == "ann"
    assert seen["nobody"] == [None, None]


@pytest.mark.heavy
def test_the_conversations_of_instances_are_prefetched_from_there(seen: Any) -> None:
    assert seen["theirs"] == [["a", "memory"], ["b", "memory"]]


@pytest.mark.heavy
def test_who_has_conversations_there_is_told_by_their_keys_and_not_by_a_join(seen: Any) -> None:
    assert seen["who has some"] == 2
    assert "testapp.Patient is in the database 'default'" in seen["an outer query of elsewhere"]


@pytest.mark.heavy
def test_policies_are_followed_there_once_the_deletion_is_committed(seen: Any) -> None:
    assert seen["Patient is gone"] == [[1, 1, 1], [1, 1, 1], [1, 0, 1]]
    assert seen["Visitor is gone"] == [[1, 1, 1], [1, 1, 1], [0, 0, 0]]
