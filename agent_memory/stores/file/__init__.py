"""Conversations in files, a folder of them, for any number of processes of one machine."""

from agent_memory.stores.file.store import FileConversationStore

__all__ = ["FileConversationStore"]
