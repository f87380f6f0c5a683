"""
What a store does for a turn, each time made ready, done, and looked at.

Each is a generator: it yields the work, is sent its result, and asserts that the
work was done once and whole.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from agent_memory import Message, Participant
from agent_memory.journals import JournalEntry
from agent_memory.messages import Step, TextPart, ToolCall, ToolResult, Turn, Usage
from agent_memory.models import Conversation, ConversationMessage, TurnJournal
from agent_memory.records import (
    Heading,
    Once,
    Reservation,
)
from agent_memory.stores.database import DatabaseConversationStore
from tests.faults.checker import faults_of_tables

Operation = Generator[Callable[[], Any], Any, None]

ADA = Participant("auth.user", "1")
USER = Message("user", "a")
ONCE = Once.of("key", USER)
CALLING = Step(items=(ToolCall(id="call_1", name="act"),), finish_reason="tool_calls")
RESULT = ToolResult(value="done")

store = DatabaseConversationStore()


def heading(conversation_id: str) -> Heading:
    return Heading(conversation_id, ADA, "clerk")


def a_turn(answer: str = "b", **fields: Any) -> Turn:
    step = Step(items=(TextPart(text=answer),), usage=Usage(input_tokens=2, output_tokens=1))
    return Turn(user=USER, steps=(step,), **fields)


def opened() -> str:
    """Write a conversation of one turn."""
    store.append(heading("c"), a_turn())
    return "c"


def reserved(**options: Any) -> Reservation:
    """Reserve the conversation, or a new one, and load its window."""
    reservation = store.reserve("c", participant=ADA, agent="clerk", **options)
    store.load("c", reservation=reservation)
    return reservation


def journalled(reservation: Reservation, value: Any = CALLING, index: int = -1) -> bool:
    return store.journal(
        reservation,
        JournalEntry(0, index, value, heading(reservation.conversation_id), USER),
        60,
    )


def lapse() -> None:
    """Let every reservation end, as when so much time has passed."""
    Conversation.objects.exclude(reservation="").update(reserved_until=1)


def row() -> Conversation:
    return Conversation.objects.get()


def is_whole(*answers: str) -> bool:
    """Tell whether nothing is left of the work but these turns."""
    found = ConversationMessage.objects.filter(role="assistant").order_by("position")
    return faults_of_tables() == [] and [message.content for message in found] == [*answers]


def reserve() -> Operation:
    opened()
    reservation = yield lambda: store.reserve("c")
    assert row().reservation == reservation.turn_id
    store.load("c", reservation=reservation)
    store.append("c", a_turn("next"), reservation=reservation)
    assert is_whole("b", "next")


def reserve_a_new_id() -> Operation:
    reservation = yield lambda: store.reserve("c", create=True, participant=ADA, agent="clerk")
    assert (row().reservation, row().opened_at) == (reservation.turn_id, None)
    store.load("c", reservation=reservation)
    assert store.append(heading("c"), a_turn(), reservation=reservation).created
    assert is_whole("b")


def reserve_a_new_id_and_give_it_back() -> Operation:
    reservation = yield lambda: store.reserve("c", create=True)
    store.release(reservation)
    assert not Conversation.objects.exists()


def reserve_under_a_key() -> Operation:
    opened()
    reservation = yield lambda: store.reserve("c", once=ONCE)
    store.load("c", reservation=reservation)
    store.append("c", a_turn("next"), reservation=reservation)
    assert store.reserve("c", once=ONCE).answered is not None
    assert is_whole("b", "next")


def find_the_answer_of_a_key() -> Operation:
    opened()
    stored = store.append("c", a_turn("next"), reservation=reserved(once=ONCE))
    reservation = yield lambda: store.reserve("c", once=ONCE)
    assert reservation.answered.stored.user_message_id == stored.user_message_id
    assert is_whole("b", "next")


def take_over_the_dead() -> Operation:
    opened()
    dead = reserved(once=ONCE)
    assert journalled(dead)
    assert journalled(dead, RESULT, 0)
    lapse()
    reservation = yield lambda: store.reserve("c")
    failed = ConversationMessage.objects.get(status="failed")
    assert (failed.turn_id, failed.position) == (dead.turn_id, 3)
    store.release(reservation)
    assert is_whole("b", "")


def load() -> Operation:
    opened()
    reservation = store.reserve("c")
    messages = yield lambda: store.load("c", reservation=reservation)
    assert [message.text for message in messages] == ["a", "b"]
    assert reservation.next_position == 2
    store.release(reservation)


def find_the_last_conversation() -> Operation:
    opened()
    found = yield lambda: store.latest_conversation_id(ADA, "clerk")
    assert found == "c"


def renew() -> Operation:
    opened()
    reservation = reserved()
    before = row().reserved_until
    assert (yield lambda: store.renew(reservation, 600))
    assert row().reserved_until >= before + 500_000


def release() -> Operation:
    opened()
    reservation = reserved()
    yield lambda: store.release(reservation)
    assert is_whole("b")


def release_a_new_id() -> Operation:
    reservation = reserved(create=True)
    yield lambda: store.release(reservation)
    assert not Conversation.objects.exists()


def release_what_is_journalled() -> Operation:
    opened()
    reservation = reserved()
    journalled(reservation)
    yield lambda: store.release(reservation)
    assert is_whole("b")


def journal_a_step() -> Operation:
    opened()
    reservation = reserved()
    assert (yield lambda: journalled(reservation))
    assert reservation.journalled
    assert row().journalled
    assert TurnJournal.objects.get().turn_id == reservation.turn_id
    store.append("c", a_turn("next"), reservation=reservation)
    assert is_whole("b", "next")


def journal_the_first_step_of_a_conversation() -> Operation:
    reservation = store.reserve(participant=ADA, agent="clerk", once=ONCE)
    assert (yield lambda: journalled(reservation))
    assert (reservation.new, reservation.placeholder, reservation.journalled) == (False, True, True)
    assert (row().reserved_key, row().opened_at) == ("key", None)
    assert TurnJournal.objects.count() == 1
    store.append(heading(reservation.conversation_id), a_turn(), reservation=reservation)
    assert is_whole("b")


def journal_a_result() -> Operation:
    opened()
    reservation = reserved()
    journalled(reservation)
    assert (yield lambda: journalled(reservation, RESULT, 0))
    assert [entry.index for entry in TurnJournal.objects.order_by("index")] == [-1, 0]
    store.append("c", a_turn("next"), reservation=reservation)
    assert is_whole("b", "next")


def append() -> Operation:
    opened()
    reservation = reserved()
    stored = yield lambda: store.append("c", a_turn("next"), reservation=reservation)
    assert stored.turn_id == reservation.turn_id
    assert not stored.created
    assert is_whole("b", "next")


def append_what_is_journalled() -> Operation:
    opened()
    reservation = reserved(once=ONCE)
    journalled(reservation)
    yield lambda: store.append("c", a_turn("next"), reservation=reservation)
    assert ConversationMessage.objects.get(idempotency_key="key").position == 2
    assert is_whole("b", "next")


def append_to_a_placeholder() -> Operation:
    reservation = reserved(create=True)
    stored = yield lambda: store.append(heading("c"), a_turn(), reservation=reservation)
    assert stored.created
    assert is_whole("b")


def append_to_a_conversation_yet_to_be() -> Operation:
    reservation = store.reserve(participant=ADA)
    name = reservation.conversation_id
    stored = yield lambda: store.append(heading(name), a_turn(), reservation=reservation)
    assert stored.created
    assert is_whole("b")


def append_directly() -> Operation:
    opened()
    yield lambda: store.append("c", a_turn("next"))
    assert is_whole("b", "next")


def append_directly_to_a_new_id() -> Operation:
    yield lambda: store.append(heading("c"), a_turn())
    assert is_whole("b")


def append_directly_over_the_dead() -> Operation:
    opened()
    journalled(reserved())
    lapse()
    yield lambda: store.append("c", a_turn("next"))
    assert is_whole("b", "", "next")


OPERATIONS = [
    reserve,
    reserve_a_new_id,
    reserve_a_new_id_and_give_it_back,
    reserve_under_a_key,
    find_the_answer_of_a_key,
    take_over_the_dead,
    load,
    find_the_last_conversation,
    renew,
    release,
    release_a_new_id,
    release_what_is_journalled,
    journal_a_step,
    journal_the_first_step_of_a_conversation,
    journal_a_result,
    append,
    append_what_is_journalled,
    append_to_a_placeholder,
    append_to_a_conversation_yet_to_be,
    append_directly,
    append_directly_to_a_new_id,
    append_directly_over_the_dead,
]
