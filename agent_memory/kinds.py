"""What each setting may be, so that a check can tell before a conversation does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from agent_memory import conf
from agent_memory.conf import MAX_PER_PAGE


class Kind(NamedTuple):
    """A test of a value, and what it tests in words."""

    allows: Callable[[Any], bool]
    words: str


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_text_or_none(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_seconds(value: Any) -> bool:
    number = isinstance(value, float) or _is_whole(value)
    return number and 0 < value < math.inf


def _is_tables(value: Any) -> bool:
    return isinstance(value, dict) and all(
        name and isinstance(name, str) for name in value.values()
    )


def _is_limits(value: Any) -> bool:
    return isinstance(value, dict) and all(conf.is_limit(limit) for limit in value.values())


def _is_attachments(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    kept = conf.ATTACHMENTS | value
    return (
        _is_text_or_none(kept["STORAGE"])
        and conf.is_limit(kept["MAX_BYTES"])
        and conf.is_limit(kept["MAX_COUNT"])
        and conf.is_media_types(kept["MEDIA_TYPES"])
    )


A_CLASS = 'the dotted path of a class, or {"BACKEND": path, "OPTIONS": {...}}'
YES_OR_NO = "True or False"
TEXT = "text, or None"
SECONDS = "a number of seconds above 0"

KINDS: dict[str, Kind] = {
    "STORE": Kind(conf.is_backend, A_CLASS),
    "PROVIDER": Kind(conf.is_backend, A_CLASS),
    "MODEL": Kind(_is_text_or_none, TEXT),
    "TITLE_MODEL": Kind(_is_text_or_none, TEXT),
    "GENERATE_TITLES": Kind(_is_bool, YES_OR_NO),
    "KEEP_LAST_TURNS": Kind(
        lambda value: _is_whole(value) and value >= 0,
        "a whole number of turns, 0 for all",
    ),
    "KEEP_REPLAY": Kind(_is_bool, YES_OR_NO),
    "MESSAGES_PER_PAGE": Kind(
        lambda value: _is_whole(value) and 1 <= value <= MAX_PER_PAGE,
        f"a whole number from 1 to {MAX_PER_PAGE}",
    ),
    "RESERVATION_SECONDS": Kind(_is_seconds, SECONDS),
    "TURN_SECONDS": Kind(_is_seconds, SECONDS),
    "FAILED_TURNS": Kind(lambda value: value in ("keep", "discard"), "'keep' or 'discard'"),
    "VERIFY_OWNERSHIP": Kind(_is_bool, YES_OR_NO),
    "ATTACHMENTS": Kind(
        _is_attachments,
        "a dict: STORAGE is an alias of STORAGES or None, MAX_BYTES and MAX_COUNT are whole "
        "numbers above 0 or None, MEDIA_TYPES is a list of types such as 'image/png'",
    ),
    "LIMITS": Kind(_is_limits, "a dict of whole numbers of bytes, or None for no limit"),
    "DATABASE": Kind(_is_text_or_none, "the alias of a database, or None"),
    "TABLES": Kind(_is_tables, "a dict of table names, which are text"),
}

KEYS: dict[str, Iterable[str]] = {
    "STORE": ("BACKEND", "OPTIONS"),
    "PROVIDER": ("BACKEND", "OPTIONS"),
    "ATTACHMENTS": conf.ATTACHMENTS,
    "LIMITS": conf.LIMITS,
    "TABLES": conf.TABLES,
}
"""The keys of the settings that are dicts."""
