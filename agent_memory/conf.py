"""
The settings: one dict, ``AGENT_MEMORY``, read when asked.

Every key has a default; ``DEFAULTS`` is the list. A key that names a class has
the shape of ``TASKS`` and ``STORAGES``: ``{"BACKEND": path, "OPTIONS": {...}}``.
"""

from __future__ import annotations

import math
from typing import Any

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
    "LIMITS": {},
    "DATABASE": None,
    "TABLES": {},
}

LIMITS: dict[str, int | None] = {
    "message": 10_000_000,
    "tool_result": 10_000_000,
    "window": None,
}
"""Bytes of text in UTF-8; ``None`` is no limit."""

TABLES: dict[str, str] = {
    "conversations": "agent_conversations",
    "messages": "agent_conversation_messages",
    "attachments": "agent_conversation_attachments",
    "approvals": "agent_tool_approvals",
    "journal": "agent_turn_journal",
}


def user_settings() -> dict[str, Any]:
    """
    Return ``settings.AGENT_MEMORY`` as the project wrote it, or an empty dict.

    Raises ``ImproperlyConfigured`` for anything but a dict or ``None``.
    """
    from django.conf import settings

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


def backend(key: str) -> tuple[str, dict[str, Any]]:
    """Return the dotted path and the options of a key that names a class."""
    value = setting(key)
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


def limit(name: str) -> int | None:
    """Return a limit in bytes, or ``None`` for no limit."""
    found: int | None = setting("LIMITS").get(name, LIMITS[name])
    return found
