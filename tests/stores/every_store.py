"""Every store, new and as another process has it, for property tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from agent_memory.storable import UNSTORABLE
from agent_memory.stores import ConversationStore
from agent_memory.stores.database import DatabaseConversationStore
from agent_memory.stores.file import FileConversationStore
from agent_memory.stores.inmemory import InMemoryConversationStore

ANYTHING = settings(
    deadline=None,
    max_examples=12,
    suppress_health_check=[*HealthCheck],
    phases=[Phase.explicit, Phase.generate],  # to shrink a whole turn takes minutes
)


@pytest.fixture(params=["database", "file", "in memory"])
def store(request: pytest.FixtureRequest, db: None, tmp_path: Path) -> ConversationStore:
    if request.param == "database":
        return DatabaseConversationStore()
    if request.param == "file":
        return FileConversationStore(folder=tmp_path, fsync=False)
    return InMemoryConversationStore()


def reopened(store: ConversationStore) -> ConversationStore:
    """Return the store as another process has it, which has nothing of it in memory."""
    if isinstance(store, FileConversationStore):
        return FileConversationStore(folder=store.folder, fsync=False)
    return store


def is_storable(text: str, longest: int = 255) -> bool:
    return len(text) <= longest and not UNSTORABLE.search(text)
