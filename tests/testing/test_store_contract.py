"""The contract catches every broken store, and holds nothing idle."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from agent_memory.exceptions import ConversationBusy, ConversationDoesNotExist
from agent_memory.messages import Message
from agent_memory.records import Reservation
from agent_memory.stores.base import ConversationStore
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.testing import (
    AsyncBasicConversationStoreContract,
    AsyncConversationStoreContract,
    BasicConversationStoreContract,
    ConversationStoreContract,
)
from tests.testing import (
    broken_approvals,
    broken_attachments,
    broken_conversations,
    broken_dead_resumes,
    broken_decisions,
    broken_histories,
    broken_interruptions,
    broken_journals,
    broken_keys,
    broken_latecomers,
    broken_ownership,
    broken_pages,
    broken_resuming,
    broken_settling,
    broken_turns,
)
from tests.testing.broken import BROKEN

MODULES = (
    broken_histories,
    broken_turns,
    broken_keys,
    broken_journals,
    broken_interruptions,
    broken_latecomers,
    broken_approvals,
    broken_decisions,
    broken_resuming,
    broken_dead_resumes,
    broken_settling,
    broken_conversations,
    broken_ownership,
    broken_pages,
    broken_attachments,
)
PROMISES = tuple(name for name in dir(ConversationStoreContract) if name.startswith("test_"))


def keeps(
    store: type[ConversationStore],
    promise: str,
    contract: type[ConversationStoreContract] = ConversationStoreContract,
) -> bool:
    case = contract()
    case.make_store = store  # type: ignore[method-assign]  # as a subclass does
    if hasattr(store, "reopened"):
        case.reopen = lambda: case.store.reopened()  # type: ignore[attr-defined, method-assign]  # as above
    try:
        getattr(case, promise)()
    except Exception:
        return False
    return True


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("store", "promise"),
    [pytest.param(store, promise, id=f"{store.__name__}-{promise}") for store, promise in BROKEN],
)
def test_each_broken_store_is_caught(store: type[ConversationStore], promise: str) -> None:
    assert not keeps(store, promise)


def test_each_promise_is_needed_to_catch_a_broken_store() -> None:
    assert {promise for _, promise in BROKEN} == set(PROMISES)


def test_each_broken_store_says_what_it_breaks() -> None:
    noted = {store for store, _ in BROKEN}
    defined = {
        store
        for module in MODULES
        for name, store in vars(module).items()
        if isinstance(store, type)
        and store.__module__ == module.__name__
        and not name.startswith(("_", "Changes"))
    }
    assert noted == defined
    assert len(defined) > 260


def test_the_async_contract_awaits_the_twins() -> None:
    class ForgetsWhenAwaited(InMemoryConversationStore):
        async def aload(self, *args: Any, **kwargs: Any) -> tuple[Message, ...]:
            return ()

    promise = "test_turns_come_back_equal_and_in_the_order_they_were_appended"
    assert keeps(ForgetsWhenAwaited, promise)
    assert not keeps(ForgetsWhenAwaited, promise, AsyncConversationStoreContract)


def test_the_async_contract_awaits_the_twins_of_another_workers_store_too() -> None:
    class IsBusyElsewhere(InMemoryConversationStore):
        def reopened(self) -> ConversationStore:
            return AnswersNothingWhenAwaited()

    class AnswersNothingWhenAwaited(InMemoryConversationStore):
        async def areserve(self, *args: Any, **kwargs: Any) -> Reservation:
            raise ConversationDoesNotExist("one")

        def reserve(self, *args: Any, **kwargs: Any) -> Reservation:
            raise ConversationBusy("one", since=datetime.now(UTC), retry_after=1)

    promise = "test_entries_are_no_part_of_the_conversation_while_the_turn_runs"
    assert keeps(IsBusyElsewhere, promise)
    assert not keeps(IsBusyElsewhere, promise, AsyncConversationStoreContract)


@pytest.mark.parametrize(
    "contract", [BasicConversationStoreContract, AsyncBasicConversationStoreContract]
)
def test_the_basic_contract_is_a_part_of_the_whole(contract: type[Any]) -> None:
    basic = {name for name in dir(contract) if name.startswith("test_")}
    assert len(basic) > 25
    assert basic < set(PROMISES)
    for name in basic:
        assert getattr(contract, name) is getattr(ConversationStoreContract, name)


def test_a_contract_without_a_store_says_what_to_define() -> None:
    with pytest.raises(NotImplementedError, match=r"must define make_store\(\)"):
        _ = ConversationStoreContract().store
