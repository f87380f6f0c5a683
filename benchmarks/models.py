"""The tables of the bare ORM floor: what a project would write first, positions and JSON."""

from __future__ import annotations

from django.db import models


class FloorConversation(models.Model):
    name = models.CharField(max_length=100, unique=True)
    participant = models.BigIntegerField()
    next_position = models.BigIntegerField(default=0)
    updated_at = models.DateTimeField()

    class Meta:
        indexes = (models.Index(fields=["participant", "-updated_at"], name="floor_latest"),)

    def __str__(self) -> str:
        return self.name


class FloorMessage(models.Model):
    conversation = models.ForeignKey(FloorConversation, models.CASCADE, db_index=False)
    position = models.BigIntegerField()
    role = models.CharField(max_length=20)
    body = models.JSONField()
    created_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["conversation", "position"], name="floor_position"),
        )

    def __str__(self) -> str:
        return f"{self.conversation_id}.{self.position}"


class FloorImage(models.Model):
    conversation = models.ForeignKey(FloorConversation, models.CASCADE)
    position = models.BigIntegerField()
    data = models.BinaryField()

    def __str__(self) -> str:
        return f"{self.conversation_id}.{self.position}"
