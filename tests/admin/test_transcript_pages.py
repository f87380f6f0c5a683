"""The pages of a long conversation: where they begin and end, and what each costs."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agent_memory.admin import transcript
from agent_memory.messages import Message, Step, TextPart, Turn
from agent_memory.participants import Participant
from agent_memory.records import Heading
from tests.admin import talks
from tests.admin.saying import conversation_page, page_of, store, talk

pytestmark = pytest.mark.django_db


def positions(page: str) -> list[int]:
    return [int(number) for number in re.findall(r'id="message-(-?\d+)"', page)]


def test_pages_begin_with_the_newest_and_reach_the_first_message_by_links(
    admin_client: Client, ann: User
) -> None:
    talks.long(ann, 50)
    found: list[int] = []
    query = ""
    for _ in range(3):
        page = page_of(admin_client, conversation_page("long") + query)
        shown = positions(page)
        assert shown == sorted(shown)
        found = shown + found
        older = re.search(r'href="(\?before=-?\d+)#newest">Older messages', page)
        if not older:
            break
        query = older[1]
    assert found == list(range(-1, 100))


def test_newer_links_lead_back_to_the_newest(admin_client: Client, ann: User) -> None:
    talks.long(ann, 50)
    query = "?before=20"
    for expected in ([*range(-1, 20)], [*range(20, 60)], [*range(60, 100)]):
        page = page_of(admin_client, conversation_page("long") + query)
        assert positions(page) == expected
        newer = re.search(r'href="(\?before=\d+)">Newer messages', page)
        query = newer[1] if newer else ""
    assert not query
    assert "Newest messages" not in page


def test_a_new_turn_moves_no_older_page(admin_client: Client, ann: User) -> None:
    talks.long(ann, 30)
    before = positions(page_of(admin_client, f"{conversation_page('long')}?before=20"))
    talk("long", ann)
    assert positions(page_of(admin_client, f"{conversation_page('long')}?before=20")) == before


@pytest.mark.parametrize("cursor", ["x", "", "1.5", "9" * 40, "\u0663", "None", "1 or 1=1"])
def test_what_is_no_place_in_a_conversation_is_not_found(admin_client: Client, cursor: str) -> None:
    talk("one")
    assert admin_client.get(conversation_page("one"), {"before": cursor}).status_code == 404


@pytest.mark.parametrize("cursor", ["-999999999", "0", "7", "999999999"])
def test_a_place_beyond_a_conversation_has_a_page(admin_client: Client, cursor: str) -> None:
    talk("one")
    assert admin_client.get(conversation_page("one"), {"before": cursor}).status_code == 200


# What it costs.


@pytest.fixture
def queries(admin_client: Client) -> Callable[[str], list[str]]:
    def queries(url: str) -> list[str]:
        admin_client.get(url)  # content types are read once a process
        with CaptureQueriesContext(connection) as captured:
            assert admin_client.get(url).status_code == 200
        return [query["sql"] for query in captured.captured_queries]

    return queries


def test_a_page_takes_the_same_queries_at_any_length_and_depth(
    queries: Callable[[str], list[str]], ann: User
) -> None:
    talks.long(ann, 1, key="short")
    talks.long(ann, 60)
    short = queries(conversation_page("short"))
    assert len(short) == len(queries(conversation_page("long"))) <= 7
    assert len(short) == len(queries(f"{conversation_page('long')}?before=60"))


def test_a_page_takes_no_query_for_each_call_file_or_speaker(
    queries: Callable[[str], list[str]], ann: User
) -> None:
    talks.rich(ann)
    once = queries(conversation_page("rich"))
    speakers = [ann, *(User.objects.create_user(f"user{number}") for number in range(5))]
    said = Message("user", [talks.TextPart(text="Hello")])
    for each in speakers:
        heading = Heading("many", Participant.of(each), "shop.agents.Clerk")
        store.append(heading, Turn(user=said, steps=(Step(items=(TextPart(text="Hi"),)),)))
    assert len(queries(conversation_page("many"))) <= len(once)


def test_a_page_reads_no_bytes_and_no_more_rows_than_it_shows(
    queries: Callable[[str], list[str]], ann: User
) -> None:
    talks.rich(ann)
    for query in queries(conversation_page("rich")):
        assert "agent_conversation_attachments" not in query
        assert "COUNT(" not in query
        if "ORDER BY" in query and "agent_conversation_messages" in query and "parts" in query:
            assert f"LIMIT {transcript.ROWS + 1}" in query


@pytest.mark.heavy
@pytest.mark.django_db(transaction=True)  # MariaDB takes minutes to undo so many savepoints
def test_ten_thousand_messages_have_pages_like_any(
    queries: Callable[[str], list[str]], ann: User
) -> None:
    with transaction.atomic():
        talks.long(ann, 25, key="short")
        talks.long(ann, 5000)
    short = queries(conversation_page("short"))
    for query in ("", "?before=5000", "?before=20"):
        assert len(queries(conversation_page("long") + query)) == len(short)
