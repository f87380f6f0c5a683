"""
The settings: one dict, ``AGENT_MEMORY``, read when asked.

Every key has a default; ``DEFAULTS`` is the list. A key that names a class has
the shape of ``TASKS`` and ``STORAGES``: ``{"BACKEND": path, "OPTIONS": {...}}``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

DEFAULTS: dict[str, Any] = {
    "STORE": {"BACKEND": "agent_memory.stores.database.DatabaseConversationStore", "OPTIONS": {}},
    "PROVIDER": {
        "BACKEND": "agent_memory.providers.openai_responses.OpenAIResponsesProvider",
        "OPTIONS": {},
    },
    "MODEL": None,
    "TITLE_MODEL": None,
    "GENERATE_TITLES": True,
    "KEEP_LAST_TURNS": 50,
    "KEEP_REPLAY": False,
    "MESSAGES_PER_PAGE": 25,
    "RESERVATION_SECONDS": 60,
    "TURN_SECONDS": 1800,
    "FAILED_TURNS": "keep",
    "VERIFY_OWNERSHIP": False,
    "ATTACHMENTS": {},
    "LIMITS": {},
    "DATABASE": None,
    "TABLES": {},
}

ATTACHMENTS: dict[str, Any] = {
    "STORAGE": None,
    "MAX_BYTES": 10_000_000,
    "MAX_COUNT": 20,
    "MEDIA_TYPES": (
        "image/png",
        "image/jpeg",
        "image/gif",
        "image/webp",
        "application/pdf",
        "text/plain",
        "text/csv",
        "text/markdown",
        "application/json",
    ),
}
"""Bytes of one file, files of one message, and what they may be; ``None`` is no limit."""

LIMITS: dict[str, int | None] = {
    "message": 10_000_000,
    "tool_result": 10_000_000,
    "window": None,
}
"""Bytes, text in UTF-8; ``None`` is no limit."""

TABLES: dict[str, str] = {
    "conversations": "agent_conversations",
    "messages": "agent_conversation_messages",
    "attachments": "agent_conversation_attachments",
    "approvals": "agent_tool_approvals",
    "journal": "agent_turn_journal",
}


MAX_PER_PAGE = 1000

MEDIA_TYPE = re.compile(r"[a-z-]+/[a-z0-9.+-]+")


def user_settings() -> dict[str, Any]:
    """
    Return ``settings.AGENT_MEMORY`` as the project wrote it, or an empty dict.

    Raises ``ImproperlyConfigured`` for anything but a dict or ``None``.
    """
    written = getattr(settings, "AGENT_MEMORY", None)
    if written is None:
        return {}
    if not isinstance(written, dict):
        raise ImproperlyConfigured(f"AGENT_MEMORY is a dict, not a {type(written).__name__}.")
    return written


def setting(key: str) -> Any:
    """Return the value of one key, or its default."""
    return user_settings().get(key, DEFAULTS[key])


def seconds(key: str) -> float:
    """Return a setting that is a time; raises ``ImproperlyConfigured`` unless it is one."""
    value = setting(key)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and math.isfinite(value) and value > 0):
        raise ImproperlyConfigured(
            f'AGENT_MEMORY["{key}"] is a number of seconds above 0, not {value!r:.80}.'
        )
    return float(value)


def is_backend(value: Any) -> bool:
    """Tell whether a value names a class: its dotted path, or a dict of path and options."""
    if not isinstance(value, dict):
        return isinstance(value, str)
    path, options = value.get("BACKEND", ""), value.get("OPTIONS")
    return isinstance(path, str) and (
        options is None
        or (isinstance(options, dict) and all(isinstance(key, str) for key in options))
    )


def backend(key: str) -> tuple[str, dict[str, Any]]:
    """
    Return the dotted path and the options of a key that names a class.

    Raises ``ImproperlyConfigured`` unless it names one; options may hold keys, so
    the text shows none.
    """
    value = setting(key)
    if not is_backend(value):
        raise ImproperlyConfigured(
            f'AGENT_MEMORY["{key}"] is the dotted path of a class, or '
            '{"BACKEND": path, "OPTIONS": {...}}.'
        )
    if isinstance(value, str):
        return value, {}
    return value.get("BACKEND", DEFAULTS[key]["BACKEND"]), dict(value.get("OPTIONS") or {})


def table(name: str) -> str:
    """
    Return the table that ``AGENT_MEMORY["TABLES"]`` gives this name, or the default one.

    Settings of a wrong kind name none: models load, so that a check can tell.
    """
    try:
        names = setting("TABLES")
    except ImproperlyConfigured:
        names = None
    return str((names if isinstance(names, dict) else {}).get(name, TABLES[name]))


def is_limit(value: Any) -> bool:
    """Tell whether a value is a limit: a whole number above 0, or ``None``."""
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0)


def limit(name: str) -> int | None:
    """Return a limit in bytes, or ``None``; raises ``ImproperlyConfigured`` unless it is one."""
    return _limit("LIMITS", name, LIMITS)


def attachment_limit(name: str) -> int | None:
    """Return ``MAX_BYTES`` or ``MAX_COUNT``. See limit()."""
    return _limit("ATTACHMENTS", name, ATTACHMENTS)


def is_media_types(value: Any) -> bool:
    """Tell whether a value is a list of types such as ``image/png``."""
    return isinstance(value, list | tuple | set | frozenset) and all(
        isinstance(name, str) and MEDIA_TYPE.fullmatch(name) for name in value
    )


def media_types() -> Collection[str]:
    """Return what attachments may be; raises ``ImproperlyConfigured`` unless that is a list."""
    value = _entry("ATTACHMENTS", "MEDIA_TYPES", ATTACHMENTS)
    if not is_media_types(value):
        raise ImproperlyConfigured(
            'AGENT_MEMORY["ATTACHMENTS"]["MEDIA_TYPES"] is a list of types such as "image/png".'
        )
    found: Collection[str] = value
    return found


def attachment_storage() -> str | None:
    """Return the alias of ``STORAGES`` that keeps attachments, or ``None`` for the database."""
    value = _entry("ATTACHMENTS", "STORAGE", ATTACHMENTS)
    if not (value is None or isinstance(value, str)):
        raise ImproperlyConfigured(
            'AGENT_MEMORY["ATTACHMENTS"]["STORAGE"] is an alias of STORAGES, or None.'
        )
    return value


def _limit(key: str, name: str, defaults: dict[str, Any]) -> int | None:
    value = _entry(key, name, defaults)
    if not is_limit(value):
        raise ImproperlyConfigured(
            f'AGENT_MEMORY["{key}"]["{name}"] is a whole number above 0, or None for no limit, '
            f"not {value!r:.80}."
        )
    found: int | None = value
    return found


def _entry(key: str, name: str, defaults: dict[str, Any]) -> Any:
    written = setting(key)
    if not isinstance(written, dict):
        raise ImproperlyConfigured(
            f'AGENT_MEMORY["{key}"] is a dict, not a {type(written).__name__}.'
        )
    return written.get(name, defaults[name])
