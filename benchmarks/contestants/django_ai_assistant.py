"""django-ai-assistant: LangChain messages in Django's database."""

from __future__ import annotations

from typing import Any

from benchmarks.contestants.bare_orm import BATCH, DjangoContestant
from benchmarks.contestants.base import DEFAULT_USER
from benchmarks.turns import Turn


class DjangoAIAssistant(DjangoContestant):
    """As its graph works: the whole history is read, and given back with what is new."""

    name = "django-ai-assistant"
    needs = ("django_ai_assistant",)
    longest = 10_000
    disk_turns = 100
    pages = finds_latest = True

    def open(self) -> None:
        super().open()
        from django_ai_assistant.helpers.django_messages import save_django_messages
        from django_ai_assistant.models import Message, Thread

        self.save = save_django_messages
        self.threads, self.thread_model = Thread.objects, Thread
        self.messages = Message.objects

    def shape(self, turn: Turn) -> Any:
        return turn.as_langchain()

    def thread(self, conversation: str) -> Any:
        found = self.threads.filter(name=conversation).first()
        return found or self.threads.create(name=conversation, created_by_id=DEFAULT_USER)

    def append(self, conversation: str, messages: Any) -> None:
        thread = self.thread(conversation)
        self.save(thread.get_messages(include_extra_messages=True) + messages, thread=thread)

    def seed(self, conversation: str, count: int) -> None:
        turns = (Turn(f"{conversation}-{number}") for number in range(count))
        new = [message for turn in turns for message in turn.as_langchain()]
        self.save(new, thread=self.thread(conversation))

    def turn(self, conversation: str, messages: Any) -> None:
        self.append(conversation, messages)

    def window(self, conversation: str, count: int = 10) -> Any:
        return self.last(self.history(conversation), count)

    def history(self, conversation: str) -> list[Any]:
        return [*self.thread(conversation).get_messages(include_extra_messages=True)]

    def page(self, conversation: str, cursor: Any, size: int = 25) -> Any:
        """By its model: it has no way of its own."""
        found = self.messages.filter(thread__name=conversation).order_by("-created_at")
        return [message.message for message in found[cursor : cursor + size]]

    def seed_conversations(self, owners: list[int]) -> None:
        self.threads.bulk_create(
            (
                self.thread_model(name=f"owned-{number}", created_by_id=owner)
                for number, owner in enumerate(owners)
            ),
            batch_size=BATCH,
        )

    def latest(self, participant: int) -> Any:
        return self.threads.filter(created_by_id=participant).first()
