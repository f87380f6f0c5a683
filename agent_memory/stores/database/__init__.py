"""The default store: every row, every statement and every transaction of the app."""

from agent_memory.stores.database.store import DatabaseConversationStore

__all__ = ["DatabaseConversationStore"]
