"""
The settings: one dict, ``AGENT_MEMORY``, read when asked.

Every key has a default; ``DEFAULTS`` is the list. A key that names a class has
the shape of ``TASKS`` and ``STORAGES``: ``{"BACKEND": path, "OPTIONS": {...}}``.
"""

from __future__ import annotations

from typing import Any

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
    "DATABASE": None,
    "TABLES": {},
}

TABLES: dict[str, str] = {
    "conversations": "agent_conversations",
    "messages": "agent_conversation_messages",
    "attachments": "agent_conversation_attachments",
    "approvals": "agent_tool_approvals",
    "journal": "agent_turn_journal",
}


def user_settings() -> dict[str, Any]:
    """Return ``settings.AGENT_MEMORY`` as the project wrote it, or an empty dict."""
    from django.conf import settings

    return getattr(settings, "AGENT_MEMORY", None) or {}


def setting(key: str) -> Any:
    """Return the value of one key, or its default."""
    return user_settings().get(key, DEFAULTS[key])


def backend(key: str) -> tuple[str, dict[str, Any]]:
    """Return the dotted path and the options of a key that names a class."""
    value = setting(key)
    if isinstance(value, str):
        return value, {}
    return value.get("BACKEND", DEFAULTS[key]["BACKEND"]), dict(value.get("OPTIONS") or {})


def table(name: str) -> str:
    """Return the table that ``AGENT_MEMORY["TABLES"]`` gives this name, or the default one."""
    return str(setting("TABLES").get(name, TABLES[name]))
