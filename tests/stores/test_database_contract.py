"""The database store keeps the contract, in both colours."""

from __future__ import annotations

from django.test import TestCase

from agent_memory.stores.database import DatabaseConversationStore
from agent_memory.testing.stores import AsyncConversationStoreContract, ConversationStoreContract


class DatabaseConversationStoreTests(ConversationStoreContract, TestCase):
    def make_store(self) -> DatabaseConversationStore:
        return DatabaseConversationStore()


class AsyncDatabaseConversationStoreTests(AsyncConversationStoreContract, TestCase):
    def make_store(self) -> DatabaseConversationStore:
        return DatabaseConversationStore()
