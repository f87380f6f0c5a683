"""The store contract, to be run against a store of your own; and a store for tests."""

from __future__ import annotations

from functools import cached_property
from typing import Any, cast

from asgiref.sync import async_to_sync

from agent_memory.stores.base import ConversationStore
from agent_memory.testing.contract import (
    ConversationPromises,
    FidelityPromises,
    HistoryPromises,
    OwnershipPromises,
    PagePromises,
    ReservationPromises,
    TurnPromises,
)


class ConversationStoreContract(
    HistoryPromises,
    FidelityPromises,
    ReservationPromises,
    TurnPromises,
    ConversationPromises,
    OwnershipPromises,
    PagePromises,
):
    """
    All that ``ConversationStore`` promises, one test each.

    Mix it into a test case that suits the store and define ``make_store``::

        class RedisStoreTests(ConversationStoreContract, SimpleTestCase):
            def make_store(self):
                return RedisConversationStore()

    ``participants`` may be overridden: two ``Participant`` values with the same
    key and different types, such as the store can hold.
    """


class _Awaited:
    """A store whose methods run their async twins."""

    def __init__(self, store: ConversationStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        atwin = getattr(self._store, f"a{name}", None)
        return getattr(self._store, name) if atwin is None else async_to_sync(atwin)


class AsyncConversationStoreContract(ConversationStoreContract):
    """The same promises, kept by the async twins."""

    @cached_property
    def store(self) -> ConversationStore:
        return cast("ConversationStore", _Awaited(self.make_store()))
