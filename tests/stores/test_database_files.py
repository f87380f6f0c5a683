"""Attachments as files of a storage: written before the commit, and gone after it or without it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import Storage
from django.db import IntegrityError, OperationalError, transaction

from agent_memory.exceptions import AttachmentDoesNotExist
from agent_memory.messages import Part, TextPart
from agent_memory.models import Conversation, ConversationAttachment
from agent_memory.stores.database import DatabaseConversationStore, files, queries, retrying
from agent_memory.testing import override_agent_memory
from agent_memory.testing.contract.attachments import PICTURE, RENAMED, REPORT, turn_with
from agent_memory.testing.contract.base import plain_turn
from tests.settings import TEST_DATABASE
from tests.storages import BACKENDS, attachments_in
from tests.stores.test_database import ADA, statements
from tests.stores.test_database_attachments import Coach, provider, store

ROOT = Path(__file__).parent.parent.parent


__all__ = ["provider", "store"]


@pytest.fixture(params=BACKENDS)
def storage(request: pytest.FixtureRequest, tmp_path: Path, settings: Any) -> Iterator[Storage]:
    with attachments_in(request.param, tmp_path, settings) as storage:
        yield storage


def kept(storage: Storage) -> list[bytes]:
    """Return what the files of a storage hold."""
    try:
        _, names = storage.listdir(files.FOLDER)
    except FileNotFoundError:
        return []
    found = []
    for name in names:
        with storage.open(f"{files.FOLDER}/{name}") as file:
            found.append(file.read())
    return sorted(found)


def broken(*args: Any) -> None:
    raise IntegrityError("boom")


def test_a_storage_holds_the_bytes_and_the_database_their_names(storage, store):
    turn = turn_with(PICTURE, REPORT, RENAMED)
    store.append("c", turn)
    store.append("c", turn_with(RENAMED))
    assert kept(storage) == sorted([PICTURE.data, REPORT.data])
    assert [*ConversationAttachment.objects.values_list("data", "storage").distinct()] == [
        (None, "private")
    ]
    assert store.load("c", keep_last_turns=0)[:2] == turn.messages
    attachment, *_ = store.paginate_conversation_messages("c").items[-1].attachments
    assert store.read_attachment("c", attachment.id) == PICTURE.data


def test_names_of_files_tell_nothing_of_what_they_are(storage, store):
    store.append("secret conversation", turn_with(PICTURE))
    name = ConversationAttachment.objects.get().stored_name
    assert re.fullmatch(r"agent_memory/[0-9a-f]{32}", name)


def test_a_storage_takes_the_same_statements_and_one_more_before_them(storage, store, provider):
    coach = Coach().for_participant(ADA)
    assert len(statements(lambda: coach.prompt("a", attachments=[PICTURE]))) == 2 + 1
    assert len(statements(lambda: coach.prompt("b"))) == 4 + 1
    assert len(statements(lambda: coach.prompt("c", attachments=[REPORT]))) == 4 + 1 + 3


def test_what_was_stored_under_another_setting_is_found(storage, store):
    store.append("c", turn_with(PICTURE))
    with override_agent_memory(ATTACHMENTS={}):
        store.append("c", turn_with(REPORT))
        assert_told(store, PICTURE, REPORT)
    assert_told(store, PICTURE, REPORT)


def assert_told(store: DatabaseConversationStore, *parts: Part) -> None:
    users = [message for message in store.load("c") if message.role == "user"]
    assert [message.content[-1] for message in users] == [*parts]


def test_a_file_that_is_gone_is_a_line_for_the_model_and_a_named_error_for_a_reader(storage, store):
    store.append("c", turn_with(PICTURE, REPORT))
    row = ConversationAttachment.objects.get(size=PICTURE.size)
    storage.delete(row.stored_name)
    asked, _ = store.load("c")
    assert asked.content[1:] == (
        TextPart(text="[Here stood a file of type image that is gone: ä picture.png]"),
        REPORT,
    )
    with pytest.raises(AttachmentDoesNotExist, match="is gone"):
        store.read_attachment("c", row.public_id)


def test_a_turn_that_cannot_be_written_leaves_no_file_in_a_storage(storage, store, monkeypatch):
    store.append("c", turn_with(REPORT))
    reservation = store.reserve("c")
    with monkeypatch.context() as patched:
        patched.setattr("agent_memory.stores.database.queries.turn_rows.run", broken)
        with pytest.raises(IntegrityError):
            store.append("c", turn_with(PICTURE, REPORT), reservation=reservation)
    assert kept(storage) == [REPORT.data]


@pytest.mark.django_db(transaction=True)
def test_a_turn_that_is_tried_again_writes_its_files_once(storage, monkeypatch):
    store = DatabaseConversationStore()
    write, tries = queries.turn_rows.run, []

    def fail_once(*args: Any) -> Any:
        tries.append(len(kept(storage)))
        if len(tries) == 1:
            raise OperationalError("locked")
        return write(*args)

    monkeypatch.setattr(retrying, "is_passing", lambda error: True)
    monkeypatch.setattr(queries.turn_rows, "run", fail_once)
    turn = turn_with(PICTURE, REPORT)
    store.append("c", turn, reservation=store.reserve("c", create=True))
    assert tries == [2, 2]
    assert kept(storage) == sorted([PICTURE.data, REPORT.data])
    assert store.load("c") == turn.messages


def test_a_turn_that_was_committed_unseen_keeps_its_files(storage, store):
    store.append("c", plain_turn())
    reservation = store.reserve("c")
    store.load("c", reservation=reservation)
    turn = turn_with(PICTURE)
    first = store.append("c", turn, reservation=reservation)
    assert store.append("c", turn, reservation=reservation) == first
    assert kept(storage) == [PICTURE.data]


@pytest.mark.parametrize(
    "remove",
    [
        lambda store: store.clear("c"),
        lambda store: Conversation.objects.get(id="c").delete(),
        lambda store: Conversation.objects.filter(id="c").delete(),
    ],
    ids=["clear", "instance", "queryset"],
)
@pytest.mark.django_db(transaction=True)
def test_files_go_once_the_rows_that_name_them_are_gone_for_good(storage, remove):
    store = DatabaseConversationStore()
    store.append("c", turn_with(PICTURE, REPORT))
    store.append("other", turn_with(PICTURE))
    with transaction.atomic():
        remove(store)
        assert len(kept(storage)) == 3
        transaction.set_rollback(True)
    assert len(kept(storage)) == 3
    with transaction.atomic():
        remove(store)
        assert len(kept(storage)) == 3
    assert kept(storage) == [PICTURE.data]
    assert ConversationAttachment.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_discarded_turn_takes_its_files_from_the_storage(storage):
    store = DatabaseConversationStore()
    store.append("c", turn_with(REPORT))
    call = plain_turn().steps[0].model_copy(update={"items": ()})
    paused = turn_with(PICTURE, REPORT).model_copy(update={"status": "paused", "steps": (call,)})
    store.append("c", paused)
    store.settle("c", None, reservation=store.reserve("c", resume=True))
    assert kept(storage) == [REPORT.data]


@pytest.mark.django_db(transaction=True)
def test_a_storage_that_fails_does_not_undo_a_clearing(storage, monkeypatch):
    store = DatabaseConversationStore()
    store.append("c", turn_with(PICTURE))

    def fail(*args: Any) -> None:
        raise ConnectionError

    monkeypatch.setattr(type(storage), "delete", fail)
    store.clear("c")
    assert store.load("c") == ()
    assert kept(storage) == [PICTURE.data]


# Other processes.

BEGINNING = """
import hashlib, json, os, signal, sys
from django.conf import settings
settings.STORAGES = {**settings.STORAGES, "private": {
    "BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": sys.argv[1]}}}
settings.AGENT_MEMORY = {**settings.AGENT_MEMORY, "ATTACHMENTS": {"STORAGE": sys.argv[2] or None}}
import django
django.setup()
from agent_memory.stores.database import DatabaseConversationStore, queries
from agent_memory.testing.contract.attachments import PICTURE, RENAMED, turn_with
store = DatabaseConversationStore()
"""
APPENDING = """
store.append("c", turn_with(PICTURE, RENAMED))
"""
DYING = """
queries.turn_rows.run = lambda *args: os.kill(os.getpid(), signal.SIGKILL)
store.append("c", turn_with(PICTURE, RENAMED))
"""
LOADING = """
asked = store.load("c")[0]
print(json.dumps([
    [part.file_name, part.provider_options, hashlib.sha256(part.data).hexdigest()]
    for part in asked.content[1:]
]))
"""
SWEEPING = """
from django.core.management import call_command
call_command("agent_memory_attachments", "--sweep", "--hours", "0")
"""


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., str]:
    """Run code in a process of its own, on a database and a storage in files."""
    if TEST_DATABASE != "sqlite":
        pytest.skip("the example has an SQLite file of its own: uv run pytest")
    env = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "example_project.settings",
        "EXAMPLE_DATABASE": str(tmp_path / "db.sqlite3"),
    }

    def run(code: str, alias: str = "", ended: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-c", BEGINNING + code, str(tmp_path / "files"), alias],
            cwd=ROOT,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == ended, done.stderr
        return done.stdout

    run("from django.core.management import call_command\ncall_command('migrate', verbosity=0)")
    return run


@pytest.mark.heavy
@pytest.mark.parametrize("alias", ["", "private"], ids=["database", "storage"])
def test_a_new_process_loads_what_another_one_stored(run, alias):
    run(APPENDING, alias)
    told = json.loads(run(LOADING, alias))
    assert told == [
        [part.file_name, part.provider_options, hashlib.sha256(part.data).hexdigest()]
        for part in (PICTURE, RENAMED)
    ]


@pytest.mark.heavy
def test_what_a_killed_process_leaves_in_a_storage_is_swept(run, tmp_path):
    run(DYING, "private", ended=-signal.SIGKILL)
    folder = tmp_path / "files" / files.FOLDER
    assert len([*folder.iterdir()]) == 2
    assert run(SWEEPING, "private").endswith("Swept: 2\n")
    assert [*folder.iterdir()] == []
    run(APPENDING, "private")
    assert run(SWEEPING, "private") == "Swept: 0\n"
    assert len(json.loads(run(LOADING, "private"))) == 2
