import agent_memory.fields
import django.db.models.deletion
from django.db import migrations, models

from agent_memory.conf import table


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [
        migrations.CreateModel(
            name="Conversation",
            fields=[
                (
                    "id",
                    agent_memory.fields.ExactCharField(
                        max_length=255, primary_key=True, serialize=False, verbose_name="id"
                    ),
                ),
                (
                    "participant_key",
                    agent_memory.fields.ExactCharField(
                        blank=True, default="", max_length=255, verbose_name="participant key"
                    ),
                ),
                (
                    "agent",
                    agent_memory.fields.ExactCharField(
                        blank=True, default="", max_length=255, verbose_name="agent"
                    ),
                ),
                (
                    "title",
                    agent_memory.fields.ExactCharField(
                        blank=True, default="", max_length=255, verbose_name="title"
                    ),
                ),
                (
                    "title_source",
                    agent_memory.fields.ExactCharField(blank=True, default="", max_length=10),
                ),
                ("opened_at", models.DateTimeField(null=True, verbose_name="opened at")),
                ("last_activity", models.DateTimeField(verbose_name="last activity")),
                ("next_position", models.IntegerField(default=0)),
                ("turn_count", models.IntegerField(default=0, verbose_name="turns")),
                (
                    "reservation",
                    agent_memory.fields.ExactCharField(blank=True, default="", max_length=36),
                ),
                ("reserved_since", models.BigIntegerField(default=0)),
                ("reserved_until", models.BigIntegerField(default=0)),
                (
                    "reserved_key",
                    agent_memory.fields.ExactCharField(blank=True, default="", max_length=255),
                ),
                ("journalled", models.BooleanField(default=False)),
                ("paused_position", models.IntegerField(null=True)),
                ("undecided_count", models.IntegerField(default=0)),
                ("input_tokens", models.BigIntegerField(default=0, verbose_name="input tokens")),
                ("output_tokens", models.BigIntegerField(default=0, verbose_name="output tokens")),
                ("cached_tokens", models.BigIntegerField(default=0, verbose_name="cached tokens")),
                (
                    "reasoning_tokens",
                    models.BigIntegerField(default=0, verbose_name="reasoning tokens"),
                ),
                ("metadata", agent_memory.fields.ExactTextField(default="{}")),
                (
                    "participant_type",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="contenttypes.contenttype",
                        verbose_name="participant type",
                    ),
                ),
            ],
            options={
                "verbose_name": "conversation",
                "verbose_name_plural": "conversations",
                "db_table": table("conversations"),
                "permissions": (
                    ("rename_conversation", "Can rename conversation"),
                    ("redraft_conversation", "Can redraft title of conversation"),
                    ("release_conversation", "Can release stuck conversation"),
                ),
                "indexes": [
                    models.Index(
                        fields=["participant_type", "participant_key", "last_activity", "id"],
                        name="agent_memory_conv_participant",
                    ),
                    models.Index(
                        fields=["last_activity", "id"], name="agent_memory_conv_activity"
                    ),
                    agent_memory.fields.PartialIndex(
                        fields=["paused_position"],
                        name="agent_memory_conv_paused",
                        where=models.Q(("paused_position__isnull", False)),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ConversationAttachment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("sha256", agent_memory.fields.ExactCharField(max_length=64)),
                ("public_id", agent_memory.fields.ExactCharField(max_length=36)),
                (
                    "media_type",
                    agent_memory.fields.ExactCharField(
                        blank=True, default="", max_length=255, verbose_name="media type"
                    ),
                ),
                (
                    "file_name",
                    agent_memory.fields.ExactCharField(
                        blank=True, default="", max_length=255, verbose_name="file name"
                    ),
                ),
                ("size", models.BigIntegerField(verbose_name="size")),
                ("data", models.BinaryField(null=True)),
                (
                    "storage",
                    agent_memory.fields.ExactCharField(blank=True, default="", max_length=255),
                ),
                (
                    "stored_name",
                    agent_memory.fields.ExactCharField(blank=True, default="", max_length=255),
                ),
                ("created_at", models.DateTimeField()),
                (
                    "conversation",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attachments",
                        to="agent_memory.conversation",
                    ),
                ),
            ],
            options={
                "verbose_name": "attachment",
                "verbose_name_plural": "attachments",
                "db_table": table("attachments"),
                "base_manager_name": "objects",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("conversation", "sha256"), name="agent_memory_att_content"
                    ),
                    models.UniqueConstraint(
                        fields=("public_id",), name="agent_memory_att_public_id"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ConversationMessage",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("position", models.IntegerField(verbose_name="position")),
                (
                    "turn_id",
                    agent_memory.fields.ExactCharField(blank=True, default="", max_length=36),
                ),
                (
                    "role",
                    agent_memory.fields.ExactCharField(
                        choices=[
                            ("user", "user"),
                            ("assistant", "assistant"),
                            ("system", "system"),
                            ("developer", "developer"),
                        ],
                        max_length=10,
                        verbose_name="role",
                    ),
                ),
                (
                    "agent",
                    agent_memory.fields.ExactCharField(
                        blank=True, default="", max_length=255, verbose_name="agent"
                    ),
                ),
                (
                    "participant_key",
                    agent_memory.fields.ExactCharField(blank=True, default="", max_length=255),
                ),
                (
                    "content",
                    agent_memory.fields.ExactTextField(
                        blank=True, default="", verbose_name="content"
                    ),
                ),
                ("parts", agent_memory.fields.ExactTextField(default="[]")),
                ("steps", agent_memory.fields.ExactTextField(default="[]")),
                ("meta", agent_memory.fields.ExactTextField(default="{}")),
                ("replay", agent_memory.fields.ExactTextField(blank=True, default="")),
                (
                    "status",
                    agent_memory.fields.ExactCharField(
                        choices=[
                            ("completed", "completed"),
                            ("paused", "paused"),
                            ("failed", "failed"),
                        ],
                        default="completed",
                        max_length=10,
                        verbose_name="status",
                    ),
                ),
                ("format", models.SmallIntegerField(default=1)),
                (
                    "model",
                    agent_memory.fields.ExactCharField(
                        blank=True, default="", max_length=255, verbose_name="model"
                    ),
                ),
                (
                    "provider",
                    agent_memory.fields.ExactCharField(
                        blank=True, default="", max_length=255, verbose_name="provider"
                    ),
                ),
                (
                    "finish_reason",
                    agent_memory.fields.ExactCharField(
                        blank=True, default="", max_length=20, verbose_name="finish reason"
                    ),
                ),
                (
                    "error_code",
                    agent_memory.fields.ExactCharField(
                        blank=True, default="", max_length=255, verbose_name="error"
                    ),
                ),
                ("input_tokens", models.IntegerField(default=0, verbose_name="input tokens")),
                ("output_tokens", models.IntegerField(default=0, verbose_name="output tokens")),
                ("cached_tokens", models.IntegerField(default=0, verbose_name="cached tokens")),
                (
                    "reasoning_tokens",
                    models.IntegerField(default=0, verbose_name="reasoning tokens"),
                ),
                ("idempotency_key", agent_memory.fields.ExactCharField(max_length=255, null=True)),
                (
                    "fingerprint",
                    agent_memory.fields.ExactCharField(blank=True, default="", max_length=64),
                ),
                ("created_at", models.DateTimeField(verbose_name="created at")),
                ("finished_at", models.DateTimeField(null=True, verbose_name="finished at")),
                (
                    "conversation",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="messages",
                        to="agent_memory.conversation",
                    ),
                ),
                (
                    "participant_type",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="contenttypes.contenttype",
                        verbose_name="participant type",
                    ),
                ),
            ],
            options={
                "verbose_name": "message",
                "verbose_name_plural": "messages",
                "db_table": table("messages"),
                "indexes": [
                    agent_memory.fields.PartialIndex(
                        fields=["participant_type", "participant_key", "agent", "id"],
                        name="agent_memory_msg_participant",
                        where=models.Q(("participant_type__isnull", False)),
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("conversation", "position"), name="agent_memory_msg_position"
                    ),
                    models.UniqueConstraint(
                        fields=("conversation", "idempotency_key"), name="agent_memory_msg_key"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ToolApproval",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("step", models.IntegerField()),
                ("index", models.IntegerField()),
                ("call_id", agent_memory.fields.ExactCharField(max_length=255)),
                ("tool", agent_memory.fields.ExactCharField(max_length=255, verbose_name="tool")),
                (
                    "reason",
                    agent_memory.fields.ExactTextField(
                        blank=True, default="", verbose_name="reason"
                    ),
                ),
                ("asked", agent_memory.fields.ExactTextField(default="{}")),
                (
                    "arguments_used",
                    agent_memory.fields.ExactTextField(
                        blank=True, default="", verbose_name="arguments used"
                    ),
                ),
                ("denial", agent_memory.fields.ExactTextField(blank=True, default="")),
                (
                    "agent",
                    agent_memory.fields.ExactCharField(
                        blank=True, default="", max_length=255, verbose_name="agent"
                    ),
                ),
                (
                    "status",
                    agent_memory.fields.ExactCharField(
                        choices=[
                            ("pending", "not decided"),
                            ("approved", "approved"),
                            ("denied", "denied"),
                            ("expired", "expired"),
                            ("claimed", "running"),
                            ("done", "done"),
                            ("interrupted", "interrupted"),
                        ],
                        default="pending",
                        max_length=15,
                        verbose_name="status",
                    ),
                ),
                (
                    "decided_by_key",
                    agent_memory.fields.ExactCharField(blank=True, default="", max_length=255),
                ),
                ("decided_at", models.DateTimeField(null=True, verbose_name="decided at")),
                (
                    "note",
                    agent_memory.fields.ExactTextField(blank=True, default="", verbose_name="note"),
                ),
                ("expires_at", models.DateTimeField(null=True, verbose_name="expires at")),
                (
                    "claim",
                    agent_memory.fields.ExactCharField(blank=True, default="", max_length=36),
                ),
                ("created_at", models.DateTimeField(verbose_name="created at")),
                (
                    "decided_by_type",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="contenttypes.contenttype",
                        verbose_name="participant type",
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="approvals",
                        to="agent_memory.conversationmessage",
                    ),
                ),
            ],
            options={
                "verbose_name": "tool approval",
                "verbose_name_plural": "tool approvals",
                "db_table": table("approvals"),
                "permissions": (("decide_toolapproval", "Can decide on tool approval"),),
                "indexes": [
                    agent_memory.fields.PartialIndex(
                        fields=["status", "id"],
                        name="agent_memory_approval_pending",
                        where=models.Q(("status", "pending")),
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("message", "step", "index"), name="agent_memory_approval_call"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="TurnJournal",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("turn_id", agent_memory.fields.ExactCharField(max_length=36)),
                ("step", models.IntegerField()),
                ("index", models.IntegerField()),
                ("entry", agent_memory.fields.ExactTextField()),
                ("created_at", models.DateTimeField()),
                (
                    "conversation",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="journal",
                        to="agent_memory.conversation",
                    ),
                ),
            ],
            options={
                "verbose_name": "journal entry",
                "verbose_name_plural": "journal entries",
                "db_table": table("journal"),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("conversation", "turn_id", "step", "index"),
                        name="agent_memory_journal_entry",
                    )
                ],
            },
        ),
    ]
