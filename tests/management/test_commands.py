"""The command that lists reservations and ends what dead workers left."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from agent_memory import Agent, Message, Participant, RemembersConversations, conversation_store
from agent_memory.exceptions import ConversationConflict
from agent_memory.journals import JournalEntry
from agent_memory.messages import INTERRUPTED, Step, TextPart, ToolCall, ToolResult, Turn
from agent_memory.models import Conversation, TurnJournal
from agent_memory.records import (
    Heading,
    Reservation,
)
from agent_memory.stores.database import DatabaseConversationStore
from agent_memory.testing import ScriptedProvider, override_store

ADA = Participant("auth.user", "1")
CALLS = Step(
    items=(ToolCall(id="call_1", name="act"), ToolCall(id="call_2", name="act")),
    finish_reason="tool_calls",
)


class Coach(RemembersConversations, Agent):
    label = "coach"


@pytest.fixture
def store(db: None) -> DatabaseConversationStore:
    return DatabaseConversationStore()


def a_turn(answer: str) -> Turn:
    step = Step(items=(TextPart(text=answer),))
    return Turn(user=Message("user", "a"), steps=(step,))


def reserved(store: DatabaseConversationStore, name: str, *, opened: bool = True) -> Reservation:
    """Reserve a conversation that has a turn, or is to be opened."""
    if opened:
        store.append(Heading(name, ADA, "coach"), a_turn("b"))
    reservation = store.reserve(name, participant=ADA, agent="coach", create=True)
    store.load(name, reservation=reservation)
    return reservation


def begin_tools(store: DatabaseConversationStore, reservation: Reservation) -> None:
    """Journal two calls, and the result of the first."""
    heading = Heading(reservation.conversation_id, ADA, "coach")
    said = Message("user", "act")
    assert store.journal(reservation, JournalEntry(0, -1, CALLS, heading, said), 60)
    assert store.journal(reservation, JournalEntry(0, 0, ToolResult(value="done")), 60)


def lapse(*names: str) -> None:
    """Let reservations end, as when their workers have died and their time has passed."""
    Conversation.objects.filter(id__in=names).update(reserved_until=1)


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("agent_memory_reservations", *arguments, stdout=out)
    return out.getvalue()


def states(*arguments: str) -> dict[str, str]:
    return {row["conversation"]: row["state"] for row in json.loads(run("--json", *arguments))}


def texts(store: DatabaseConversationStore, name: str) -> list[str]:
    return [message.text for message in store.load(name)]


def in_every_state(store: DatabaseConversationStore) -> None:
    reserved(store, "running")
    begin_tools(store, reserved(store, "running tools"))
    reserved(store, "expired")
    begin_tools(store, reserved(store, "interrupted"))
    begin_tools(store, reserved(store, "interrupted first turn", opened=False))
    reserved(store, "unopened", opened=False)
    store.append(Heading("free", ADA), a_turn("b"))
    lapse("expired", "interrupted", "interrupted first turn", "unopened")


def test_reservations_are_listed_with_their_state(store):
    in_every_state(store)
    assert states() == {
        "running": "running",
        "running tools": "running",
        "expired": "expired",
        "interrupted": "interrupted",
        "interrupted first turn": "interrupted",
        "unopened": "unopened",
    }
    rows: list[dict[str, Any]] = json.loads(run("--json"))
    (row,) = (row for row in rows if row["conversation"] == "running")
    assert (row["participant"], row["agent"]) == ("auth.user 1", "coach")
    assert row["since"] < row["until"]


def test_the_list_is_a_table_for_people(store):
    assert run() == "Reserved: 0\n"
    reserved(store, "first\nline")
    count, headings, row = run().splitlines()
    assert count == "Reserved: 1"
    assert headings.split() == ["conversation", "participant", "agent", "since", "until", "state"]
    assert row.startswith("first\\nline   auth.user 1  coach  20")
    assert row.endswith("running")


def test_listing_changes_nothing(store):
    in_every_state(store)
    before = [*Conversation.objects.order_by("id").values()]
    run()
    assert [*Conversation.objects.order_by("id").values()] == before


def test_releasing_frees_a_conversation_and_its_worker_gets_a_conflict(store):
    reservation = reserved(store, "c")
    assert states("--release", "c") == {"c": "running"}
    with pytest.raises(ConversationConflict):
        store.append("c", a_turn("late"), reservation=reservation)
    store.release(store.reserve("c"))
    assert texts(store, "c") == ["a", "b"]


def test_releasing_a_turn_that_began_tools_records_it_as_failed(store):
    reservation = reserved(store, "c")
    begin_tools(store, reservation)
    run("--release", "c")
    assert texts(store, "c") == ["a", "b", "act", "", "done", INTERRUPTED]
    assert not TurnJournal.objects.exists()
    with pytest.raises(ConversationConflict):
        store.append("c", a_turn("late"), reservation=reservation)
    assert not store.renew(reservation, 60)


def test_releasing_a_first_turn_removes_its_hidden_conversation(store):
    reservation = reserved(store, "c", opened=False)
    run("--release", "c")
    assert not Conversation.objects.exists()
    with pytest.raises(ConversationConflict):
        store.append("c", a_turn("late"), reservation=reservation)


def test_a_running_agent_whose_turn_is_released_starts_no_further_tool(
    store, scripted_provider: ScriptedProvider
):
    ran = []

    def act() -> str:
        ran.append("act")
        run("--release", "c")
        return "done"

    scripted_provider.extend([CALLS.items, "never"])
    with pytest.raises(ConversationConflict) as caught:
        Coach(tools=[act]).for_participant(ADA).prompt("a", conversation_id="c")
    assert ran == ["act"]
    assert [result.value for result in caught.value.turn.tool_results()] == ["done"]
    assert texts(store, "c") == ["a", "", INTERRUPTED, INTERRUPTED]


@pytest.mark.parametrize("name", ["unknown", "free", "a\0b", "x" * 256])
def test_releasing_what_nobody_holds_is_an_error(store, name):
    store.append(Heading("free", ADA), a_turn("b"))
    with pytest.raises(CommandError):
        run("--release", name)
    assert texts(store, "free") == ["a", "b"]


def test_sweeping_records_what_was_interrupted_and_removes_what_was_never_opened(store):
    in_every_state(store)
    assert states("--sweep") == {
        "interrupted": "interrupted",
        "interrupted first turn": "interrupted",
        "unopened": "unopened",
    }
    assert set(states()) == {"running", "running tools", "expired"}
    assert texts(store, "interrupted")[2:] == ["act", "", "done", INTERRUPTED]
    assert texts(store, "interrupted first turn") == ["act", "", "done", INTERRUPTED]
    assert store.latest_conversation_id(ADA, "coach") in ("interrupted first turn", "interrupted")
    assert not Conversation.objects.filter(id="unopened").exists()
    assert states("--sweep") == {}


def test_a_turn_that_is_alive_after_all_is_not_swept(store):
    reserved(store, "c", opened=False)
    begin_tools(store, reserved(store, "d"))
    lapse("c", "d")
    found = store.held_reservations()
    Conversation.objects.update(reserved_until=2**41)
    assert [store.end_reservation(held) for held in found] == [False, False]
    assert set(states()) == {"c", "d"}


def test_a_turn_that_has_ended_meanwhile_is_not_released(store):
    reservation = reserved(store, "c")
    (held,) = store.held_reservations("c")
    store.append("c", a_turn("in time"), reservation=reservation)
    store.reserve("c")
    assert not store.end_reservation(held, although_running=True)
    assert states() == {"c": "running"}


def test_what_cannot_be_swept_does_not_stop_the_rest(store):
    for name in ("a later version", "interrupted"):
        begin_tools(store, reserved(store, name))
    entry = TurnJournal.objects.get(conversation="a later version", index=-1)
    entry.entry = json.dumps({**json.loads(entry.entry), "format": 99})
    entry.save()
    lapse("a later version", "interrupted")
    with pytest.raises(CommandError, match=r"a later version: .*format 99"):
        run("--sweep")
    assert set(states()) == {"a later version"}


def test_the_command_looks_after_the_database_store_only(db):
    with override_store(), pytest.raises(CommandError, match="InMemoryConversationStore"):
        run()


def test_one_thing_is_done_at_a_time(store):
    with pytest.raises(CommandError, match="not allowed with"):
        run("--sweep", "--release", "c")


def test_the_projects_store_is_the_one_that_is_looked_after(store):
    conversation_store.reserve("c", create=True)
    assert states() == {"c": "running"}
