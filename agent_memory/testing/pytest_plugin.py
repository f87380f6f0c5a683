"""Fixtures for pytest: a store and a provider for one test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from agent_memory.stores import ConversationStore
    from agent_memory.testing import ScriptedProvider

pytest.register_assert_rewrite("agent_memory.testing.contract")


@pytest.fixture
def agent_memory_store() -> Iterator[ConversationStore]:
    """Let every agent use a fresh store in memory, and return it."""
    from agent_memory.testing import override_store

    with override_store() as store:
        yield store


@pytest.fixture
def scripted_provider() -> Iterator[ScriptedProvider]:
    """Let every agent use a provider whose script the test ``extend()``s, and return it."""
    from agent_memory.testing import ScriptedProvider, override_provider

    provider = ScriptedProvider()
    with override_provider(provider):
        yield provider
