"""How a turn begins: in one hop or by a store's own async methods, and what a failure leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from agent_memory import Agent, RemembersConversations, signals
from agent_memory.approvals import Approve
from agent_memory.journals import JournalEntry
from agent_memory.messages import Message, Step, TextPart, ToolCall, Turn
from agent_memory.records import Heading, Reservation
from agent_memory.stores.holding import Wanted
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.testing import ScriptedProvider
from tests.fixtures import Ask

CALL = ToolCall(id="call_1", name="pay", approval_reason="It costs.")
CALLING = Step(items=(CALL,), finish_reason="tool_calls")


def nothing() -> None:
    pass


def fail() -> None:
    raise OSError("gone")


class Store(InMemoryConversationStore):
    """Notes its hops; ``reserving`` and ``loading`` are called before it does either."""

    def __init__(self) -> None:
        super().__init__()
        self.hops: list[str] = []
        self.reserving: Callable[[], Any] = nothing
        self.loading: Callable[[], Any] = nothing

    async def hop(self, work: Any, *args: Any, **kwargs: Any) -> Any:
        self.hops.append(work.__name__)
        return await super().hop(work, *args, **kwargs)

    def _reserve(self, wanted: Wanted) -> Reservation:
        self.reserving()
        return super()._reserve(wanted)

    def load(self, *args: Any, **kwargs: Any) -> tuple[Message, ...]:
        self.loading()
        return super().load(*args, **kwargs)

    def is_free(self, **wanted: Any) -> bool:
        """Tell whether a turn may begin now that nothing goes wrong any more."""
        self.reserving = self.loading = nothing
        self.release(self.reserve("c", **wanted))
        return True


class OwnLoad(Store):
    async def aload(self, *args: Any, **kwargs: Any) -> tuple[Message, ...]:
        return self.load(*args, **kwargs)


class OwnReserve(Store):
    async def areserve(self, *args: Any, **kwargs: Any) -> Reservation:
        return self.reserve(*args, **kwargs)


def agent(store: Store) -> RemembersConversations:
    """Return an agent at a conversation of one turn."""

    class Coach(RemembersConversations, Agent):
        generate_titles = False

    answer = Step(items=(TextPart(text="first"),))
    store.append("c", Turn(user=Message("user", "a"), steps=(answer,)))
    provider = ScriptedProvider(["second"])
    return Coach(store=store, provider=provider).continue_conversation("c")


def asked(coach: RemembersConversations) -> list[Any]:
    """Return what the model was asked."""
    assert isinstance(coach.provider, ScriptedProvider)
    return coach.provider.requests


def leave_while_reserving(store: Store, call: Callable[[], Awaitable[Any]]) -> None:
    """Make a call, and cancel it while its store reserves."""

    async def leave() -> None:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        store.reserving = lambda: loop.call_soon_threadsafe(task.cancel)
        await call()

    with pytest.raises(asyncio.CancelledError):
        async_to_sync(leave)()


@pytest.fixture
def failed() -> Iterator[list[str]]:
    """Return the ids of conversations of which a failed turn is told."""
    heard: list[str] = []

    def receiver(conversation_id: str, **facts: Any) -> None:
        heard.append(conversation_id)

    signals.turn_failed.connect(receiver)
    yield heard
    signals.turn_failed.disconnect(receiver)


def leave_a_dead_worker(store: Store) -> None:
    """Have a worker die in the middle of a call."""
    reservation = store.reserve("c")
    entry = JournalEntry(0, -1, CALLING, Heading("c"), Message("user", "Pay."))
    assert store.journal(reservation, entry, 60)
    assert store.renew(reservation, 0)


def test_a_turn_takes_one_hop_to_begin_and_one_to_end() -> None:
    store = Store()
    coach = agent(store)
    assert async_to_sync(coach.aprompt)("b").text == "second"
    assert store.hops == ["begin", "append"]
    (request,) = asked(coach)
    assert [message.text for message in request.messages] == ["a", "first", "b"]


@pytest.mark.parametrize(
    ("kind", "hops"), [(OwnLoad, ["reserve", "append"]), (OwnReserve, ["load", "append"])]
)
def test_async_methods_of_a_stores_own_are_awaited(kind: type[Store], hops: list[str]) -> None:
    store = kind()
    coach = agent(store)
    assert async_to_sync(coach.aprompt)("b").text == "second"
    assert store.hops == hops
    (request,) = asked(coach)
    assert [message.text for message in request.messages] == ["a", "first", "b"]


@pytest.mark.parametrize("kind", [Store, OwnLoad, OwnReserve])
def test_a_window_that_cannot_be_loaded_gives_the_conversation_back(
    kind: type[Store], ask: Ask, failed: list[str]
) -> None:
    store = kind()
    coach = agent(store)
    leave_a_dead_worker(store)
    store.loading = fail
    with pytest.raises(OSError, match="gone"):
        ask(coach, "b")
    assert (asked(coach), failed) == ([], ["c"])
    assert store.is_free()


@pytest.mark.parametrize("kind", [Store, OwnLoad, OwnReserve])
@pytest.mark.parametrize("loading", [nothing, fail])
def test_who_leaves_while_a_turn_begins_asks_no_model_and_holds_nothing(
    kind: type[Store], loading: Callable[[], None], failed: list[str]
) -> None:
    store = kind()
    coach = agent(store)
    leave_a_dead_worker(store)
    store.loading = loading
    leave_while_reserving(store, lambda: coach.aprompt("b"))
    assert (asked(coach), failed) == ([], ["c"])
    assert store.is_free()
    assert [message.text for message in store.load("c")][:3] == ["a", "first", "Pay."]


# A turn that waits for a person.


def paused(store: Store) -> RemembersConversations:
    """Return an agent at a conversation whose turn is paused."""

    def pay() -> str:
        return "paid"

    coach = agent(store)
    store.append("c", Turn(user=Message("user", "Pay."), steps=(CALLING,), status="paused"))
    coach.tools = [pay]
    return coach


def test_a_window_that_cannot_be_loaded_leaves_a_turn_paused(resume: Ask) -> None:
    store = Store()
    coach = paused(store)
    store.loading = fail
    with pytest.raises(OSError, match="gone"):
        resume(coach, {CALL.id: Approve()})
    assert store.is_free(resume=True)
    assert resume(coach).text == "second"


def test_a_paused_turn_that_cannot_be_dropped_is_free_for_the_next_one() -> None:
    class Failing(Store):
        def settle(self, *args: Any, **kwargs: Any) -> Any:
            fail()

    store = Failing()
    coach = paused(store)
    with pytest.raises(OSError, match="gone"):
        coach.discard_pending()
    assert store.is_free(resume=True)


def test_who_leaves_while_a_paused_turn_is_being_dropped_holds_nothing() -> None:
    store = Store()
    coach = paused(store)
    leave_while_reserving(store, coach.adiscard_pending)
    assert store.is_free(resume=True)
