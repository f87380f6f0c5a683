"""Querysets of the rows, for the admin, reports and projects; the store has its own statements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
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

    def as_sql(  # type: ignore[override]  # the stubs name the extras
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
        """Return those that have begun."""
        return self.filter(opened_at__isnull=False)

    def decided(self) -> Self:
        """
        Return those whose paused turn waits for nobody any more: ``agent.resume()`` runs it on.

        Whatever nobody decided in time has expired. ``paused_agent`` is the label of the
        agent whose turn it is.
        """
        answer = self.model._meta.get_field("messages").related_model.objects.filter(
            conversation=models.OuterRef("pk"), position=models.OuterRef("paused_position") + 1
        )
        waiting = answer.filter(_in_time("approvals__"), approvals__status="pending")
        return self.filter(
            ~models.Exists(waiting), opened_at__isnull=False, paused_position__isnull=False
        ).annotate(paused_agent=models.Subquery(answer.values("agent")))

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
        self._check_beside(participants.model)
        content_type = ContentType.objects.db_manager(self.db).get_for_model(participants.model)
        return self.filter(
            participant_type=content_type,
            participant_key__in=participants.order_by().values(participant_text=KeyOf("pk")),
        )

    def for_outer(self, model: type[models.Model], pk: str = "pk") -> Self:
        """
        Return the conversations of each object of an outer query, as a subquery of it.

        ``Team.objects.filter(Exists(Conversation.objects.for_outer(Team)))`` are the
        teams that have conversations; ``pk`` leads from the outer model to the key of
        ``model``. Raises ``ValueError`` for a model that is in another database.
        """
        self._check_beside(model)
        label = model._meta.concrete_model._meta.label_lower  # type: ignore[union-attr]  # no abstract model
        return self.filter(_filed_under(label), participant_key=KeyOf(models.OuterRef(pk)))

    def _check_beside(self, model: type[models.Model]) -> None:
        theirs, ours = (router.db_for_write(each) for each in (model, self.model))
        if theirs != ours:
            raise ValueError(
                f"{model._meta.label} is in the database {theirs!r}, conversations are in "
                f"{ours!r}: no statement joins them. Use for_participant() for each."
            )


class ToolApprovalQuerySet(models.QuerySet[Any]):
    """Tool calls that a person must allow, or had to."""

    def waiting(self) -> Self:
        """Return those that can be decided now, in any conversation, newest last."""
        return self.filter(_in_time(), status="pending", message__status="paused").order_by("id")

    def for_participant(self, participant: Any) -> Self:
        """
        Return those in the conversations of a saved instance, a ``Participant`` or ``None``.

        Raises ``InvalidParticipant`` for anything else.
        """
        return self.filter(_owned_by(participant, "message__conversation__"))


class OwnConversationQuerySet(ConversationQuerySet):
    """
    The conversations of one instance, which ``prefetch_related()`` reads for many at once.

    It is what Django takes for the manager of a relation: hence the names.
    """

    _hints: dict[str, Any]
    _prefetch_done: bool

    def of(self, instance: models.Model) -> Self:
        self._hints = {"participant": Participant.of(instance)}
        return self.opened().for_participant(self._hints["participant"])

    def all(self) -> Self:
        """Return what was prefetched, as the manager of a relation does."""
        return self if self._prefetch_done else super().all()

    def get_queryset(self) -> Self:
        return self

    def _apply_rel_filters(self, queryset: models.QuerySet[Any]) -> Self:
        own = type(self)(self.model, queryset.query, queryset.db, self._hints)
        return own.for_participant(self._hints["participant"])

    def get_prefetch_querysets(
        self, instances: Sequence[models.Model], querysets: Sequence[Any] | None = None
    ) -> Any:
        """Read the conversations of many instances, in one query."""
        keys = defaultdict(list)
        for owner in {Participant.of_row(instance) for instance in instances}:
            keys[owner.type].append(owner.key)
        theirs = models.Q()
        for label, texts in keys.items():
            theirs |= _filed_under(label) & models.Q(participant_key__in=texts)
        queryset = querysets[0] if querysets else type(self)(self.model).opened()

        def owner_of(row: Any) -> Participant:
            types = ContentType.objects.db_manager(row._state.db)
            filed = types.get_for_id(row.participant_type_id)
            return Participant(f"{filed.app_label}.{filed.model}", row.participant_key)

        return queryset.filter(theirs), owner_of, Participant.of_row, False, "conversations", False


def _in_time(prefix: str = "") -> models.Q:
    """Return the condition that an approval, which a prefix leads to, has not expired."""
    return models.Q((f"{prefix}expires_at__isnull", True)) | models.Q(
        (f"{prefix}expires_at__gt", timezone.now())
    )


def _owned_by(participant: Any, prefix: str = "") -> models.Q:
    """Return the condition that a conversation, which a prefix leads to, is a participant's."""
    owner = Participant.of(participant)
    if owner is None:
        return models.Q((f"{prefix}participant_type__isnull", True))
    return _filed_under(owner.type, prefix) & models.Q((f"{prefix}participant_key", owner.key))


def _filed_under(label: str, prefix: str = "") -> models.Q:
    """Return the condition that the owner of a conversation is of a model."""
    app_label, _, model = label.partition(".")
    return models.Q(
        (f"{prefix}participant_type__app_label", app_label),
        (f"{prefix}participant_type__model", model),
    )
