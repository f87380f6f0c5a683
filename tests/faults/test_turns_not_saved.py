"""An answer that cannot be stored: in the error, and in the tables once they work again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from agent_memory import Agent, RemembersConversations, tool
from agent_memory.exceptions import (
    ProviderUnavailable,
    TransactionOpen,
    TurnNotSaved,
)
from agent_memory.messages import INTERRUPTED, ToolCall
from agent_memory.models import ConversationMessage
from agent_memory.stores.database import DatabaseConversationStore, retrying
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.testing import ScriptedProvider, override_store
from tests.faults.boundaries import boundaries
from tests.faults.checker import faults_of_tables
from tests.faults.databases import lose
from tests.faults.operations import ADA, a_turn, lapse
from tests.fixtures import Ask, ask_for_a_stream_in_a_task, ask_plainly

store = DatabaseConversationStore()


class Coach(RemembersConversations, Agent):
    label = "coach"


class Breakage:
    """A fault of the database that begins in the middle of a turn and ends when told to."""

    runs = 0
    broken = False

    def begin(self) -> None:
        raise NotImplementedError

    def end(self) -> None:
        raise NotImplementedError

    def tool(self) -> Any:
        """Return a tool that begins it."""

        @tool
        def act() -> str:
            self.runs += 1
            self.begin()
            return "done"

        return act


class NoTable(Breakage):
    """The messages' table has another name: an error that no further try mends."""

    def begin(self) -> None:
        self.broken = True
        self.rename("agent_conversation_messages", "elsewhere")

    def end(self) -> None:
        if self.broken:
            self.rename("elsewhere", "agent_conversation_messages")
        self.broken = False

    def rename(self, old: str, new: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {old} RENAME TO {new}")


class NoConnection(Breakage):
    """The connection is lost at a point of each try, or the file is locked: it would pass."""

    point = "after INSERT agent_conversation_messages"

    def __init__(self, other: BaseDatabaseWrapper, stack: ExitStack) -> None:
        self.other = other
        other.inc_thread_sharing()
        stack.enter_context(boundaries(self.hit))

    def hit(self, name: str) -> None:
        if self.broken and name == self.point:
            lose(self.other)

    def begin(self) -> None:
        self.broken = True
        if connection.vendor == "sqlite":
            connection.close()
            connection.settings_dict["OPTIONS"]["timeout"] = 0
            self.other.cursor().execute("BEGIN IMMEDIATE")

    def end(self) -> None:
        if self.broken and connection.vendor == "sqlite":
            self.other.cursor().execute("ROLLBACK")
        self.broken = False


class UnseenCommit(NoConnection):
    """The append is committed, and then every connection is lost before it can tell."""

    written = committed = False

    def hit(self, name: str) -> None:
        self.written |= self.broken and name == self.point
        self.committed |= self.written and name == "after COMMIT"
        if self.broken and self.committed:
            lose(self.other)


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return how often something was tried again; nobody waits."""
    slept: list[float] = []
    monkeypatch.setattr(retrying, "time", SimpleNamespace(sleep=slept.append))
    return slept


@pytest.fixture(params=["lasting", "passing"])
def breakage(
    request: pytest.FixtureRequest, other: BaseDatabaseWrapper, tries: list[float]
) -> Iterator[Breakage]:
    with ExitStack() as stack:
        made = NoTable() if request.param == "lasting" else NoConnection(other, stack)
        yield made
        made.end()


@pytest.fixture(params=[ask_plainly, ask_for_a_stream_in_a_task])
def in_two_ways(request: pytest.FixtureRequest) -> Ask:
    return request.param


@pytest.fixture
def script(scripted_provider: ScriptedProvider) -> ScriptedProvider:
    call = ToolCall(id="call_1", name="act", arguments={})
    scripted_provider.extend(["first", [call], "precious", "next"])
    return scripted_provider


def opened() -> str:
    conversation_id = Coach().for_participant(ADA).prompt("a").conversation_id
    assert conversation_id is not None
    return conversation_id


def unsaved(breakage: Breakage, ask: Ask, conversation_id: str, **options: Any) -> TurnNotSaved:
    """Ask for a turn that acts and cannot be stored, then let the database work again."""
    coach = Coach(tools=[breakage.tool()]).continue_conversation(conversation_id, ADA)
    with pytest.raises(TurnNotSaved) as caught:
        ask(coach, "b", **options)
    breakage.end()
    return caught.value


def texts(conversation_id: str) -> list[str]:
    return [message.text for message in store.load(conversation_id)]


SAVED = ["a", "first", "b", "", "done", "precious"]


def test_an_answer_that_cannot_be_stored_is_in_the_error_and_can_be_stored_later(
    breakage: Breakage, script: ScriptedProvider, ask: Ask, tries: list[float]
) -> None:
    conversation_id = opened()
    error = unsaved(breakage, ask, conversation_id)
    # Reserving, noting the result and appending, each as often as it may.
    assert len(tries) % len(retrying.DELAYS) == 0
    assert bool(tries) == isinstance(breakage, NoConnection)
    assert (error.turn.text, error.conversation.id) == ("precious", conversation_id)
    assert error.turn.status == "completed"
    assert texts(conversation_id) == ["a", "first"]
    stored = store.append(error.conversation, error.turn)
    assert texts(conversation_id) == SAVED
    assert store.append(error.conversation, error.turn) == stored
    assert faults_of_tables() == []
    assert (len(script.requests), breakage.runs) == (3, 1)


def test_what_tools_did_in_a_turn_that_was_not_stored_is_told_to_the_model(
    breakage: Breakage, script: ScriptedProvider, in_two_ways: Ask
) -> None:
    conversation_id = opened()
    unsaved(breakage, in_two_ways, conversation_id)
    if connection.vendor == "sqlite":
        lapse()  # in a locked file the reservation could not be given back either
    in_two_ways(Coach().continue_conversation(conversation_id, ADA), "c")
    *_, result, prompt = script.requests[-1].messages
    noted = isinstance(breakage, NoTable) or connection.vendor != "sqlite"
    assert (result.text, prompt.text) == ("done" if noted else INTERRUPTED, "c")
    assert faults_of_tables() == []


def test_a_turn_that_is_stored_later_takes_the_place_of_what_was_recorded_of_it(
    breakage: Breakage, script: ScriptedProvider, in_two_ways: Ask
) -> None:
    conversation_id = opened()
    error = unsaved(breakage, in_two_ways, conversation_id)
    lapse()
    in_two_ways(Coach().continue_conversation(conversation_id, ADA), "c")
    assert "precious" not in texts(conversation_id)
    stored = store.append(error.conversation, error.turn)
    assert texts(conversation_id) == [*SAVED, "c", "next"]
    assert store.append(error.conversation, error.turn) == stored
    assert faults_of_tables() == []


def test_a_turn_that_is_stored_later_keeps_its_idempotency_key(
    breakage: Breakage, script: ScriptedProvider, in_two_ways: Ask
) -> None:
    conversation_id = opened()
    error = unsaved(breakage, in_two_ways, conversation_id, idempotency_key="key")
    store.append(error.conversation, error.turn)
    again = Coach().continue_conversation(conversation_id, ADA)
    assert in_two_ways(again, "b", idempotency_key="key").text == "precious"
    assert len(script.requests) == 3
    assert breakage.runs == 1


def test_a_first_turn_that_cannot_be_stored_can_be_stored_later(
    breakage: Breakage, scripted_provider: ScriptedProvider, in_two_ways: Ask
) -> None:
    scripted_provider.extend([[ToolCall(id="call_1", name="act")], "precious"])
    with pytest.raises(TurnNotSaved) as caught:
        in_two_ways(Coach(tools=[breakage.tool()]).for_participant(ADA), "b")
    breakage.end()
    store.append(caught.value.conversation, caught.value.turn)
    assert texts(caught.value.conversation.id) == SAVED[2:]
    assert store.latest_conversation_id(ADA, "coach") == caught.value.conversation.id
    assert faults_of_tables() == []


def test_a_failed_turn_that_cannot_be_recorded_is_recorded_by_the_next_one(
    breakage: Breakage, scripted_provider: ScriptedProvider, in_two_ways: Ask
) -> None:
    call = ToolCall(id="call_1", name="act")
    scripted_provider.extend(["first", [call], ProviderUnavailable("gone"), "next"])
    conversation_id = opened()
    coach = Coach(tools=[breakage.tool()]).continue_conversation(conversation_id, ADA)
    with pytest.raises(ProviderUnavailable):
        in_two_ways(coach, "b")
    breakage.end()
    lapse()
    in_two_ways(coach, "c")
    (failed,) = ConversationMessage.objects.filter(status="failed")
    assert failed.error_code == "Interrupted"
    assert texts(conversation_id)[-2:] == ["c", "next"]
    assert faults_of_tables() == []


def test_a_turn_that_was_committed_unseen_is_not_stored_again(
    server: None,
    other: BaseDatabaseWrapper,
    script: ScriptedProvider,
    tries: list[float],
    in_two_ways: Ask,
) -> None:
    conversation_id = opened()
    with ExitStack() as stack:
        breakage = UnseenCommit(other, stack)
        error = unsaved(breakage, in_two_ways, conversation_id)
    assert texts(conversation_id) == SAVED
    stored = store.append(error.conversation, error.turn)
    assert stored.turn_id == error.conversation.turn_id
    assert texts(conversation_id) == SAVED
    assert faults_of_tables() == []


def test_a_turn_that_the_memory_could_not_store_can_be_stored_later(
    scripted_provider: ScriptedProvider, ask: Ask
) -> None:
    class Full(InMemoryConversationStore):
        full = True

        def append(self, *args: Any, **options: Any) -> Any:
            if self.full:
                raise OSError("disk full")
            return super().append(*args, **options)

    @tool
    def act() -> str:
        return "done"

    scripted_provider.extend([[ToolCall(id="call_1", name="act")], "precious", "next"])
    with override_store(Full()) as full:
        coach = Coach(tools=[act], conversation_id="c")
        with pytest.raises(TurnNotSaved) as caught:
            ask(coach, "b", idempotency_key="key")
        full.full = False
        full.append(caught.value.conversation, caught.value.turn)
        assert ask(coach, "b", idempotency_key="key").text == "precious"
        assert [message.text for message in full.load("c")] == SAVED[2:]


def test_a_direct_append_inside_a_transaction_is_not_tried_again(
    server: None, other: BaseDatabaseWrapper, tries: list[float]
) -> None:
    with ExitStack() as stack:
        breakage = NoConnection(other, stack)
        breakage.begin()
        with pytest.raises(DatabaseError), transaction.atomic():
            store.append("c", a_turn())
    assert tries == []
    with transaction.atomic(), pytest.raises(TransactionOpen):
        store.reserve("c", create=True)
