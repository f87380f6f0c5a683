"""The command that asks goes on with the conversation that it is told, or the last one."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from example_project.chat.management.commands.ask import Command

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def staff() -> User:
    return User.objects.create_user("staff")


def ask(text: str, **options: Any) -> dict[str, Any]:
    out = io.StringIO()
    call_command(Command(), text, model="stand-in", json=True, stdout=out, **options)
    return json.loads(out.getvalue())


def test_the_last_conversation_goes_on() -> None:
    first, second = ask("Remember: blue."), ask("What did I say?")
    assert second["text"] == "Recalled: blue."
    assert second["conversation_id"] == first["conversation_id"]
    assert second["sent"] == [
        ["user", "Remember: blue."],
        ["assistant", "Stored: blue."],
        ["user", "What did I say?"],
    ]


def test_a_named_conversation_goes_on() -> None:
    User.objects.create_user("ada")
    first = ask("Remember: blue.")
    ask("Remember: green.", user="ada")
    second = ask("What did I say?", conversation=first["conversation_id"])
    assert second["text"] == "Recalled: blue."


def test_an_unknown_user_is_told() -> None:
    with pytest.raises(CommandError, match="There is no user 'nobody'"):
        ask("What did I say?", user="nobody")


def test_an_unknown_conversation_is_told() -> None:
    with pytest.raises(CommandError, match="ConversationDoesNotExist"):
        ask("What did I say?", conversation="nowhere")
