"""The store of the rows that the admin shows."""

from __future__ import annotations

from agent_memory.stores import get_store
from agent_memory.stores.database import DatabaseConversationStore


def store_of_rows() -> DatabaseConversationStore:
    """Return the project's store, or the app's where the project keeps conversations elsewhere."""
    store = get_store()
    return store if isinstance(store, DatabaseConversationStore) else DatabaseConversationStore()
