"""Ids, headings and pages: what goes in and out of a store beside messages."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime

import pytest
from django.core.exceptions import SuspiciousOperation

from agent_memory.exceptions import InvalidConversationId
from agent_memory.messages import ProviderToolCall, Step, ToolCall, ToolResult
from agent_memory.participants import Participant
from agent_memory.records import (
    Heading,
    Page,
    Reservation,
    StoredMessage,
    check_conversation_id,
    check_title,
    new_id,
)
from agent_memory.testing.contract.base import INVALID_IDS
from agent_memory.testing.contract.fidelity import AWKWARD_IDS

NOW = datetime(2030, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize("conversation_id", [*AWKWARD_IDS, "x" * 255])
def test_any_text_of_1_to_255_storable_characters_is_a_conversation_id(conversation_id):
    assert check_conversation_id(conversation_id) == conversation_id


@pytest.mark.parametrize("conversation_id", [*INVALID_IDS, None])
def test_anything_else_is_an_invalid_id_and_a_suspicious_operation(conversation_id):
    with pytest.raises(InvalidConversationId):
        check_conversation_id(conversation_id)
    with pytest.raises(SuspiciousOperation):
        check_conversation_id(conversation_id)


def test_the_awkward_ids_are_all_different():
    assert len(set(AWKWARD_IDS)) == len(AWKWARD_IDS) == 26


@pytest.mark.parametrize("title", ["x" * 256, "a\0", "\ud800", None, 7])
def test_a_title_that_cannot_be_stored_is_a_value_error(title):
    with pytest.raises(ValueError, match="A title"):
        check_title(title)
    with pytest.raises(ValueError, match="A title"):
        Heading("one", title=title)
    assert check_title("") == ""
    assert check_title("x" * 255) == "x" * 255


@pytest.mark.parametrize("label", ["x" * 256, "a\0", "\ud800", None])
def test_an_agents_label_that_cannot_be_stored_is_a_value_error(label):
    with pytest.raises(ValueError, match="label"):
        Heading("one", agent=label)


def test_a_bare_id_is_a_heading_without_more():
    heading = Heading("one", Participant("auth.user", "1"), "coach", "Title", "draft")
    assert Heading.of(heading) is heading
    assert Heading.of("one") == Heading("one")
    for wrong in ("", 7, None, "a\0"):
        with pytest.raises(InvalidConversationId):
            Heading.of(wrong)


def test_headings_and_stored_values_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Heading("one").id = "two"


def test_a_reservation_tells_when_it_began():
    assert Reservation("one", "turn").begun_at.utcoffset() is not None


def test_fresh_ids_differ_and_rise():
    ids = [new_id() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert ids == sorted(ids)
    assert check_conversation_id(ids[0]) == ids[0]


def test_a_page_is_read_with_one_item_over_that_tells_of_a_next_page():
    page = Page.of([5, 4, 3], 2, str)
    assert (page.items, page.next_cursor) == ((5, 4), "4")
    assert list(page) == [5, 4]
    assert len(page) == 2
    assert Page.of([5, 4], 2, str) == Page((5, 4), None)
    assert Page.of([], 2, str) == Page(())


def test_a_stored_message_flattens_its_steps_in_order():
    calls = [ToolCall(id=f"{n}", name="a", result=ToolResult(value=n)) for n in range(3)]
    search = ProviderToolCall(name="web_search")
    steps = (Step(items=(calls[0], search)), Step(items=(calls[1], calls[2])))
    message = StoredMessage("1", "assistant", "", NOW, 1, steps=steps)
    assert message.tool_calls() == tuple(calls)
    assert message.tool_results() == tuple(ToolResult(value=n) for n in range(3))
    assert message.provider_tool_calls() == (search,)
    asked = StoredMessage("0", "user", "", NOW, 0)
    assert (asked.tool_calls(), asked.tool_results(), asked.provider_tool_calls()) == ((), (), ())
