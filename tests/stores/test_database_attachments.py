"""Attachments in the database store: which statements, which rows, and nothing lost."""

from __future__ import annotations

import hashlib
import random
import re
from typing import Any

import pytest
from django.db import IntegrityError, connection

from agent_memory import Agent, Message, RemembersConversations, load_file, load_image
from agent_memory.exceptions import TooLarge
from agent_memory.messages import DocumentPart, TextPart
from agent_memory.models import Conversation, ConversationAttachment, ConversationMessage
from agent_memory.records import Heading
from agent_memory.stores.database import DatabaseConversationStore, packets
from agent_memory.testing import ScriptedProvider
from agent_memory.testing.contract.attachments import (
    PICTURE,
    RENAMED,
    REPORT,
    asking,
    turn_with,
)
from agent_memory.testing.contract.base import plain_turn
from tests.files import PDF, PNG
from tests.stores.test_database import ADA, plan, statements, warmed

TABLE = "agent_conversation_attachments"


class Coach(RemembersConversations, Agent):
    label = "coach"


@pytest.fixture
def store(db: None) -> DatabaseConversationStore:
    return warmed(DatabaseConversationStore())


@pytest.fixture
def provider(scripted_provider: ScriptedProvider) -> ScriptedProvider:
    scripted_provider.extend(["I see."] * 9)
    return scripted_provider


def about_files(done: list[str]) -> list[str]:
    return [sql for sql in done if TABLE in sql]


# Statements.


def test_a_prompt_with_files_is_remembered_with_them(store, provider):
    image, document = load_image(PNG, file_name="chart.png"), load_file(PDF)
    reply = Coach().for_participant(ADA).prompt("Compare.", attachments=[image, document])
    again = Coach().continue_conversation(reply.conversation_id, ADA).prompt("And now?")
    asked, *_ = provider.requests[-1].messages
    assert asked == Message("user", [TextPart(text="Compare."), image, document])
    assert asked == store.load(again.conversation_id)[0]


@pytest.mark.parametrize("given", [[PICTURE], [PICTURE, REPORT, RENAMED]], ids=["one", "three"])
def test_files_take_a_fixed_number_of_statements_more(store, provider, given):
    coach = Coach().for_participant(ADA)
    assert len(statements(lambda: coach.prompt("a", attachments=given))) == 2 + 1
    assert len(statements(lambda: coach.prompt("b"))) == 4 + 1
    other = DocumentPart(data=b"other", media_type="text/plain")
    assert len(statements(lambda: coach.prompt("c", attachments=[other]))) == 4 + 1 + 2
    assert len(statements(lambda: coach.prompt("d", attachments=[other]))) == 4 + 1 + 1


def test_a_window_without_files_reads_none_of_those_before_it(store, provider):
    store.append("c", turn_with(PICTURE))
    store.append("c", plain_turn())
    coach = Coach(keep_last_turns=1).continue_conversation("c")
    done = statements(lambda: coach.prompt("a"))
    assert len(done) == 4
    assert about_files(done) == []


def test_a_window_reads_the_files_in_it_and_no_others(store):
    store.append("c", turn_with(PICTURE))
    last = turn_with(REPORT)
    store.append("c", last)
    ConversationAttachment.objects.exclude(size=REPORT.size).update(data=None, stored_name="gone")
    assert store.load("c", keep_last_turns=1) == last.messages
    (read,) = about_files(statements(lambda: store.load("c", keep_last_turns=1)))
    assert hashlib.sha256(PICTURE.data).hexdigest() not in read


@pytest.mark.parametrize(
    "read",
    [
        lambda store: store.paginate_conversation_messages("c"),
        lambda store: store.get("c"),
        lambda store: store.list_conversations(ADA),
        lambda store: store.latest_conversation_id(ADA, ""),
        lambda store: [*ConversationMessage.objects.select_related("conversation")],
    ],
    ids=["page", "get", "list", "latest", "rows"],
)
def test_what_only_tells_of_files_reads_nothing_of_them(store, read):
    store.append(Heading("c", ADA), turn_with(PICTURE, REPORT))
    (done,) = statements(lambda: read(store))
    assert TABLE not in done


def test_a_row_of_an_attachment_brings_its_bytes_only_when_they_are_asked_for(store):
    store.append("c", turn_with(PICTURE))
    found: list[ConversationAttachment] = []
    (done,) = statements(lambda: found.append(ConversationAttachment.objects.get()))
    assert '."data"' not in done.replace("`", '"')
    row = Conversation.objects.get().attachments.get()
    assert row.get_deferred_fields() == {"data"}
    assert bytes(row.data) == PICTURE.data


FOUND_BY = {
    "sqlite": r"conversation_id=\? AND sha256=\?",
    "postgresql": "agent_memory_att_content",
    "mysql": "agent_memory_att_content",
}


@pytest.mark.django_db(transaction=True)
def test_the_files_of_a_window_are_found_by_an_index():
    store = warmed(DatabaseConversationStore())
    for number in range(60):
        document = DocumentPart(data=b"%d" % number, media_type="text/plain")
        store.append(f"other-{number}", turn_with(document))
    store.append("c", turn_with(PICTURE, REPORT))
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {'TABLE ' if connection.vendor == 'mysql' else ''}{TABLE}")
    (read,) = about_files(statements(lambda: store.load("c")))
    found = plan(read)
    assert re.search(FOUND_BY[connection.vendor], found), found


def test_bytes_are_sent_beside_the_statement_on_postgresql(store):
    if connection.vendor != "postgresql":
        pytest.skip("needs PostgreSQL: TEST_DATABASE=postgresql uv run --extra postgres pytest")
    sent: list[int] = []

    def measure(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        if sql.startswith("INSERT") and TABLE in sql:
            sent.append(len(context["cursor"].cursor._query.query))
        return result

    data = random.Random(1).randbytes(100_000)
    with connection.execute_wrapper(measure):
        store.append("c", turn_with(DocumentPart(data=data, media_type="text/plain")))
    assert len(sent) == 1
    assert sent[0] < 1000


# Rows.


def test_a_message_holds_no_bytes_and_its_conversation_each_content_once(store):
    for name in ("one", "two"):
        store.append(name, turn_with(REPORT, PICTURE, RENAMED))
        store.append(name, turn_with(RENAMED))
    assert ConversationAttachment.objects.count() == 4
    rows = Conversation.objects.get(id="one").attachments
    assert {*rows.values_list("media_type", "file_name", "size")} == {
        ("application/pdf", "", REPORT.size),
        ("image/png", "ä picture.png", PICTURE.size),
    }
    said = ConversationMessage.objects.filter(role="user")
    assert all(len(parts) < 1500 for parts in said.values_list("parts", flat=True))


def test_names_and_types_that_databases_dislike_lose_nothing_of_the_message(store):
    odd = DocumentPart(data=b"a", media_type="a/\0\ud800" * 99, file_name="\ud800\n\0/" * 99 + "b")
    turn = turn_with(odd)
    store.append("c", turn)
    assert store.load("c") == turn.messages
    row = ConversationAttachment.objects.get()
    assert len(row.media_type) == 255
    assert row.file_name == "b"


def test_a_turn_that_cannot_be_written_leaves_no_file(store, monkeypatch):
    store.append("c", plain_turn())
    reservation = store.reserve("c")
    with monkeypatch.context() as patched:
        patched.setattr("agent_memory.stores.database.queries.turn_rows.run", broken)
        with pytest.raises(IntegrityError):
            store.append("c", turn_with(PICTURE), reservation=reservation)
    assert not ConversationAttachment.objects.exists()


def broken(*args: Any) -> None:
    raise IntegrityError("boom")


def test_a_file_whose_row_is_gone_is_told_to_the_model_in_words(store):
    store.append("c", turn_with(PICTURE))
    ConversationAttachment.objects.all().delete()
    asked, _ = store.load("c")
    assert [part.text for part in asked.content] == [
        "Look:",
        "[Here stood a file of type image that is gone: ä picture.png]",
    ]


@pytest.mark.parametrize(
    "data",
    [b"a" * 200_000, bytes(range(256)) * 800, b"\0'\"\\\n\r\x1a" * 30_000],
    ids=["plain", "any", "escaped"],
)
def test_what_is_refused_for_the_limit_of_a_statement_counts_all_files(store, monkeypatch, data):
    if connection.vendor != "mysql":
        pytest.skip("needs MariaDB or MySQL: TEST_DATABASE=mariadb uv run --extra mysql pytest")
    documents = [DocumentPart(data=data + bytes([n]), media_type="text/plain") for n in (1, 2)]
    monkeypatch.setattr(packets, "max_allowed_packet", lambda using: 1)
    with pytest.raises(TooLarge, match="max_allowed_packet") as caught:
        store.reserve("c", create=True, message=asking(*documents))
    assert store.get("c") is None
    sent: list[int] = []

    def measure(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        sent.append(len(context["cursor"].cursor._executed))
        return result

    with connection.execute_wrapper(measure):
        store.append("c", turn_with(*documents))
    needed = int(re.findall(r"of (\d+) bytes", str(caught.value))[0])
    assert needed - packets.SMALL <= max(sent) <= needed
