"""Files that processes share: killed, contending and forked ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent_memory.exceptions import ConversationBusy
from agent_memory.records import Reservation
from agent_memory.stores.file import FileConversationStore
from agent_memory.testing.contract.base import plain_turn
from tests.stores.test_transcripts import WORKERS, at_once

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).parent.parent.parent


def run(kind: str, folder: Path, rounds: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.stores.file_workers", kind, str(folder), str(rounds)],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_what_killed_workers_were_told_is_stored_is_there(tmp_path):
    run("kill", tmp_path, 5)


def test_a_hundred_kills_lose_nothing_that_was_told(tmp_path):
    run("kill", tmp_path, 100)


def test_processes_that_share_a_folder_take_turns_and_mix_nothing(tmp_path):
    run("contend", tmp_path, 15)


def test_a_process_may_fork_while_its_threads_write(tmp_path):
    run("fork", tmp_path, 10)


@pytest.fixture
def store(tmp_path: Path) -> FileConversationStore:
    return FileConversationStore(folder=tmp_path, fsync=False)


def test_threads_that_append_interleave_no_turn(store, tmp_path):
    stores = [store, FileConversationStore(folder=tmp_path, fsync=False)]

    def work(number: int) -> None:
        for count in range(10):
            stores[number % 2].append("one", plain_turn(f"{number}.{count}"))

    assert at_once(work) == [None] * WORKERS
    messages = store.load("one")
    pairs = [*zip(messages[::2], messages[1::2], strict=True)]
    assert len(pairs) == WORKERS * 10
    assert all(answer.text == f"{asked.text}!" for asked, answer in pairs)


def test_one_of_many_threads_gets_the_next_turn(store, tmp_path):
    stores = [FileConversationStore(folder=tmp_path, fsync=False) for _ in range(WORKERS)]
    for conversation_id in ("old", "new"):
        store.append("old", plain_turn())
        got = at_once(lambda n, key=conversation_id: stores[n].reserve(key, create=True))
        assert sum(isinstance(each, Reservation) for each in got) == 1
        assert sum(isinstance(each, ConversationBusy) for each in got) == WORKERS - 1
        store.clear("old")
