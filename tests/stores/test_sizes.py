"""Messages of up to 10 MB: each comes back equal, or is refused by name, or is in an error whole."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from agent_memory import Agent, Message, RemembersConversations, tool
from agent_memory.exceptions import TooLarge, TurnNotSaved
from agent_memory.messages import DocumentPart, TextPart, Turn
from agent_memory.stores import ConversationStore
from agent_memory.testing import ScriptedProvider, calls
from tests.settings import TEST_DATABASE
from tests.stores.every_store import reopened, store

__all__ = ["store"]

pytestmark = [pytest.mark.heavy, pytest.mark.django_db(transaction=True)]

LIMIT = 10_000_000
CHARACTERS = ("a", "\n", "\0", "'", "\u00e4", "\ud800", "\U0001f600")
if TEST_DATABASE != "sqlite":
    CHARACTERS = ("\0", "'", "\U0001f600")  # what grows most in a statement, and in JSON


def text_of(character: str) -> str:
    return character * (LIMIT // len(character.encode("utf-8", "surrogatepass")))


def coach_with(store: ConversationStore, *replies: Any, **options: Any) -> Any:
    class Coach(RemembersConversations, Agent):
        provider = ScriptedProvider(replies)
        label = "coach"
        model = "test"
        generate_titles = False

    return Coach(store=store, conversation_id="c", **options)


def ask(coach: Any, store: ConversationStore, message: Any, **options: Any) -> Turn | None:
    """Return the turn that was stored, or could not be; ``None``: refused, and nothing happened."""
    try:
        response = coach.prompt(message, **options)
    except TooLarge:
        assert coach.provider.requests == []
        assert store.get("c") is None
        return None
    except TurnNotSaved as error:
        assert connection.vendor == "mysql"
        return error.turn
    assert reopened(store).load("c") == response.turn.messages
    return response.turn


@pytest.mark.parametrize("character", CHARACTERS, ids=ascii)
def test_a_prompt_of_10_mb_is_stored_or_too_large(store, character):
    message = Message(content=[TextPart(text="Read: "), TextPart(text=text_of(character)[6:])])
    turn = ask(coach_with(store, "Read."), store, message)
    assert turn is None or turn.user == message


def test_files_of_10_mb_are_stored_or_too_large(store):
    document = DocumentPart(data=bytes(range(256)) * 39_000, media_type="text/plain")
    turn = ask(coach_with(store, "Read."), store, "Read.", attachments=[document])
    assert turn is None or turn.user.content[-1] == document


@pytest.mark.parametrize("character", CHARACTERS, ids=ascii)
def test_an_answer_of_10_mb_is_stored_or_in_the_error(store, character):
    turn = ask(coach_with(store, text_of(character)), store, "Tell me all.")
    assert turn is not None
    assert turn.text == text_of(character)


@pytest.mark.parametrize("character", CHARACTERS, ids=ascii)
def test_a_result_of_10_mb_is_stored_or_in_the_error(store, character):
    @tool
    def read() -> str:
        """Return a long text."""
        return text_of(character)

    turn = ask(coach_with(store, calls("read"), "Read.", tools=[read]), store, "Read it.")
    assert turn is not None
    assert turn.tool_results()[0].value == text_of(character)
