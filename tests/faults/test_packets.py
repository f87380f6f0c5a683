"""A message that the database server would not take: refused before the model is called."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection

from agent_memory import Agent, Message, RemembersConversations
from agent_memory.exceptions import TooLarge
from agent_memory.messages import TextPart
from agent_memory.stores.database import DatabaseConversationStore, packets
from agent_memory.testing import ScriptedProvider
from tests.faults.operations import a_turn
from tests.fixtures import Ask

CHARACTERS = ["a", "'", '"', "\\", "\n", "\0", "é", "\u4e2d", "\U0001f600", "\ud800"]

store = DatabaseConversationStore()


class Coach(RemembersConversations, Agent):
    pass


@pytest.fixture
def limited(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that takes statements of up to a million bytes."""
    if connection.vendor != "mysql":
        pytest.skip("Only MariaDB and MySQL limit a statement: TEST_DATABASE=mariadb uv run pytest")
    monkeypatch.setattr(packets, "max_allowed_packet", lambda using: 1_000_000)


def test_the_servers_own_limit_is_asked_for(db: None) -> None:
    if connection.vendor != "mysql":
        packets.check_fits("default", Message("user", "a" * 3_000_000))
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@max_allowed_packet")
        ((limit,),) = cursor.fetchall()
    assert packets.max_allowed_packet("default") == limit


def test_a_message_over_the_limit_is_refused_before_the_model_is_asked(
    limited: None, scripted_provider: ScriptedProvider, ask: Ask
) -> None:
    for options in ({}, {"conversation_id": "c"}, {"conversation_id": "c", "idempotency_key": "k"}):
        with pytest.raises(TooLarge, match="max_allowed_packet"):
            ask(Coach().for_participant(None), "a" * 1_000_000, **options)
    assert scripted_provider.requests == []
    assert store.get("c") is None


@pytest.mark.parametrize("character", CHARACTERS, ids=ascii)
def test_what_is_not_refused_fits(limited: None, character: str) -> None:
    message = Message("user", [TextPart(text=character * 200_000)])
    with pytest.raises(TooLarge) as caught:
        packets.check_fits("default", Message("user", character * 1_000_000))
    sizes: list[int] = []

    def measure(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        sizes.append(len(context["cursor"].cursor._executed))
        return result

    with connection.execute_wrapper(measure):
        store.append("c", a_turn().model_copy(update={"user": message}))
    needed = int(re.findall(r"of (\d+) bytes", str(caught.value))[0])
    each = (needed - packets.SMALL) / 1_000_000
    assert max(sizes) <= each * 200_000 + packets.SMALL
    assert max(sizes) > each * 200_000 * 0.9
