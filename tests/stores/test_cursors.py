"""A cursor is a short text that only a page gives out."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime

import pytest

from agent_memory.exceptions import InvalidCursor
from agent_memory.records import StoredConversation, StoredMessage
from agent_memory.stores.cursors import (
    check_per_page,
    conversation_cursor,
    message_cursor,
    read_conversation_cursor,
    read_message_cursor,
)
from agent_memory.testing import override_agent_memory
from agent_memory.testing.contract.base import INVALID_CURSORS, INVALID_SIZES
from agent_memory.testing.contract.fidelity import AWKWARD_IDS

NOW = datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def conversation(conversation_id: str) -> StoredConversation:
    return StoredConversation(conversation_id, None, "coach", "", "", NOW, NOW, 1)


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize("position", [0, 1, 25, 999_999_999, -1, -40])
def test_a_message_cursor_is_its_position(position):
    message = StoredMessage("7", "user", "", NOW, position)
    assert read_message_cursor(message_cursor(message)) == position


@pytest.mark.parametrize("conversation_id", AWKWARD_IDS)
def test_a_conversation_cursor_is_its_last_activity_and_id(conversation_id):
    cursor = conversation_cursor(conversation(conversation_id))
    assert read_conversation_cursor(cursor) == (NOW, conversation_id)
    assert cursor.isascii()
    assert cursor.replace("-", "").replace("_", "").isalnum()


def test_no_cursor_is_the_first_page():
    assert read_message_cursor(None) is None
    assert read_conversation_cursor(None) is None


@pytest.mark.parametrize("cursor", INVALID_CURSORS)
def test_anything_else_is_an_invalid_cursor_and_a_value_error(cursor):
    for read in (read_message_cursor, read_conversation_cursor):
        with pytest.raises(InvalidCursor, match="no page cursor"):
            read(cursor)
        with pytest.raises(ValueError, match="next_cursor"):
            read(cursor)


@pytest.mark.parametrize(
    "value",
    [
        *([], {}, 7, "one", None, [1, "one"], ["one"], ["2030", "one", 1], ["yesterday", "one"]),
        *([NOW.isoformat(), ""], [NOW.isoformat(), 7], [NOW.isoformat(), "a\0"]),
        [NOW.isoformat(), "x" * 256],
        ["2030-01-01", "one"],
        ["2030-01-01T00:00:00", "one"],
        ["2030-01-01T00:00:00+01:00", "one"],
        ["0001-01-01T00:00:00+00:00", "one"],
        ["0001-01-01T00:00:00+23:59", "one"],
        ["9999-12-31T23:59:59+00:00", "one"],
    ],
)
def test_a_conversation_cursor_that_says_something_else_is_invalid(value):
    with pytest.raises(InvalidCursor):
        read_conversation_cursor(encoded(value))


def test_an_endless_cursor_is_told_shortly():
    with pytest.raises(InvalidCursor) as caught:
        read_message_cursor("9" * 10_000)
    assert len(str(caught.value)) < 200


def test_a_page_size_is_a_whole_number_from_1_to_1000():
    for size in (1, 25, 1000):
        assert check_per_page(size) == size
    for size in INVALID_SIZES:
        with pytest.raises(ValueError, match="from 1 to 1000"):
            check_per_page(size)


def test_no_page_size_is_the_setting():
    assert check_per_page(None) == 25
    with override_agent_memory(MESSAGES_PER_PAGE=7):
        assert check_per_page(None) == 7
    with override_agent_memory(MESSAGES_PER_PAGE=0), pytest.raises(ValueError, match="1 to 1000"):
        check_per_page(None)
