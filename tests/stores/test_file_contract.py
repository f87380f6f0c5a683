"""The file store keeps the contract, with what it has in memory and with what is in its files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.test import SimpleTestCase

from agent_memory.stores.file import FileConversationStore
from agent_memory.testing import AsyncConversationStoreContract, ConversationStoreContract


class ForgetfulStore(FileConversationStore):
    """A file store that reads all of a file each time."""

    @contextmanager
    def working_on(self, conversation_id: str) -> Iterator[None]:
        with super().working_on(conversation_id):
            yield
        if conversation_id not in self._working:
            self._forget(conversation_id)


class InFolder(SimpleTestCase):
    store_class = FileConversationStore

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def make_store(self) -> FileConversationStore:
        return self.store_class(folder=self.folder, fsync=False)

    def reopen(self) -> FileConversationStore:
        return self.make_store()


@pytest.mark.heavy
class FileConversationStoreTests(InFolder, ConversationStoreContract):
    store_class = ForgetfulStore


@pytest.mark.heavy
class AsyncFileConversationStoreTests(InFolder, AsyncConversationStoreContract):
    pass
