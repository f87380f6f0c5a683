"""Keys, waits and settings that cannot be: errors by name, before the model is called."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from agent_memory import Agent, RemembersConversations
from agent_memory.testing import override_agent_memory
from tests.faults.operations import ADA
from tests.faults.talking import WAYS


class Coach(RemembersConversations, Agent):
    label = "coach"


KEYS = ["", "x" * 256, "a\0b", "\ud800", 7, b"key"]
WAITS = [-1, -0.1, float("nan"), float("inf"), "1", True, None]


@pytest.mark.parametrize(
    "options",
    [
        *({"idempotency_key": key} for key in KEYS),
        *({"wait": wait} for wait in WAITS),
    ],
    ids=repr,
)
def test_an_absurd_key_or_wait_is_refused_before_anything_happens(
    store, scripted_provider, options: dict[str, Any]
):
    for ask in WAYS:
        with pytest.raises(ValueError, match=r"[Kk]ey|wait"):
            ask(Coach().for_participant(ADA), "a", conversation_id="c", **options)
    assert scripted_provider.requests == []
    assert store.get("c") is None
    assert len(store.list_conversations(ADA)) == 0


@pytest.mark.parametrize("key", ["x" * 255, " ", "\n", "ключ", "\U0001f600" * 255])
def test_a_key_may_be_any_text_of_up_to_255_characters(store, scripted_provider, key: str):
    scripted_provider.extend(["answer"])
    asked = [Coach(conversation_id="c").prompt("a", idempotency_key=key) for _ in range(2)]
    assert asked[0] == asked[1]


@pytest.mark.parametrize("name", ["RESERVATION_SECONDS", "TURN_SECONDS"])
@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "60", None, True])
def test_a_time_that_is_none_is_refused_before_anything_happens(
    store, scripted_provider, name: str, seconds: Any
):
    for ask in WAYS:
        with (
            override_agent_memory(**{name: seconds}),
            pytest.raises(ImproperlyConfigured, match=f'"{name}"'),
        ):
            ask(Coach().for_participant(ADA), "a", conversation_id="c")
    assert scripted_provider.requests == []
    assert store.get("c") is None
