"""The store contract, to be run against a store of your own."""

from __future__ import annotations

from functools import cached_property
from typing import Any, cast

from asgiref.sync import async_to_sync

from agent_memory.stores.base import ConversationStore
from agent_memory.testing.contract import (
    ApprovalPromises,
    AttachmentPromises,
    ConversationPromises,
    DecisionPromises,
    FidelityPromises,
    FilePromises,
    HistoryPromises,
    InterruptionPromises,
    JournalPromises,
    KeyPromises,
    LatePromises,
    OwnershipPromises,
    PagePromises,
    ReservationPromises,
    ResumingPromises,
    SettlingPromises,
    TurnPromises,
)
from agent_memory.testing.contract.base import Promises


class BasicConversationStoreContract(
    HistoryPromises, FidelityPromises, FilePromises, ReservationPromises
):
    """
    What a store of three methods promises, one test each.

    Mix it into a test case that suits the store and define ``make_store``::

        class FolderStoreTests(BasicConversationStoreContract, SimpleTestCase):
            def make_store(self):
                return FolderStore(folder=tempfile.mkdtemp())
    """


class ConversationStoreContract(
    BasicConversationStoreContract,
    TurnPromises,
    KeyPromises,
    JournalPromises,
    InterruptionPromises,
    ApprovalPromises,
    DecisionPromises,
    ResumingPromises,
    SettlingPromises,
    LatePromises,
    ConversationPromises,
    OwnershipPromises,
    PagePromises,
    AttachmentPromises,
):
    """
    All that ``ConversationStore`` promises, one test each.

    Mix it into a test case that suits the store and define ``make_store``::

        class RedisStoreTests(ConversationStoreContract, SimpleTestCase):
            def make_store(self):
                return RedisConversationStore()

    Where several workers can share a store, ``reopen`` returns one more object
    on what ``make_store`` made. ``participants`` may be overridden: two
    ``Participant`` values with the same key and different types, such as the
    store can hold.
    """


class _Awaited:
    """A store whose methods run their async twins."""

    def __init__(self, store: ConversationStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        atwin = getattr(self._store, f"a{name}", None)
        return getattr(self._store, name) if atwin is None else async_to_sync(atwin)


class _ByTwins(Promises):
    """Keeps promises by the async twins of a store."""

    @cached_property
    def store(self) -> ConversationStore:
        return cast("ConversationStore", _Awaited(self.make_store()))

    @property
    def elsewhere(self) -> ConversationStore:
        return cast("ConversationStore", _Awaited(self.reopen()))


class AsyncBasicConversationStoreContract(_ByTwins, BasicConversationStoreContract):
    """The promises of a store of three methods, kept by the async twins."""


class AsyncConversationStoreContract(_ByTwins, ConversationStoreContract):
    """All promises, kept by the async twins."""
