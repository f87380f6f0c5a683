"""The database store: how many statements, which rows, whose connection."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.contenttypes.models import ContentType
from django.db import IntegrityError, connection, connections, transaction
from django.test.utils import CaptureQueriesContext

from agent_memory import Agent, Message, Participant, RemembersConversations
from agent_memory.admin import transcript
from agent_memory.approvals import Deny
from agent_memory.exceptions import (
    ApprovalsPending,
    ConversationBusy,
    ConversationConflict,
    ConversationDoesNotExist,
    TransactionOpen,
    UnsupportedFormat,
)
from agent_memory.journals import JournalEntry
from agent_memory.messages import Step, TextPart, ToolCall, Turn, Usage
from agent_memory.models import Conversation, ConversationMessage
from agent_memory.records import Heading
from agent_memory.signals import conversation_cleared
from agent_memory.stores.database import DatabaseConversationStore, readings
from agent_memory.testing import ScriptedProvider

ADA = Participant("auth.user", "1")
BOUNDARIES = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE", "ROLLBACK")


class Coach(RemembersConversations, Agent):
    pass


@pytest.fixture
def store(db: None) -> DatabaseConversationStore:
    return warmed(DatabaseConversationStore())


def warmed(store: DatabaseConversationStore) -> DatabaseConversationStore:
    """Have the content types of participants looked up, as they are in a running process."""
    ContentType.objects.clear_cache()
    for model in ("user", "group"):
        ContentType.objects.get_for_id(ContentType.objects.get_by_natural_key("auth", model).pk)
    return store


def a_turn(said: str = "a", answer: str = "b", **fields: Any) -> Turn:
    step = Step(items=(TextPart(text=answer),), usage=Usage(input_tokens=2, output_tokens=1))
    return Turn(user=Message("user", said), steps=(step,), **fields)


def statements(work: Callable[[], Any]) -> list[str]:
    """Return the statements that work takes, besides those that begin and end transactions."""
    with CaptureQueriesContext(connection) as captured:
        work()
    return [q["sql"] for q in captured if not q["sql"].startswith(BOUNDARIES)]


# Statements.


def filled(store: DatabaseConversationStore, turns: int) -> str:
    for number in range(turns):
        store.append(Heading("filled", ADA, "coach"), a_turn(f"a{number}"))
    return "filled"


@pytest.fixture(params=[1, 60], ids=["short", "long"])
def conversation_id(request: pytest.FixtureRequest, store: DatabaseConversationStore) -> str:
    return filled(store, request.param)


@pytest.fixture(params=["prompt", "aprompt"])
def ask(request: pytest.FixtureRequest, scripted_provider: ScriptedProvider) -> Callable[..., Any]:
    scripted_provider.extend(["answer"])

    def ask(agent: Agent, **options: Any) -> Any:
        asked = getattr(agent, request.param)
        return (asked if request.param == "prompt" else async_to_sync(asked))("a", **options)

    return ask


def test_a_turn_of_a_conversation_takes_four_statements(store, conversation_id, ask):
    coach = Coach(keep_last_turns=10).continue_conversation(conversation_id, ADA, must_own=True)
    assert len(statements(lambda: ask(coach))) == 4


def test_a_first_turn_of_an_id_of_ours_takes_two_statements(store, ask):
    assert len(statements(lambda: ask(Coach().for_participant(ADA)))) == 2


def test_a_first_turn_of_a_new_id_takes_five_statements(store, ask):
    assert len(statements(lambda: ask(Coach(), conversation_id="new"))) == 5


def test_finding_the_last_conversation_takes_one_statement_more(store, conversation_id, ask):
    coach = Coach(label="coach").continue_last_conversation(ADA)
    assert len(statements(lambda: ask(coach))) == 5


@pytest.mark.parametrize("streamed", ["stream", "astream"])
def test_a_streamed_turn_takes_as_many_statements(
    store, conversation_id, scripted_provider, streamed
):
    scripted_provider.extend(["answer"])
    coach = Coach(keep_last_turns=10).continue_conversation(conversation_id, ADA, must_own=True)

    async def read() -> None:
        async for _ in coach.astream("a"):
            pass

    if streamed == "stream":
        assert len(statements(lambda: list(coach.stream("a")))) == 4
    else:
        assert len(statements(async_to_sync(read))) == 4


def test_each_transaction_of_a_turn_begins_with_the_update_or_insert_of_its_conversation(
    store, conversation_id
):
    gated = ToolCall(id="a", name="pay", approval_reason="Money.")
    step = Step(items=(gated,), finish_reason="tool_calls")
    paused = Turn(user=Message("user", "a"), steps=(step,), status="paused")
    heading = Heading(conversation_id)

    def journalled() -> None:
        reservation = store.reserve(conversation_id)
        entry = JournalEntry(0, -1, step, heading, Message("user", "a"))
        assert store.journal(reservation, entry, 60)
        store.release(reservation)

    def resumed() -> None:
        reservation = store.reserve(conversation_id, resume=True)
        done = paused.model_copy(update={"status": "completed"})
        store.settle(heading, done, reservation=reservation)

    works = [
        lambda: store.append("new", a_turn()),
        lambda: store.append(conversation_id, a_turn()),
        journalled,
        lambda: store.append(heading, paused),
        lambda: store.decide(conversation_id, {"a": Deny()}),
        resumed,
        lambda: store.clear(conversation_id),
    ]
    table = connection.ops.quote_name(Conversation._meta.db_table)
    for work in works:
        with CaptureQueriesContext(connection) as captured:
            work()
        begun = False
        for query in captured:
            if query["sql"].startswith("SAVEPOINT"):
                begun = True
            elif begun:
                assert query["sql"].startswith((f"UPDATE {table}", f"INSERT INTO {table}")), query
                begun = False
        assert not begun


def test_a_call_that_fails_takes_one_statement_to_give_back(store, conversation_id):
    reservation = store.reserve(conversation_id)
    assert len(statements(lambda: store.release(reservation))) == 1


@pytest.mark.parametrize(
    "read",
    [
        lambda store, filled: store.paginate_conversation_messages(filled),
        lambda store, filled: store.paginate_conversation_messages(filled, cursor="3"),
        lambda store, filled: store.latest_conversation_id(ADA, "coach"),
        lambda store, filled: store.load(filled),
        lambda store, filled: store.load(filled, keep_last_turns=10),
        lambda store, filled: store.get(filled),
        lambda store, filled: store.list_conversations(ADA),
        lambda store, filled: store.conversation_belongs_to(filled, ADA),
        lambda store, filled: store.rename(filled, "title"),
    ],
    ids=["page", "deep page", "latest", "history", "window", "get", "list", "ownership", "rename"],
)
def test_what_is_read_takes_one_statement(store, conversation_id, read):
    assert len(statements(lambda: read(store, conversation_id))) == 1


def test_clearing_takes_as_many_statements_at_any_length(store, conversation_id):
    assert len(statements(lambda: store.clear(conversation_id))) == 7
    assert not ConversationMessage.objects.exists()


def test_statements_are_compiled_once(store, conversation_id, monkeypatch):
    store.load(conversation_id)
    monkeypatch.setattr(
        "django.db.models.sql.compiler.SQLCompiler.as_sql",
        lambda *args, **kwargs: pytest.fail("compiled again"),
    )
    store.load(conversation_id)
    store.append(conversation_id, a_turn(), reservation=store.reserve(conversation_id))


# Rows.


def test_a_window_reads_no_row_before_it(store, conversation_id):
    coach = Heading(conversation_id, ADA)
    store.append(coach, a_turn("last"))
    ConversationMessage.objects.filter(content__startswith="a").update(parts="not JSON")
    ConversationMessage.objects.filter(content="b").exclude(position__gte=last_position()).update(
        steps="not JSON"
    )
    assert [m.text for m in store.load(conversation_id, keep_last_turns=1)] == ["last", "b"]
    reservation = store.reserve(conversation_id)
    messages = store.load(conversation_id, keep_last_turns=1, reservation=reservation)
    assert [message.text for message in messages] == ["last", "b"]


def last_position() -> int:
    return ConversationMessage.objects.order_by("-position")[0].position


def test_a_page_reads_no_row_after_it(store, conversation_id):
    for _ in range(3):
        store.append(conversation_id, a_turn())
    _, older = store.paginate_conversation_messages(conversation_id, per_page=2)
    ConversationMessage.objects.filter(id__lt=int(older.id)).update(parts="not JSON")
    assert len(store.paginate_conversation_messages(conversation_id, per_page=1)) == 1


@pytest.mark.parametrize("read", ["store", "transcript"])
def test_pages_go_on_below_rows_that_were_deleted_by_hand(store, monkeypatch, read):
    monkeypatch.setattr(readings, "HOLES", 3)
    monkeypatch.setattr(transcript, "ROWS", 4)
    filled(store, 10)
    ConversationMessage.objects.filter(position__range=(2, 13)).delete()
    found: list[int] = []
    if read == "store":
        cursor = None
        while cursor is not None or not found:
            page = store.paginate_conversation_messages("filled", per_page=4, cursor=cursor)
            found += [message.position for message in page]
            cursor = page.next_cursor
    else:
        position: int | None = 20
        while position is not None:
            shown = transcript.page_before(Conversation.objects.get(), position)
            found += [bubble.row.position for bubble in reversed(shown.bubbles)]
            position = shown.older
    assert found == [19, 18, 17, 16, 15, 14, 1, 0]


def plan(sql: str) -> str:
    """Return how the database would find the rows, with tables that have been analysed."""
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")
        explain = "EXPLAIN QUERY PLAN " if connection.vendor == "sqlite" else "EXPLAIN "
        cursor.execute(explain + sql)
        return "\n".join(str(row) for row in cursor.fetchall())


RANGES = {
    "position": {
        "sqlite": r"conversation_id=\? AND position",
        "postgresql": r"agent_memory_msg_position.*\n.*Index Cond.*\"?position\"? [<>]",
        "mysql": r"'(range|ref|eq_ref)'.*'agent_memory_msg_position'",
    },
    "speaker": {
        "sqlite": "agent_memory_msg_participant",
        "postgresql": "agent_memory_msg_participant",
        "mysql": "agent_memory_msg_participant",
    },
    "owner": {
        "sqlite": "agent_memory_conv_participant",
        "postgresql": "agent_memory_conv_participant",
        "mysql": "agent_memory_conv_participant",
    },
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("read", "found_by"),
    [
        (lambda store: store.load("filled", keep_last_turns=2), "position"),
        (
            lambda store: store.load(
                "filled", keep_last_turns=2, reservation=store.reserve("filled")
            ),
            "position",
        ),
        (lambda store: store.paginate_conversation_messages("filled"), "position"),
        (lambda store: store.paginate_conversation_messages("filled", cursor="9"), "position"),
        (lambda store: store.latest_conversation_id(ADA, "coach"), "speaker"),
        (lambda store: store.list_conversations(ADA), "owner"),
    ],
    ids=["window", "reserved window", "page", "deep page", "latest", "list"],
)
def test_what_is_read_is_a_range_of_an_index(read, found_by):
    store = warmed(DatabaseConversationStore())
    filled(store, 40)
    for number in range(100):
        store.append(Heading(f"other-{number}", Participant("auth.group", str(number))), a_turn())
    with connection.cursor() as cursor:
        for table in ("agent_conversations", "agent_conversation_messages"):
            cursor.execute(f"ANALYZE {'TABLE ' if connection.vendor == 'mysql' else ''}{table}")
    *_, read_sql = statements(lambda: read(store))
    found = plan(read_sql)
    assert re.search(RANGES[found_by][connection.vendor], found), found
    if connection.vendor == "sqlite":
        assert "conversation_id=?)" not in found


def test_turns_stand_at_positions_without_gap_behind_leading_ones(store):
    store.create("led", leading=[Message("system", "one"), Message("developer", "two")])
    for _ in range(3):
        store.append("led", a_turn())
    found = ConversationMessage.objects.order_by("position").values_list("position", "role")
    assert list(found)[:4] == [(-2, "system"), (-1, "developer"), (0, "user"), (1, "assistant")]
    assert [position for position, _ in found] == list(range(-2, 6))
    conversation = Conversation.objects.get()
    assert (conversation.next_position, conversation.turn_count) == (6, 3)


def test_what_databases_dislike_is_readable_in_the_plain_copy(store):
    odd = "a\0b\ud800c"
    store.append("odd", a_turn(odd, odd))
    said, answered = ConversationMessage.objects.order_by("position")
    assert said.content == answered.content == "a\ufffdb\ufffdc"
    assert [message.text for message in store.load("odd")] == [odd, odd]


def test_a_count_that_no_column_holds_loses_no_turn(store):
    huge = Step(items=(TextPart(text="b"),), usage=Usage(input_tokens=10**30, output_tokens=-1))
    store.append("huge", Turn(user=Message("user", "a"), steps=(huge,)))
    assert store.load("huge")[1].text == "b"
    assert store.paginate_conversation_messages("huge").items[0].steps == (huge,)


@pytest.mark.parametrize("spoiled", [{"format": 99}, {"steps": '[[{"type":"from the future"}]]'}])
def test_a_row_of_a_later_version_is_an_error_by_name(store, spoiled):
    store.append("new", a_turn())
    ConversationMessage.objects.update(**spoiled)
    for read in (store.load, store.paginate_conversation_messages):
        with pytest.raises(UnsupportedFormat):
            read("new")


def test_fields_of_a_later_version_are_passed_over(store):
    store.append("new", a_turn())
    ConversationMessage.objects.filter(role="user").update(
        parts='[{"type":"text","text":"a","later":1}]'
    )
    ConversationMessage.objects.filter(role="assistant").update(
        steps='[[{"type":"text","text":"b","later":1}]]\n[{"later":1}]'
    )
    assert store.load("new") == (Message("user", "a"), Message("assistant", "b"))


def test_a_paused_turn_is_no_part_of_the_window_and_blocks_the_next(store):
    filled(store, 3)
    Conversation.objects.update(paused_position=4)
    assert [m.text for m in store.load("filled", keep_last_turns=1)] == ["a1", "b"]
    with pytest.raises(ApprovalsPending):
        store.reserve("filled")


def test_a_dead_placeholder_is_hidden_and_taken_over(store):
    store.reserve("dead", create=True, participant=ADA)
    assert store.get("dead") is None
    assert len(store.list_conversations(ADA)) == 0
    with pytest.raises(ConversationDoesNotExist):
        store.reserve("dead")
    Conversation.objects.update(reserved_until=1)
    reservation = store.reserve("dead", create=True)
    store.append("dead", a_turn(), reservation=reservation)
    assert len(store.load("dead")) == 2


def test_what_a_busy_conversation_tells_is_by_the_clock_of_the_database(store):
    filled(store, 1)
    store.reserve("filled")
    with pytest.raises(ConversationBusy) as caught:
        store.reserve("filled")
    assert abs(caught.value.since - datetime.now(UTC)) < timedelta(minutes=1)
    assert 50 < caught.value.retry_after <= 60


def test_a_reservation_ends_by_the_clock_of_the_database_under_any_time_zone(store, settings):
    settings.USE_TZ = False
    settings.TIME_ZONE = "America/New_York"
    filled(store, 1)
    store.reserve("filled")
    with pytest.raises(ConversationBusy):
        store.reserve("filled")


# Commits and connections.


def test_a_retry_after_a_commit_that_nobody_saw_is_a_success(store):
    filled(store, 1)
    reservation = store.reserve("filled")
    store.load("filled", reservation=reservation)
    first = store.append("filled", a_turn("once"), reservation=reservation)
    assert store.append("filled", a_turn("once"), reservation=reservation) == first
    assert len(store.load("filled")) == 4


def test_a_retry_finds_a_failed_form_of_its_turn_a_conflict(store):
    filled(store, 1)
    reservation = store.reserve("filled")
    store.append("filled", a_turn("once", status="failed"), reservation=reservation)
    with pytest.raises(ConversationConflict):
        store.append("filled", a_turn("once"), reservation=reservation)


def test_a_fault_between_the_rows_leaves_nothing(store, monkeypatch):
    filled(store, 1)
    reservation = store.reserve("filled")

    def fault(*args: Any) -> None:
        raise IntegrityError("boom")

    with monkeypatch.context() as patched:
        patched.setattr("agent_memory.stores.database.queries.turn_rows.run", fault)
        with pytest.raises(IntegrityError):
            store.append("filled", a_turn("lost"), reservation=reservation)
    assert Conversation.objects.get().next_position == 2
    store.append("filled", a_turn("kept"), reservation=reservation)
    assert [m.text for m in store.load("filled")] == ["a0", "b", "kept", "b"]


@pytest.mark.django_db(transaction=True)
def test_a_direct_append_joins_the_transaction_of_its_caller():
    store = DatabaseConversationStore()
    with transaction.atomic():
        store.append("rolled back", a_turn())
        transaction.set_rollback(True)
    assert store.get("rolled back") is None
    with transaction.atomic():
        with pytest.raises(TransactionOpen):
            store.reserve("any", create=True)
        with pytest.raises(TransactionOpen):
            store.reserve()


@pytest.mark.django_db(transaction=True)
def test_with_autocommit_off_a_turn_is_refused_too():
    connection.set_autocommit(False)
    try:
        with pytest.raises(TransactionOpen):
            DatabaseConversationStore().reserve()
    finally:
        connection.rollback()
        connection.set_autocommit(True)


@pytest.mark.django_db(transaction=True)
def test_a_clearing_is_told_once_it_is_committed():
    told: list[str] = []

    def receiver(conversation_id: str, **_: Any) -> None:
        told.append(conversation_id)
        raise RuntimeError

    store = DatabaseConversationStore()
    conversation_cleared.connect(receiver)
    try:
        store.append("cleared", a_turn())
        store.clear("unknown")
        with transaction.atomic():
            store.clear("cleared")
            assert told == []
    finally:
        conversation_cleared.disconnect(receiver)
    assert told == ["cleared"]


@pytest.mark.django_db(transaction=True)
def test_an_async_call_gives_its_connection_back():
    store = DatabaseConversationStore()

    async def look() -> Any:
        await store.aappend("a", a_turn())
        return await sync_to_async(lambda: connection.connection)()

    held = async_to_sync(look)()
    if connection.vendor != "sqlite":  # a database in memory lives in its connection
        assert held is None


# Several workers. A database in memory has one connection, so there they take turns.


def in_threads(work: Callable[[int], Any], count: int = 8) -> list[Any]:
    """Return what each of several workers, each with a connection of its own, got or raised."""
    together = threading.Barrier(count)

    def worker(number: int) -> Any:
        together.wait(30)
        try:
            return work(number)
        except Exception as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(worker, range(count)))


@pytest.fixture
def servers(transactional_db: None) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite in memory has one connection: TEST_DATABASE=postgresql uv run pytest")


def test_of_many_workers_one_gets_the_conversation(servers):
    store = DatabaseConversationStore()
    store.append("busy", a_turn())
    for conversation_id in ("busy", "new"):
        got = in_threads(lambda _, taken=conversation_id: store.reserve(taken, create=True))
        refused = [each for each in got if isinstance(each, ConversationBusy)]
        assert len(refused) == 7, got


def test_direct_appends_of_many_workers_neither_mix_nor_get_lost(servers):
    store = DatabaseConversationStore()
    got = in_threads(lambda number: store.append("many", a_turn(f"from {number}")))
    written = [each for each in got if not isinstance(each, Exception)]
    messages = store.load("many")
    assert [message.role for message in messages] == ["user", "assistant"] * len(written)
    assert Conversation.objects.get().turn_count == len(written)
    assert all(isinstance(each, ConversationBusy) for each in got if isinstance(each, Exception))
