"""The database store keeps the contract, in both colours, and in projects without time zones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.test import TestCase

from agent_memory.stores.database import DatabaseConversationStore
from agent_memory.testing import AsyncConversationStoreContract, ConversationStoreContract

ROOT = Path(__file__).parent.parent.parent
LOCAL_TIME = "tests.settings_local_time"


class DatabaseConversationStoreTests(ConversationStoreContract, TestCase):
    def make_store(self) -> DatabaseConversationStore:
        return DatabaseConversationStore()

    def reopen(self) -> DatabaseConversationStore:
        return DatabaseConversationStore()


@pytest.mark.heavy
class AsyncDatabaseConversationStoreTests(AsyncConversationStoreContract, TestCase):
    def make_store(self) -> DatabaseConversationStore:
        return DatabaseConversationStore()

    def reopen(self) -> DatabaseConversationStore:
        return DatabaseConversationStore()


@pytest.mark.heavy
def test_the_contract_holds_in_a_project_that_keeps_times_without_a_zone():
    selection = f"{__file__}::{DatabaseConversationStoreTests.__name__}"
    options = ("-q", "-n0", "--create-db", "-p", "no:cacheprovider", f"--ds={LOCAL_TIME}")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, selection],
        cwd=ROOT,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": LOCAL_TIME},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
