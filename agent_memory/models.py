"""
The rows: what the database store writes and the admin reads.

Turn *n* of a conversation stands at positions 2n (user) and 2n + 1
(assistant), leading messages at negative ones. An assistant's row holds its
steps as JSON, so that a window can never part a tool call from its result.
"""

from __future__ import annotations

from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.utils.translation import gettext_lazy as _

from agent_memory.conf import table
from agent_memory.fields import (
    ExactCharField,
    ExactTextField,
    PartialIndex,
    ParticipantForeignKey,
)
from agent_memory.querysets import ConversationQuerySet, ToolApprovalQuerySet

ROLES = (
    ("user", _("user")),
    ("assistant", _("assistant")),
    ("system", _("system")),
    ("developer", _("developer")),
)
STATUSES = (("completed", _("completed")), ("paused", _("paused")), ("failed", _("failed")))
DECISIONS = (
    ("pending", _("not decided")),
    ("approved", _("approved")),
    ("denied", _("denied")),
    ("expired", _("expired")),
    ("claimed", _("running")),
    ("done", _("done")),
    ("interrupted", _("interrupted")),
)


def participant_type() -> models.ForeignKey[ContentType | None, ContentType | None]:
    return models.ForeignKey(
        ContentType,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        db_index=False,
        related_name="+",
        verbose_name=_("participant type"),
    )


class Conversation(models.Model):
    """
    One conversation: its owner, its counters and its reservation.

    A row without ``opened_at`` is a placeholder that a first turn reserved.
    ``reserved_until`` and ``reserved_since`` are milliseconds since 1970 by
    the database's clock; 0 is free.
    """

    id = ExactCharField(_("id"), max_length=255, primary_key=True)
    participant_type = participant_type()
    participant_key = ExactCharField(_("participant key"), max_length=255, blank=True, default="")
    participant = ParticipantForeignKey("participant_type", "participant_key")
    agent = ExactCharField(_("agent"), max_length=255, blank=True, default="")
    title = ExactCharField(_("title"), max_length=255, blank=True, default="")
    title_source = ExactCharField(max_length=10, blank=True, default="")
    opened_at = models.DateTimeField(_("opened at"), null=True)
    last_activity = models.DateTimeField(_("last activity"))
    next_position = models.IntegerField(default=0)
    turn_count = models.IntegerField(_("turns"), default=0)
    reservation = ExactCharField(max_length=36, blank=True, default="")
    reserved_since = models.BigIntegerField(default=0)
    reserved_until = models.BigIntegerField(default=0)
    reserved_key = ExactCharField(max_length=255, blank=True, default="")
    journalled = models.BooleanField(default=False)
    paused_position = models.IntegerField(null=True)
    undecided_count = models.IntegerField(default=0)
    input_tokens = models.BigIntegerField(_("input tokens"), default=0)
    output_tokens = models.BigIntegerField(_("output tokens"), default=0)
    cached_tokens = models.BigIntegerField(_("cached tokens"), default=0)
    reasoning_tokens = models.BigIntegerField(_("reasoning tokens"), default=0)
    metadata = ExactTextField(default="{}")

    objects = models.Manager.from_queryset(ConversationQuerySet)()

    class Meta:
        db_table = table("conversations")
        verbose_name = _("conversation")
        verbose_name_plural = _("conversations")
        permissions = (
            ("rename_conversation", "Can rename conversation"),
            ("redraft_conversation", "Can redraft title of conversation"),
            ("release_conversation", "Can release stuck conversation"),
        )
        indexes = (
            models.Index(
                fields=["participant_type", "participant_key", "last_activity", "id"],
                name="agent_memory_conv_participant",
            ),
            models.Index(fields=["last_activity", "id"], name="agent_memory_conv_activity"),
            PartialIndex(
                fields=["paused_position"],
                where=models.Q(paused_position__isnull=False),
                name="agent_memory_conv_paused",
            ),
        )

    def __str__(self) -> str:
        return self.title or self.id


class ConversationMessage(models.Model):
    """
    One message: a user's or leading one, or an assistant's with all its steps.

    ``content`` is a readable copy of what ``parts`` (JSON) and ``steps`` (a line of
    JSON for their items, one for the rest) hold.
    ``turn_id`` on a user's row names the turn for good; on an assistant's it is
    the token of the worker that wrote it last. ``replay`` (JSON) holds opaque
    blocks of a provider while the turn is paused.
    """

    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, db_index=False, related_name="messages"
    )
    position = models.IntegerField(_("position"))
    turn_id = ExactCharField(max_length=36, blank=True, default="")
    role = ExactCharField(_("role"), max_length=10, choices=ROLES)
    agent = ExactCharField(_("agent"), max_length=255, blank=True, default="")
    participant_type = participant_type()
    participant_key = ExactCharField(max_length=255, blank=True, default="")
    participant = ParticipantForeignKey("participant_type", "participant_key")
    content = ExactTextField(_("content"), blank=True, default="")
    parts = ExactTextField(default="[]")
    steps = ExactTextField(default="[]")
    meta = ExactTextField(default="{}")
    replay = ExactTextField(blank=True, default="")
    status = ExactCharField(_("status"), max_length=10, choices=STATUSES, default="completed")
    format = models.SmallIntegerField(default=1)
    model = ExactCharField(_("model"), max_length=255, blank=True, default="")
    provider = ExactCharField(_("provider"), max_length=255, blank=True, default="")
    finish_reason = ExactCharField(_("finish reason"), max_length=20, blank=True, default="")
    error_code = ExactCharField(_("error"), max_length=255, blank=True, default="")
    input_tokens = models.IntegerField(_("input tokens"), default=0)
    output_tokens = models.IntegerField(_("output tokens"), default=0)
    cached_tokens = models.IntegerField(_("cached tokens"), default=0)
    reasoning_tokens = models.IntegerField(_("reasoning tokens"), default=0)
    idempotency_key = ExactCharField(max_length=255, null=True)  # type: ignore[misc]  # its type is that of the others
    fingerprint = ExactCharField(max_length=64, blank=True, default="")
    created_at = models.DateTimeField(_("created at"))
    finished_at = models.DateTimeField(_("finished at"), null=True)

    class Meta:
        db_table = table("messages")
        verbose_name = _("message")
        verbose_name_plural = _("messages")
        constraints = (
            models.UniqueConstraint(
                fields=["conversation", "position"], name="agent_memory_msg_position"
            ),
            models.UniqueConstraint(
                fields=["conversation", "idempotency_key"], name="agent_memory_msg_key"
            ),
        )
        indexes = (
            PartialIndex(
                fields=["participant_type", "participant_key", "agent", "id"],
                where=models.Q(participant_type__isnull=False),
                name="agent_memory_msg_participant",
            ),
        )

    def __str__(self) -> str:
        return f"{self.role}: {self.content[:50]}"


class AttachmentManager(models.Manager["ConversationAttachment"]):
    """Reads the bytes of no attachment that nobody asks for them."""

    def get_queryset(self) -> models.QuerySet[ConversationAttachment]:
        return super().get_queryset().defer("data")


class ConversationAttachment(models.Model):
    """
    The bytes of an attachment, once per conversation and content.

    They are ``data``, or the file ``stored_name`` of the storage that
    ``STORAGES`` names so. ``media_type`` and ``file_name`` are those that the
    content was first given with; what a message called it is in its parts.
    """

    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, db_index=False, related_name="attachments"
    )
    sha256 = ExactCharField(max_length=64)
    public_id = ExactCharField(max_length=36)
    media_type = ExactCharField(_("media type"), max_length=255, blank=True, default="")
    file_name = ExactCharField(_("file name"), max_length=255, blank=True, default="")
    size = models.BigIntegerField(_("size"))
    data = models.BinaryField(null=True)
    storage = ExactCharField(max_length=255, blank=True, default="")
    stored_name = ExactCharField(max_length=255, blank=True, default="")
    created_at = models.DateTimeField()

    objects = AttachmentManager()

    class Meta:
        base_manager_name = "objects"
        db_table = table("attachments")
        verbose_name = _("attachment")
        verbose_name_plural = _("attachments")
        constraints = (
            models.UniqueConstraint(
                fields=["conversation", "sha256"], name="agent_memory_att_content"
            ),
            models.UniqueConstraint(fields=["public_id"], name="agent_memory_att_public_id"),
        )

    def __str__(self) -> str:
        return self.public_id


class ToolApproval(models.Model):
    """
    A tool call that waits for a person, and what became of it.

    ``asked`` (JSON) is the call itself; ``call_id``, ``tool`` and ``reason`` are
    readable copies. ``arguments_used`` (JSON) are those that a person gave
    instead, ``denial`` (JSON) is what a denial tells the model.
    """

    message = models.ForeignKey(
        ConversationMessage, on_delete=models.CASCADE, db_index=False, related_name="approvals"
    )
    step = models.IntegerField()
    index = models.IntegerField()
    call_id = ExactCharField(max_length=255)
    tool = ExactCharField(_("tool"), max_length=255)
    reason = ExactTextField(_("reason"), blank=True, default="")
    asked = ExactTextField(default="{}")
    arguments_used = ExactTextField(_("arguments used"), blank=True, default="")
    denial = ExactTextField(blank=True, default="")
    agent = ExactCharField(_("agent"), max_length=255, blank=True, default="")
    status = ExactCharField(_("status"), max_length=15, choices=DECISIONS, default="pending")
    decided_by_type = participant_type()
    decided_by_key = ExactCharField(max_length=255, blank=True, default="")
    decided_by = ParticipantForeignKey("decided_by_type", "decided_by_key")
    decided_at = models.DateTimeField(_("decided at"), null=True)
    note = ExactTextField(_("note"), blank=True, default="")
    expires_at = models.DateTimeField(_("expires at"), null=True)
    claim = ExactCharField(max_length=36, blank=True, default="")
    created_at = models.DateTimeField(_("created at"))

    objects = models.Manager.from_queryset(ToolApprovalQuerySet)()

    class Meta:
        db_table = table("approvals")
        verbose_name = _("tool approval")
        verbose_name_plural = _("tool approvals")
        permissions = (("decide_toolapproval", "Can decide on tool approval"),)
        constraints = (
            models.UniqueConstraint(
                fields=["message", "step", "index"], name="agent_memory_approval_call"
            ),
        )
        indexes = (
            PartialIndex(
                fields=["status", "id"],
                where=models.Q(status="pending"),
                name="agent_memory_approval_pending",
            ),
        )

    def __str__(self) -> str:
        return f"{self.tool}: {self.status}"


class TurnJournal(models.Model):
    """
    What a running turn has done so far, for whoever finds it dead.

    ``index`` -1 is the entry of a step's calls, others those of its results.
    """

    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, db_index=False, related_name="journal"
    )
    turn_id = ExactCharField(max_length=36)
    step = models.IntegerField()
    index = models.IntegerField()
    entry = ExactTextField()
    created_at = models.DateTimeField()

    class Meta:
        db_table = table("journal")
        verbose_name = _("journal entry")
        verbose_name_plural = _("journal entries")
        constraints = (
            models.UniqueConstraint(
                fields=["conversation", "turn_id", "step", "index"],
                name="agent_memory_journal_entry",
            ),
        )

    def __str__(self) -> str:
        return f"{self.turn_id} {self.step}.{self.index}"
