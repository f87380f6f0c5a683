"""The store contract; ``test_elsewhere`` runs it in processes with other databases and tables."""

from __future__ import annotations

from django.conf import settings
from django.test import TestCase

from agent_memory.stores.database import DatabaseConversationStore
from agent_memory.testing import ConversationStoreContract


class ElsewhereTests(ConversationStoreContract, TestCase):
    databases = set(settings.DATABASES)

    def make_store(self) -> DatabaseConversationStore:
        return DatabaseConversationStore()

    def reopen(self) -> DatabaseConversationStore:
        return DatabaseConversationStore()
