"""Stores of transcripts let turns wait for a person, and are safe among threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from agent_memory.approvals import Approval, Approve, Deny, Edit
from agent_memory.exceptions import (
    ApprovalMismatch,
    ConversationBusy,
    ConversationDoesNotExist,
)
from agent_memory.journals import JournalEntry
from agent_memory.messages import Message, Replay, Turn
from agent_memory.records import Heading, Once, Reservation
from agent_memory.signals import approval_decided
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.testing.contract.base import messages_of, plain_turn
from agent_memory.testing.contract.journals import dying_turn, entries_of, interrupted
from agent_memory.testing.contract.pausing import asking_turn, finished

WORKERS = 8


@pytest.fixture
def store() -> InMemoryConversationStore:
    return InMemoryConversationStore()


def at_once(work: Callable[[int], Any]) -> list[Any]:
    """Return what work gives, or raises, in threads that begin together."""
    barrier = threading.Barrier(WORKERS)

    def begin(number: int) -> Any:
        barrier.wait()
        try:
            return work(number)
        except Exception as error:
            return error

    with ThreadPoolExecutor(WORKERS) as threads:
        return list(threads.map(begin, range(WORKERS)))


# Turns that wait for a person.


def test_a_claimed_call_that_was_settled_without_a_result_is_in_doubt_for_the_next(store):
    store.append("one", asking_turn())
    store.decide("one", {"*": Approve()})
    reservation = store.reserve("one", resume=True)
    paused = reservation.paused.turn
    assert store.journal(reservation, JournalEntry(0, 1, paused.tool_calls()[1]), 60)
    store.settle("one", paused, reservation=reservation)
    left = store.reserve("one", resume=True).paused
    assert [each.status for each in left.approvals] == ["approved", "interrupted"]
    assert [call.result is None for call in left.turn.tool_calls()] == [True, False, False]


def test_a_conversation_yet_to_be_cannot_be_resumed(store):
    with pytest.raises(ConversationDoesNotExist):
        store.reserve(resume=True)


def test_opaque_blocks_are_kept_while_a_turn_is_paused_or_where_a_setting_says_so(store, settings):
    replay = Replay(provider="openai", model="gpt", blocks=({"type": "reasoning"},))
    (asked,) = asking_turn().steps
    paused = asking_turn().model_copy(
        update={"steps": (asked.model_copy(update={"replay": replay}),)}
    )
    for kept in (False, True):
        settings.AGENT_MEMORY = {**settings.AGENT_MEMORY, "KEEP_REPLAY": kept}
        reservation = store.reserve(f"{kept}", create=True, once=Once("key", "print"))
        store.append(f"{kept}", paused, reservation=reservation)
        resumed = store.reserve(f"{kept}", resume=True)
        assert resumed.paused.turn == paused
        done = finished(resumed.paused.turn, "a", "b")
        store.settle(f"{kept}", done, reservation=resumed)
        turn = store.reserve(f"{kept}", once=Once("key", "print")).answered.turn
        assert (turn == done) is kept
        assert [step.replay for step in turn.steps] == [replay if kept else None, None]


def test_each_decision_is_told_once_and_undone_by_no_receiver(store):
    told = []

    def receiver(sender: type, conversation_id: str, approval: Approval, **kwargs: Any) -> None:
        waiting = len(store.pending_approvals_for(conversation_id))
        told.append((sender, conversation_id, approval.asked.id, approval.status, waiting))
        approval.asked.arguments.clear()
        raise ZeroDivisionError

    store.append("one", asking_turn(calls=3))
    approval_decided.connect(receiver)
    try:
        store.decide("one", {"call-0": Approve(), "call-1": Deny("No.")})
        with pytest.raises(ApprovalMismatch):
            store.decide("one", {"call-0": Approve(), "call-2": Approve()})
        asyncio.run(store.adecide("one", {"*": Edit({})}))
    finally:
        approval_decided.disconnect(receiver)
    assert told == [
        (InMemoryConversationStore, "one", "call-0", "approved", 1),
        (InMemoryConversationStore, "one", "call-1", "denied", 1),
        (InMemoryConversationStore, "one", "call-2", "approved", 0),
    ]
    approvals = store.reserve("one", resume=True).paused.approvals
    assert all(approval.asked.arguments for approval in approvals)


# Threads and tasks.


def test_one_of_many_threads_gets_the_next_turn(store):
    store.append("old", plain_turn())
    for conversation_id in ("old", "new"):
        got = at_once(lambda _, key=conversation_id: store.reserve(key, create=True))
        assert sum(isinstance(each, Reservation) for each in got) == 1
        assert sum(isinstance(each, ConversationBusy) for each in got) == WORKERS - 1


def test_threads_that_append_to_one_conversation_interleave_no_turn(store):
    def work(number: int) -> list[Turn]:
        turns = [plain_turn(f"{number}.{count}") for count in range(20)]
        for turn in turns:
            store.append("one", turn)
        return turns

    written = at_once(work)
    messages = store.load("one")
    pairs = list(zip(messages[::2], messages[1::2], strict=True))
    assert all(answer.text == f"{asked.text}!" for asked, answer in pairs)
    for turns in written:
        mine = [pair for pair in pairs if any(turn.user == pair[0] for turn in turns)]
        assert messages_of(turns) == tuple(message for pair in mine for message in pair)
    stored = store.get("one")
    assert (stored.turns, len(pairs)) == (WORKERS * 20, WORKERS * 20)


def test_threads_that_ask_under_one_key_write_one_turn_between_them(store):
    turn = plain_turn()
    once = Once.of("key", turn.user)

    def work(number: int) -> Any:
        while True:
            try:
                reservation = store.reserve("one", create=True, once=once)
            except ConversationBusy as busy:
                if not busy.same_message:
                    raise
                continue
            if reservation.answered is not None:
                return reservation.answered.stored.turn_id
            return store.append("one", turn, reservation=reservation).turn_id

    assert len(set(at_once(work))) == 1
    assert store.load("one") == turn.messages


def test_threads_that_find_a_dead_turn_record_it_once(store):
    dead = store.reserve("one", create=True)
    for entry in entries_of(dying_turn(), Heading("one")):
        store.journal(dead, entry, 0)
    got = at_once(lambda number: store.reserve("one"))
    assert sum(isinstance(each, Reservation) for each in got) == 1
    assert sum(isinstance(each, ConversationBusy) for each in got) == WORKERS - 1
    assert store.load("one") == interrupted(dying_turn()).messages


def test_threads_that_decide_on_one_call_decide_it_once(store):
    store.append("one", asking_turn(calls=1))

    def work(number: int) -> Any:
        return store.decide("one", {"call-0": Deny(f"{number}")})

    got = at_once(work)
    assert sum(each == () for each in got) == 1
    assert sum(isinstance(each, ApprovalMismatch) for each in got) == WORKERS - 1
    (approval,) = store.reserve("one", resume=True).paused.approvals
    assert approval.text == f"{got.index(())}"


def test_threads_that_resume_claim_a_call_once(store):
    store.append("one", asking_turn(calls=1))
    store.decide("one", {"*": Approve()})

    def work(number: int) -> Any:
        reservation = store.reserve("one", resume=True)
        call = reservation.paused.turn.steps[0].tool_calls()[0]
        return store.journal(reservation, JournalEntry(0, 0, call), 0)

    got = at_once(work)
    assert sum(each is True for each in got) == 1
    assert all(each in (True, False) or isinstance(each, ConversationBusy) for each in got)


def test_threads_with_conversations_of_their_own_disturb_nobody(store):
    def work(number: int) -> tuple[Message, ...]:
        for count in range(20):
            reservation = store.reserve(f"{number}", create=True)
            store.append(f"{number}", plain_turn(f"{count}"), reservation=reservation)
            store.list_conversations(None)
            store.paginate_conversation_messages(f"{number}")
        return store.load(f"{number}")

    wanted = messages_of(plain_turn(f"{count}") for count in range(20))
    assert at_once(work) == [wanted] * WORKERS


def test_a_thread_that_clears_wins_over_those_that_write(store):
    store.append("one", plain_turn("old"))
    reservation = store.reserve("one")

    def work(number: int) -> Any:
        if number % 2:
            return store.clear("one")
        return store.append("one", plain_turn(f"{number}"), reservation=reservation)

    at_once(work)
    assert store.get("one") is None
    assert store.renew(reservation, 60) is False


def test_tasks_of_one_loop_take_turns(store):
    async def gather() -> list[Any]:
        await store.aappend("one", plain_turn())
        return await asyncio.gather(
            *(store.areserve("one") for _ in range(WORKERS)), return_exceptions=True
        )

    got = asyncio.run(gather())
    assert sum(isinstance(each, Reservation) for each in got) == 1
    assert sum(isinstance(each, ConversationBusy) for each in got) == WORKERS - 1
