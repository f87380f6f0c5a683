"""The other floor: what a Django project would write first, with ordinary querysets."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import connections, transaction
from django.utils import timezone

from benchmarks import project
from benchmarks.contestants.base import DEFAULT_USER, Contestant
from benchmarks.turns import image, turns

BATCH = 500


class DjangoContestant(Contestant):
    """A contestant whose tables the shared project makes."""

    def open(self) -> None:
        project.configure(self.database)

    def close(self) -> None:
        connections.close_all()


class BareORM(DjangoContestant):
    """A conditional update that allocates positions, ``bulk_create``, a sliced queryset."""

    name = "bare ORM"
    kind = "floor"
    databases = ("sqlite", "postgresql", "mariadb")
    pages = finds_latest = True

    def open(self) -> None:
        super().open()
        from benchmarks import models

        self.models = models

    def append(self, conversation: str, messages: Any) -> None:
        conversations = self.models.FloorConversation.objects
        now, count = timezone.now(), len(messages)
        while True:
            found = conversations.filter(name=conversation).values_list("pk", "next_position")
            key, first = found.first() or (None, 0)
            with transaction.atomic():
                if key is None:
                    key = conversations.create(
                        name=conversation,
                        participant=DEFAULT_USER,
                        next_position=count,
                        updated_at=now,
                    ).pk
                elif not conversations.filter(pk=key, next_position=first).update(
                    next_position=first + count, updated_at=now
                ):
                    continue
                self._write(key, first, messages, now)
            return

    def _write(self, key: int, first: int, messages: Any, now: Any) -> None:
        message_class = self.models.FloorMessage
        message_class.objects.bulk_create(
            (
                message_class(
                    conversation_id=key,
                    position=position,
                    role=message["role"],
                    body=message,
                    created_at=now,
                )
                for position, message in enumerate(messages, first)
            ),
            batch_size=BATCH,
        )
        if "image" in messages[0]:
            self.models.FloorImage.objects.create(conversation_id=key, position=first, data=image())

    def _bodies(self, conversation: str, order: str) -> Any:
        found = self.models.FloorMessage.objects.filter(conversation__name=conversation)
        return found.order_by(order).values_list("body", flat=True)

    def window(self, conversation: str, count: int = 10) -> Any:
        messages = [*self._bodies(conversation, "-position")[: 4 * count]][::-1]
        if any("image" in message for message in messages):
            images = self.models.FloorImage.objects.filter(conversation__name=conversation)
            return messages, [*images.values_list("data", flat=True)]
        return messages

    def history(self, conversation: str) -> list[Any]:
        return [*self._bodies(conversation, "position")]

    def cursor(self, conversation: str, number: int, size: int = 25) -> Any:
        found = self.models.FloorConversation.objects.get(name=conversation)
        return found.next_position - (number - 1) * size

    def page(self, conversation: str, cursor: Any, size: int = 25) -> Any:
        return [*self._bodies(conversation, "-position").filter(position__lt=cursor)[:size]]

    def seed(self, conversation: str, count: int) -> None:
        plain = (message for turn in turns(conversation, count) for message in turn.as_plain())
        self.append(conversation, list(plain))

    def seed_conversations(self, owners: list[int]) -> None:
        moment = timezone.now()
        conversation_class = self.models.FloorConversation
        conversation_class.objects.bulk_create(
            (
                conversation_class(
                    name=f"owned-{number}",
                    participant=owner,
                    updated_at=moment + timedelta(seconds=number),
                )
                for number, owner in enumerate(owners)
            ),
            batch_size=BATCH,
        )

    def latest(self, participant: int) -> Any:
        found = self.models.FloorConversation.objects.filter(participant=participant)
        return found.order_by("-updated_at").values_list("pk", "name").first()
