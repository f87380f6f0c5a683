"""The hot queries at any length: how they find rows, how many they fetch, what that takes of memory."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from agent_memory import Message
from agent_memory.admin.exports import as_json, rows_of
from agent_memory.admin.transcript import page_before
from agent_memory.approvals import Deny
from agent_memory.exceptions import ConversationBusy
from agent_memory.journals import JournalEntry
from agent_memory.messages import ImagePart, Step, TextPart, ToolCall, Turn
from agent_memory.models import Conversation, ConversationMessage, ToolApproval
from agent_memory.records import Heading, Once
from agent_memory.stores.database import DatabaseConversationStore
from tests.stores.test_database import ADA, a_turn, filled, plan, statements, warmed

pytestmark = pytest.mark.heavy

CALL = ToolCall(id="a", name="pay", approval_reason="Money.")
ASKED = Step(items=(CALL,), finish_reason="tool_calls")
ONCE = Once("key", "fingerprint")
WHOLE_TABLE = {
    "sqlite": r"'SCAN (?!CONSTANT)",
    "postgresql": r"Seq Scan",
    "mysql": r"'(ALL|index)'",
}
"""How a plan tells of a query that reads all rows, of a table or of an index."""


def paused() -> Turn:
    return Turn(user=Message("user", "a"), steps=(ASKED,), status="paused")


# How rows are found.


def a_turn_with_a_tool(store: DatabaseConversationStore) -> None:
    reservation = store.reserve("filled", participant=ADA, must_own=True)
    store.load("filled", keep_last_turns=10, reservation=reservation)
    entry = JournalEntry(0, -1, ASKED, Heading("filled"), Message("user", "a"))
    assert store.journal(reservation, entry, 60)
    assert store.renew(reservation, 60)
    store.append("filled", a_turn(), reservation=reservation)


def a_turn_with_a_key(store: DatabaseConversationStore) -> None:
    reservation = store.reserve("filled", once=ONCE)
    store.append("filled", a_turn(), reservation=reservation)
    assert store.reserve("filled", once=ONCE).answered is not None


def a_turn_with_an_image(store: DatabaseConversationStore) -> None:
    picture = ImagePart(data=b"\x89PNG", media_type="image/png")
    said = Message("user", (TextPart(text="a"), picture))
    store.append("filled", Turn(user=said, steps=a_turn().steps))
    (image,) = store.paginate_conversation_messages("filled", per_page=2).items[1].attachments
    assert store.load("filled", keep_last_turns=1)[0] == said
    assert store.read_attachment("filled", image.id) == b"\x89PNG"


def a_turn_that_waits(store: DatabaseConversationStore) -> None:
    store.append("filled", paused())
    assert store.pending_approvals_for("filled")
    store.decide("filled", {"a": Deny()})
    reservation = store.reserve("filled", resume=True)
    done = paused().model_copy(update={"status": "completed"})
    store.settle("filled", done, reservation=reservation)


def a_busy_conversation(store: DatabaseConversationStore) -> None:
    reservation = store.reserve("filled")
    with pytest.raises(ConversationBusy):
        store.reserve("filled")
    store.release(reservation)


def looking(store: DatabaseConversationStore) -> None:
    assert store.get("filled")
    assert store.conversation_belongs_to("filled", ADA)
    store.rename("filled", "title")


def analysed() -> DatabaseConversationStore:
    """Return a store of many conversations, one of them longer, whose sizes the planner knows."""
    store = warmed(DatabaseConversationStore())
    filled(store, 12)
    for number in range(120):
        store.append(Heading(f"other-{number}"), a_turn(answer="word " * 400))
        store.append(Heading(f"other-{number}"), paused())
    with connection.cursor() as cursor:
        for model in (Conversation, ConversationMessage, ToolApproval):
            table = model._meta.db_table
            cursor.execute(f"ANALYZE {'TABLE ' if connection.vendor == 'mysql' else ''}{table}")
    return store


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "work",
    [
        a_turn_with_a_tool,
        a_turn_with_a_key,
        a_turn_with_an_image,
        a_turn_that_waits,
        a_busy_conversation,
        looking,
        lambda store: store.clear("filled"),
    ],
    ids=["tool", "key", "image", "approval", "busy", "looking", "clear"],
)
def test_no_statement_of_a_turn_goes_through_a_whole_table(work):
    store = analysed()
    finding = ("SELECT", "UPDATE", "DELETE")
    made = [sql for sql in statements(lambda: work(store)) if sql.lstrip("(").startswith(finding)]
    assert made
    plans = {sql: plan(sql) for sql in made}
    whole = WHOLE_TABLE[connection.vendor]
    assert {sql: found for sql, found in plans.items() if re.search(whole, found)} == {}


@pytest.mark.django_db(transaction=True)
def test_a_statement_that_does_would_be_found():
    analysed()
    found = plan("SELECT id FROM agent_conversation_messages WHERE model = 'none'")
    assert re.search(WHOLE_TABLE[connection.vendor], found), found


# How many rows are fetched.


class CountingCursor(CursorWrapper):
    """A real cursor that counts the rows which it gives away."""

    fetched = 0

    def fetchone(self) -> Any:
        row = self.cursor.fetchone()
        CountingCursor.fetched += row is not None
        return row

    def fetchmany(self, *args: Any) -> Any:
        return self._counted(self.cursor.fetchmany(*args))

    def fetchall(self) -> Any:
        return self._counted(self.cursor.fetchall())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._counted(self.cursor.fetchall()))

    def _counted(self, rows: Any) -> Any:
        CountingCursor.fetched += len(rows)
        return rows


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], int]:
    """Return what tells how many rows work fetches."""

    def fetched(work: Callable[[], Any]) -> int:
        CountingCursor.fetched = 0
        with monkeypatch.context() as patched:
            patched.setattr(
                connection, "make_cursor", lambda made: CountingCursor(made, connection)
            )
            work()
        return CountingCursor.fetched

    return fetched


def whole_turn(store: DatabaseConversationStore) -> None:
    reservation = store.reserve("filled", participant=ADA, must_own=True)
    store.load("filled", keep_last_turns=10, reservation=reservation)
    store.append("filled", a_turn(), reservation=reservation)


@pytest.mark.parametrize("turns", [15, 60])
@pytest.mark.parametrize(
    ("read", "rows"),
    [
        (lambda store: store.load("filled", keep_last_turns=10), 20),
        (lambda store: store.paginate_conversation_messages("filled", per_page=5), 6),
        (lambda store: store.paginate_conversation_messages("filled", per_page=5, cursor="9"), 6),
        (lambda store: store.latest_conversation_id(ADA, "coach"), 1),
        (lambda store: store.list_conversations(ADA, per_page=5), 6),
        (lambda store: store.get("filled"), 1),
    ],
    ids=["window", "page", "deep page", "latest", "list", "get"],
)
def test_what_is_read_fetches_no_row_beyond_it(db, fetched, read, rows, turns):
    store = warmed(DatabaseConversationStore())
    for number in range(8):
        store.append(Heading(f"other-{number}", ADA, "coach"), a_turn())
    filled(store, turns)
    assert fetched(lambda: read(store)) == rows


@pytest.mark.parametrize("turns", [15, 60])
def test_a_whole_turn_fetches_its_window_and_what_it_changed(db, fetched, turns):
    store = warmed(DatabaseConversationStore())
    filled(store, turns)
    window, changed = 20, 3  # the conversation as it is reserved, the keys of two new rows
    assert window <= fetched(lambda: whole_turn(store)) <= window + changed


TURNS = 2000


@pytest.fixture
def long_alone(transactional_db: None) -> DatabaseConversationStore:
    """Store a conversation that is its whole table, where a planner may prefer to walk."""
    store = warmed(DatabaseConversationStore())
    Conversation.objects.all().delete()
    store.append("long", a_turn())
    pair = list(ConversationMessage.objects.order_by("position").values())
    ConversationMessage.objects.bulk_create(
        ConversationMessage(**row | {"id": None, "position": 2 * number + row["position"]})
        for number in range(1, TURNS)
        for row in pair
    )
    Conversation.objects.update(next_position=2 * TURNS, turn_count=TURNS)
    with connection.cursor() as cursor:
        table = ConversationMessage._meta.db_table
        cursor.execute(f"ANALYZE {'TABLE ' if connection.vendor == 'mysql' else ''}{table}")
    return store


@pytest.mark.parametrize(
    ("read", "most"),
    [
        (lambda store: store.paginate_conversation_messages("long", per_page=25), 60),
        (lambda store: store.paginate_conversation_messages("long", per_page=25, cursor="900"), 60),
        (lambda store: store.paginate_conversation_messages("long", per_page=25, cursor="20"), 60),
        (lambda store: store.load("long", keep_last_turns=10), 60),
        (lambda _: page_before(Conversation.objects.get(), 900), 200),
        (lambda _: list(rows_of(Conversation.objects.get())), 3 * 2 * TURNS),
    ],
    ids=["first page", "deep page", "last page", "window", "transcript", "export"],
)
def test_a_database_reads_hardly_more_than_it_gives(long_alone, read, most):
    read(long_alone)
    assert rows_read(lambda: read(long_alone)) <= most


def test_a_walk_to_a_deep_page_would_be_found(long_alone):
    walk = ConversationMessage.objects.extra(where=["position + 0 < 900"]).order_by("-position")
    assert rows_read(lambda: list(walk.filter(conversation="long")[:26])) > 300


STEPS = 40
"""What SQLite's machine may take for a row."""


def rows_read(work: Callable[[], Any]) -> int:
    """Return how many rows and entries of indexes the database reads for some work."""
    if connection.vendor == "sqlite":
        steps = count()
        connection.connection.set_progress_handler(lambda: next(steps) < 0, 1)
        work()
        connection.connection.set_progress_handler(None, 1)
        return next(steps) // STEPS
    with transaction.atomic():
        before = _told()
        work()
        return _told() - before


def _told() -> int:
    with connection.cursor() as cursor:
        if connection.vendor == "mysql":
            cursor.execute("SHOW SESSION STATUS LIKE 'Handler_read%'")
            return sum(int(number) for name, number in cursor.fetchall() if "rnd" not in name)
        cursor.execute("SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_xact_user_tables")
        return int(cursor.fetchone()[0])


# What it takes of memory.

LONG_TEXT = "word " * 2000


def peak(work: Callable[[], Any]) -> int:
    """Return the bytes that work needs at its worst, when done a second time."""
    work()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def exported(_: DatabaseConversationStore) -> None:
    for _piece in as_json(Conversation.objects.get()):
        pass


def paged_through(store: DatabaseConversationStore) -> None:
    page = store.paginate_conversation_messages("long", per_page=10)
    while page.next_cursor is not None:
        page = store.paginate_conversation_messages("long", per_page=10, cursor=page.next_cursor)


READS = {
    "window": lambda store: store.load("long", keep_last_turns=5),
    "page": lambda store: store.paginate_conversation_messages("long", per_page=10),
    "all pages": paged_through,
    "export": exported,
    "history": lambda store: store.load("long"),
}


def peaks(store: DatabaseConversationStore) -> dict[str, int]:
    return {name: peak(lambda read=read: read(store)) for name, read in READS.items()}


def test_memory_stays_flat_however_long_a_conversation_is(db):
    store = warmed(DatabaseConversationStore())

    def grow(turns: int) -> dict[str, int]:
        for _ in range(turns):
            store.append("long", a_turn(LONG_TEXT, LONG_TEXT))
        return peaks(store)

    short, long = grow(50), grow(150)
    grown = {name: long[name] / short[name] for name in READS}
    assert grown.pop("history") > 3, "what holds all of it would be found"
    assert {name: ratio for name, ratio in grown.items() if ratio > 1.3} == {}
