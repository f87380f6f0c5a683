"""Stores with one fault each, which the demo must notice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agent_memory.messages import Message
from agent_memory.participants import Participant
from agent_memory.stores.database import DatabaseConversationStore


class Forgetful(DatabaseConversationStore):
    """Loads nothing."""

    def load(self, conversation_id: str, **options: Any) -> tuple[Message, ...]:
        super().load(conversation_id, **options)
        return ()


class Misquoting(DatabaseConversationStore):
    """Stores another answer than was given."""

    def append(self, conversation: Any, turn: Any, **options: Any) -> Any:
        step = turn.steps[-1]
        items = tuple(item.model_copy(update={"text": "Stored: red."}) for item in step.items)
        step = step.model_copy(update={"items": items})
        return super().append(conversation, turn.model_copy(update={"steps": (step,)}), **options)


class Wasteful(DatabaseConversationStore):
    """Sends the whole history, whatever the window."""

    def load(self, conversation_id: str, **options: Any) -> tuple[Message, ...]:
        return super().load(conversation_id, **{**options, "keep_last_turns": 0})


class MixedUp(DatabaseConversationStore):
    """Takes a team for the user with its key."""

    def latest_conversation_id(self, participant: Any, agent: str) -> str | None:
        key = Participant.of(participant).key
        return super().latest_conversation_id(Participant("auth.user", key), agent)


class Trusting(DatabaseConversationStore):
    """Lets anybody into any conversation."""

    def reserve(self, conversation_id: str | None = None, **options: Any) -> Any:
        return super().reserve(conversation_id, **{**options, "must_own": False})


class Untitled(DatabaseConversationStore):
    """Drops titles."""

    def get(self, conversation_id: str) -> Any:
        stored = super().get(conversation_id)
        return stored and replace(stored, title="", title_source="")


class Unordered(DatabaseConversationStore):
    """Pages its messages oldest first where the pages are small."""

    def paginate_conversation_messages(self, conversation_id: str, **options: Any) -> Any:
        page = super().paginate_conversation_messages(conversation_id, **options)
        return page if options["per_page"] > 4 else replace(page, items=page.items[::-1])
