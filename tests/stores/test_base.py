"""A store of three methods, in either colour, is a store."""

from __future__ import annotations

import asyncio
import inspect
import threading
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from agent_memory.exceptions import ConversationBusy, ConversationDoesNotExist
from agent_memory.history import window
from agent_memory.messages import Message, Turn
from agent_memory.records import Heading, Reservation, StoredTurn, check_conversation_id, new_id
from agent_memory.stores.base import ConversationStore
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.testing.contract import (
    FidelityPromises,
    HistoryPromises,
    ReservationPromises,
)
from agent_memory.testing.contract.base import plain_turn
from agent_memory.testing.stores import AsyncConversationStoreContract

TWINS = {
    *(
        "load",
        "append",
        "clear",
        "reserve",
        "renew",
        "release",
        "journal",
        "create",
        "get",
        "rename",
    ),
    *("list_conversations", "latest_conversation_id", "conversation_belongs_to"),
    "paginate_conversation_messages",
}


class ThreeMethods(ConversationStore):
    """As small as a store may be."""

    def __init__(self) -> None:
        super().__init__()
        self.histories: dict[str, tuple[Turn, ...]] = {}

    def load(
        self,
        conversation_id: str,
        *,
        keep_last_turns: int = 0,
        reservation: Reservation | None = None,
    ) -> tuple[Message, ...]:
        turns = self.histories.get(check_conversation_id(conversation_id), ())
        messages = [message for turn in turns for message in turn.messages]
        copies = tuple(message.model_copy(deep=True) for message in messages)
        return window(copies, keep_last_turns)

    def append(
        self, conversation: Heading | str, turn: Turn, *, reservation: Reservation | None = None
    ) -> StoredTurn:
        heading = Heading.of(conversation)
        own = None if reservation else self.reserve(heading.id, create=True)
        try:
            before = self.histories.get(heading.id, ())
            assert turn.messages
            self.histories[heading.id] = (*before, turn.model_copy(deep=True))
        finally:
            if own:
                self.release(own)
        turn_id = (reservation or own).turn_id
        return StoredTurn(heading.id, turn_id, new_id(), new_id(), created=not before)

    def clear(self, conversation_id: str) -> None:
        self.histories.pop(check_conversation_id(conversation_id), None)


class ThreeAsyncMethods(ConversationStore):
    """As small as a store may be that awaits."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = ThreeMethods()

    async def aload(self, conversation_id: str, **kwargs: Any) -> tuple[Message, ...]:
        await asyncio.sleep(0)
        return self.kept.load(conversation_id, **kwargs)

    async def aappend(self, conversation: Any, turn: Turn, **kwargs: Any) -> StoredTurn:
        await asyncio.sleep(0)
        return self.kept.append(conversation, turn, **kwargs)

    async def aclear(self, conversation_id: str) -> None:
        await asyncio.sleep(0)
        self.kept.clear(conversation_id)


class TestThreeMethods(HistoryPromises, FidelityPromises, ReservationPromises):
    def make_store(self) -> ConversationStore:
        return ThreeMethods()


class TestThreeMethodsAwaited(HistoryPromises, FidelityPromises, ReservationPromises):
    store = AsyncConversationStoreContract.store

    def make_store(self) -> ConversationStore:
        return ThreeMethods()


class TestThreeAsyncMethods(HistoryPromises, FidelityPromises, ReservationPromises):
    def make_store(self) -> ConversationStore:
        return ThreeAsyncMethods()


class TestThreeAsyncMethodsAwaited(HistoryPromises, FidelityPromises, ReservationPromises):
    store = AsyncConversationStoreContract.store

    def make_store(self) -> ConversationStore:
        return ThreeAsyncMethods()


def test_every_method_has_a_twin_that_is_awaited():
    public = {name for name in vars(ConversationStore) if name[0] != "_"}
    methods = {name for name in public if inspect.isfunction(getattr(ConversationStore, name))}
    twins = {name for name in methods if name[0] == "a" and name[1:] in methods}
    assert {name[1:] for name in twins} == TWINS
    assert methods - twins - TWINS == {"hop", "participant_of"}
    for name in twins:
        twin = getattr(ConversationStore, name)
        assert inspect.iscoroutinefunction(twin)
        assert (twin.__name__, twin.__doc__) == (name, f"See {name[1:]}().")


def test_a_twin_runs_what_a_subclass_wrote_on_the_thread_of_its_caller():
    class Traced(ThreeMethods):
        def clear(self, conversation_id: str) -> None:
            self.seen = (conversation_id, threading.current_thread())

    store = Traced()
    async_to_sync(store.aclear)("one")
    assert store.seen == ("one", threading.current_thread())


@pytest.mark.parametrize(
    ("method", "call"),
    [
        ("load", lambda store: store.load("one")),
        ("append", lambda store: store.append("one", plain_turn())),
        ("clear", lambda store: store.clear("one")),
        ("create", lambda store: store.create("one")),
        ("get", lambda store: store.get("one")),
        ("rename", lambda store: store.rename("one", "Title")),
        ("list_conversations", lambda store: store.list_conversations(None)),
        ("latest_conversation_id", lambda store: store.latest_conversation_id(None, "coach")),
        ("get", lambda store: store.conversation_belongs_to("one", None)),
        (
            "paginate_conversation_messages",
            lambda store: store.paginate_conversation_messages("one"),
        ),
        ("load", lambda store: async_to_sync(store.aload)("one")),
        ("get", lambda store: async_to_sync(store.aget)("one")),
    ],
)
def test_a_method_that_a_store_lacks_is_named(method, call):
    class Bare(ConversationStore):
        pass

    with pytest.raises(NotImplementedError, match=rf"^Bare must define {method}\(\) for this\.$"):
        call(Bare())


def test_a_store_refuses_options_that_it_does_not_know():
    for store in (ThreeMethods, InMemoryConversationStore, ConversationStore):
        with pytest.raises(TypeError):
            store(path="/tmp")
    with pytest.raises(TypeError, match="takes no option 'path'"):
        InMemoryConversationStore(path="/tmp")


def test_must_own_asks_the_store_whose_a_conversation_is():
    class Owned(ThreeMethods):
        def conversation_belongs_to(self, conversation_id: str, participant: Any) -> bool:
            return participant == "owner"

    store = Owned()
    store.append("one", plain_turn())
    store.release(store.reserve("one", participant="owner", must_own=True))
    with pytest.raises(ConversationDoesNotExist):
        store.reserve("one", participant="other", must_own=True)
    store.reserve("two", participant="other", must_own=True, create=True)


def test_reservations_of_two_stores_are_apart():
    first, second = ThreeMethods(), ThreeMethods()
    for store in (first, second):
        store.append("one", plain_turn())
        store.reserve("one")
    with pytest.raises(ConversationBusy):
        first.reserve("one")
