"""What happens between two statements of a reservation: somebody else was faster, or is alive."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from agent_memory.exceptions import ConversationBusy, ConversationDoesNotExist
from agent_memory.models import Conversation, ConversationMessage
from tests.faults.boundaries import boundaries
from tests.faults.checker import faults_of_tables
from tests.faults.operations import ONCE, a_turn, journalled, lapse, opened, reserved, store


def meanwhile(**works: Callable[[], object]) -> AbstractContextManager[None]:
    """Have somebody else do the work of a point whenever that one is reached."""
    busy: list[str] = []

    def at(name: str) -> None:
        work = works.get(name.replace(" ", "_"))
        if work is not None and not busy:
            busy.append(name)
            work()
            busy.clear()

    return boundaries(at)


def test_a_worker_that_shows_life_as_it_is_taken_over_keeps_its_turn(db: None) -> None:
    opened()
    late = reserved()
    journalled(late)
    lapse()
    alive = meanwhile(after_SELECT_agent_conversations=lambda: store.renew(late, 60))
    with alive, pytest.raises(ConversationBusy):
        store.reserve("c")
    store.append("c", a_turn("late"), reservation=late)
    assert not ConversationMessage.objects.filter(status="failed").exists()
    assert faults_of_tables() == []


def test_a_dead_turn_that_two_find_at_once_is_recorded_once(db: None) -> None:
    opened()
    journalled(reserved())
    lapse()
    faster: list[object] = []

    def take_over() -> None:
        if not faster:
            faster.append(store.reserve("c"))

    found = meanwhile(after_SELECT_agent_conversations=take_over)
    with found, pytest.raises(ConversationBusy):
        store.reserve("c")
    assert ConversationMessage.objects.filter(status="failed").count() == 1


def test_a_conversation_that_is_cleared_while_its_key_is_looked_up_is_gone(db: None) -> None:
    opened()
    store.append("c", a_turn("next"), reservation=reserved(once=ONCE))
    looked_up = iter((lambda: None, lambda: store.clear("c")))
    cleared = meanwhile(before_SELECT_agent_conversation_messages=lambda: next(looked_up)())
    with cleared, pytest.raises(ConversationDoesNotExist):
        store.reserve("c", once=ONCE)
    assert list(looked_up) == []


def test_whoever_is_always_too_late_finds_the_conversation_busy(db: None) -> None:
    opened()

    def hold() -> None:
        Conversation.objects.update(reservation="faster", reserved_until=2**41)

    def free() -> None:
        Conversation.objects.update(reservation="", reserved_until=0)

    late = meanwhile(before_UPDATE_agent_conversations=hold, before_SELECT_agent_conversations=free)
    with late, pytest.raises(ConversationBusy) as caught:
        store.reserve("c")
    assert caught.value.retry_after == 0
