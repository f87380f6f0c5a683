"""What each setting may be and may not be."""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory import conf
from agent_memory.kinds import KEYS, KINDS

IN_MEMORY = "agent_memory.stores.inmemory.InMemoryConversationStore"

WRONG: dict[str, tuple[Any, ...]] = {
    "STORE": (None, 7, ["x"], {"BACKEND": None}, {"OPTIONS": ["x"]}, {"OPTIONS": {7: 7}}),
    "PROVIDER": (None, 7, ["x"], {"BACKEND": 7}, {"OPTIONS": "x"}, {"OPTIONS": {None: 7}}),
    "MODEL": (7, ["x"]),
    "TITLE_MODEL": (7, False),
    "GENERATE_TITLES": (None, 1, "yes"),
    "KEEP_LAST_TURNS": (-1, None, True, "50", 1.5),
    "KEEP_REPLAY": (None, 0, "no"),
    "MESSAGES_PER_PAGE": (0, -1, 1001, None, True, "25", 2.5),
    "RESERVATION_SECONDS": (0, -1, None, True, "60", float("nan"), float("inf")),
    "TURN_SECONDS": (0, -0.5, None, False, "1800"),
    "FAILED_TURNS": ("drop", None, True, ["keep"], "KEEP"),
    "VERIFY_OWNERSHIP": (None, 1, "on"),
    "ATTACHMENTS": (
        *(None, 10, ["image/png"], {"STORAGE": 7}, {"MAX_BYTES": 0}, {"MAX_BYTES": "1"}),
        *({"MAX_COUNT": -1}, {"MAX_COUNT": True}, {"MEDIA_TYPES": "image/png"}),
        *({"MEDIA_TYPES": None}, {"MEDIA_TYPES": ["png"]}, {"MEDIA_TYPES": ["image/PNG", 7]}),
    ),
    "LIMITS": (None, 10, {"window": 0}, {"window": "1"}, {"message": True}, {"message": 1.5}),
    "DATABASE": (7, ["default"]),
    "TABLES": (None, ["x"], "x", {"messages": None}, {"messages": ""}, {"messages": 7}),
}

RIGHT: dict[str, tuple[Any, ...]] = {
    "STORE": (IN_MEMORY, {"BACKEND": IN_MEMORY}, {"BACKEND": IN_MEMORY, "OPTIONS": None}, {}),
    "PROVIDER": ({"OPTIONS": {"timeout": 5}}, "agent_memory.providers.Provider"),
    "MODEL": ("any",),
    "TITLE_MODEL": (None, "any"),
    "GENERATE_TITLES": (True, False),
    "KEEP_LAST_TURNS": (0, 1, 10**6),
    "KEEP_REPLAY": (True, False),
    "MESSAGES_PER_PAGE": (1, 1000),
    "RESERVATION_SECONDS": (1, 0.5, 10**6),
    "TURN_SECONDS": (1, 0.5),
    "FAILED_TURNS": ("keep", "discard"),
    "VERIFY_OWNERSHIP": (True, False),
    "ATTACHMENTS": (
        *({}, {"STORAGE": "default", "MAX_BYTES": 1, "MAX_COUNT": None}, {"MEDIA_TYPES": []}),
        {"MEDIA_TYPES": {"image/svg+xml", "application/vnd.ms-excel"}},
    ),
    "LIMITS": ({}, {"message": 1, "window": None}, {"tool_result": 10**12}),
    "DATABASE": (None, "default"),
    "TABLES": ({}, {"messages": "chat_messages"}),
}


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, values in WRONG.items() for value in values]
)
def test_a_value_of_another_kind_is_not_allowed(key: str, value: Any) -> None:
    assert KINDS[key].allows(value) is False


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, values in RIGHT.items() for value in values]
)
def test_a_value_of_its_kind_is_allowed(key: str, value: Any) -> None:
    assert KINDS[key].allows(value) is True


def test_every_setting_has_a_kind_and_a_default_of_it() -> None:
    assert set(conf.DEFAULTS) == set(KINDS) == set(WRONG) == set(RIGHT)
    assert all(KINDS[key].allows(value) for key, value in conf.DEFAULTS.items())


def test_the_settings_that_are_dicts_have_known_keys() -> None:
    dicts = {key for key, values in RIGHT.items() if any(isinstance(v, dict) for v in values)}
    assert set(KEYS) == dicts
