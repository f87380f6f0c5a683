"""agentic-django: a session of the OpenAI Agents SDK in Django's database."""

from __future__ import annotations

import uuid
from typing import Any

from benchmarks.contestants.bare_orm import BATCH, DjangoContestant
from benchmarks.contestants.base import DEFAULT_USER, Asynchronous
from benchmarks.turns import Turn


class AgenticDjango(Asynchronous, DjangoContestant):
    name = "agentic-django"
    needs = ("agentic_django", "agents")
    pages = finds_latest = True

    def open(self) -> None:
        super().open()
        from agentic_django.models import AgentSession, AgentSessionItem
        from agentic_django.sessions import DatabaseSession
        from django.contrib.auth.models import User

        self.sessions, self.items = AgentSession.objects, AgentSessionItem.objects
        self.session_class, self.session_model = DatabaseSession, AgentSession
        self.user = User(pk=DEFAULT_USER)

    def shape(self, turn: Turn) -> Any:
        return turn.as_items()

    def session(self, conversation: str) -> Any:
        return self.session_class.get_or_create(conversation, self.user)

    def append(self, conversation: str, messages: Any) -> None:
        self.run(self.session(conversation).add_items(messages))

    def window(self, conversation: str, count: int = 10) -> Any:
        return self.run(self.session(conversation).get_items(4 * count))

    def turn(self, conversation: str, messages: Any) -> None:
        session = self.session(conversation)
        self.run(self._turn(session, messages))

    async def _turn(self, session: Any, messages: Any) -> None:
        await session.get_items(40)
        await session.add_items(messages)

    def history(self, conversation: str) -> list[Any]:
        return [*self.run(self.session(conversation).get_items())]

    def _found(self, conversation: str) -> Any:
        return self.items.filter(session__session_key=conversation).order_by("-sequence")

    def cursor(self, conversation: str, number: int, size: int = 25) -> Any:
        newest = self._found(conversation).values_list("sequence", flat=True)[0]
        return newest + 1 - (number - 1) * size

    def page(self, conversation: str, cursor: Any, size: int = 25) -> Any:
        """By its model: it has no way of its own."""
        found = self._found(conversation).filter(sequence__lt=cursor)
        return [item.payload for item in found[:size]]

    def seed_conversations(self, owners: list[int]) -> None:
        self.sessions.bulk_create(
            (
                self.session_model(id=uuid.uuid4(), session_key=f"owned-{n}", owner_id=owner)
                for n, owner in enumerate(owners)
            ),
            batch_size=BATCH,
        )

    def latest(self, participant: int) -> Any:
        """By its model: it has no way of its own."""
        return self.sessions.filter(owner_id=participant).order_by("-updated_at").first()
