"""The command that lists and removes files that belong to no message."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import Storage, storages
from django.core.management import CommandError, call_command

from agent_memory.models import ConversationAttachment
from agent_memory.stores.database import DatabaseConversationStore, files
from agent_memory.testing import override_agent_memory
from agent_memory.testing.contract.attachments import PICTURE, turn_with
from tests.storages import BACKENDS, attachments_in

pytestmark = pytest.mark.django_db


@pytest.fixture(params=BACKENDS)
def storage(request: pytest.FixtureRequest, tmp_path: Path, settings: Any) -> Iterator[Storage]:
    with attachments_in(request.param, tmp_path, settings) as storage:
        yield storage


def run(*arguments: str) -> list[str]:
    out = StringIO()
    call_command("agent_memory_attachments", *arguments, stdout=out)
    return out.getvalue().splitlines()


def leave(storage: Storage, name: str = "left") -> str:
    """Leave a file as a process does that is killed before its commit."""
    return storage.save(f"{files.FOLDER}/{name}", ContentFile(b"left"))


def test_files_that_no_message_has_are_listed_and_swept(storage):
    DatabaseConversationStore().append("c", turn_with(PICTURE))
    named = ConversationAttachment.objects.get().stored_name
    left = [leave(storage, "a"), leave(storage, "b")]
    elsewhere = storage.save("others/file", ContentFile(b"a"))
    assert run("--hours", "0") == [*left, "Orphaned: 2"]
    assert all(storage.exists(name) for name in left)
    assert run("--sweep", "--hours", "0") == [*left, "Swept: 2"]
    assert not any(storage.exists(name) for name in left)
    assert storage.exists(named)
    assert storage.exists(elsewhere)
    assert run("--sweep", "--hours", "0") == ["Swept: 0"]


def test_a_file_of_less_than_a_day_may_be_one_that_a_turn_is_about_to_name(storage):
    left = leave(storage)
    assert run("--sweep") == ["Swept: 0"]
    assert storage.exists(left)


@pytest.mark.parametrize("use_tz", [True, False])
def test_the_age_of_a_file_is_told_in_projects_with_and_without_time_zones(
    storage, settings, use_tz
):
    settings.USE_TZ, settings.TIME_ZONE = use_tz, "America/New_York"
    leave(storage)
    assert run("--hours", "0.1") == ["Orphaned: 0"]
    assert run("--hours", "-0.1")[-1] == "Orphaned: 1"


def test_an_empty_storage_has_nothing_to_sweep(storage):
    assert run("--sweep") == ["Swept: 0"]


def test_a_storage_that_was_used_before_can_be_swept(storage):
    left = leave(storages["former"])
    with override_agent_memory(ATTACHMENTS={}):
        with pytest.raises(CommandError, match="--storage"):
            run()
        assert run("--storage", "former", "--hours", "0") == [left, "Orphaned: 1"]
        with pytest.raises(CommandError, match="unknown"):
            run("--storage", "unknown")
