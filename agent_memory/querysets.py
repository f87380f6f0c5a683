"""Querysets of the rows, for the admin, reports and projects; the store has its own statements."""

from __future__ import annotations

from typing import Any, Self

from django.contrib.contenttypes.models import ContentType
from django.db import models, router
from django.db.models.sql.compiler import SQLCompiler
from django.utils import timezone

from agent_memory.participants import Participant

UUID_CUTS = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))


class KeyOf(models.Func):
    """The text under which ``Participant.of()`` files a primary key, such as ``OuterRef("pk")``."""

    output_field = models.CharField()

    def as_sql(  # type: ignore[override]
        self, compiler: SQLCompiler, connection: Any, **extra: Any
    ) -> tuple[str, Any]:
        (source,) = self.source_expressions
        sql, params = compiler.compile(source)
        params = tuple(params)
        stored_as_hex = isinstance(source.output_field, models.UUIDField) and not (
            connection.features.has_native_uuid_field
        )
        if stored_as_hex:
            cuts = [f"SUBSTR({sql}, {start}, {length})" for start, length in UUID_CUTS]
            params = params * len(cuts)
            if connection.vendor == "mysql":
                sql = f"CONCAT_WS('-', {', '.join(cuts)})"
            else:
                return "(" + " || '-' || ".join(cuts) + ")", params
        if connection.vendor == "mysql":
            collation = "utf8mb4_nopad_bin" if connection.mysql_is_mariadb else "utf8mb4_0900_bin"
            return f"CONVERT(CAST({sql} AS CHAR) USING utf8mb4) COLLATE {collation}", params
        return f"CAST({sql} AS {'TEXT' if connection.vendor == 'sqlite' else 'VARCHAR'})", params


class ConversationQuerySet(models.QuerySet[Any]):
    """Conversations; those that are merely reserved for a first turn are not ``opened()``."""

    def opened(self) -> Self:
        return self.filter(opened_at__isnull=False)

    def for_participant(self, participant: Any) -> Self:
        """
        Return the conversations of a saved instance, a ``Participant`` or ``None``.

        Raises ``InvalidParticipant`` for anything else.
        """
        return self.filter(_owned_by(participant))

    def for_participants(self, participants: models.QuerySet[Any]) -> Self:
        """
        Return the conversations of all objects of a queryset, in one statement.

        Raises ``ValueError`` for objects that are in another database.
        """
        theirs, ours = (router.db_for_write(model) for model in (participants.model, self.model))
        if theirs != ours:
            raise ValueError(
                f"{participants.model._meta.label} is in the database {theirs!r}, conversations "
                f"are in {ours!r}: no statement joins them. Use for_participant() for each."
            )
        content_type = ContentType.objects.db_manager(self.db).get_for_model(participants.model)
        return self.filter(
            participant_type=content_type,
            participant_key__in=participants.order_by().values(participant_text=KeyOf("pk")),
        )


class ToolApprovalQuerySet(models.QuerySet[Any]):
    """Tool calls that a person must allow, or had to."""

    def waiting(self) -> Self:
        """Return those that can be decided now, in any conversation, newest last."""
        in_time = models.Q(expires_at__isnull=True) | models.Q(expires_at__gt=timezone.now())
        return self.filter(in_time, status="pending", message__status="paused").order_by("id")

    def for_participant(self, participant: Any) -> Self:
        """
        Return those in the conversations of a saved instance, a ``Participant`` or ``None``.

        Raises ``InvalidParticipant`` for anything else.
        """
        return self.filter(_owned_by(participant, "message__conversation__"))


def _owned_by(participant: Any, prefix: str = "") -> models.Q:
    """Return the condition that a conversation, which a prefix leads to, is a participant's."""
    owner = Participant.of(participant)
    if owner is None:
        return models.Q((f"{prefix}participant_type__isnull", True))
    app_label, _, model = owner.type.partition(".")
    return models.Q(
        (f"{prefix}participant_type__app_label", app_label),
        (f"{prefix}participant_type__model", model),
        (f"{prefix}participant_key", owner.key),
    )
