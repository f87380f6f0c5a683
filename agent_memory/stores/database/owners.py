"""Whose conversations are: handed over, or nobody's any more."""

from __future__ import annotations

from typing import Any

from django.db import models, transaction

from agent_memory.exceptions import ConversationDoesNotExist
from agent_memory.models import Conversation, ConversationMessage, ToolApproval
from agent_memory.participants import Participant
from agent_memory.stores.database import held, rows
from agent_memory.stores.database.retrying import retried

NOBODY: dict[str, Any] = {"participant_type_id": None, "participant_key": ""}


def transfer(using: str, conversation_id: str, owner: Participant | None) -> None:
    """Hand a conversation over. See ConversationStore.transfer_conversation()."""
    columns = rows.participant_columns(owner, using)

    def work() -> None:
        with transaction.atomic(using):
            found = Conversation.objects.using(using).filter(
                id=conversation_id, opened_at__isnull=False
            )
            if found.filter(**NOBODY).update(**columns):
                ConversationMessage.objects.using(using).filter(
                    conversation=conversation_id, role="user", position__gte=0, **NOBODY
                ).update(**columns)
            elif not found.update(**columns):
                raise ConversationDoesNotExist(conversation_id)

    retried(using, work)


def ids(using: str, owner: Participant) -> list[str]:
    """Return the conversations of a participant, those included that a first turn reserves."""
    return list(_owned(using, owner).values_list("id", flat=True))


def anonymise(using: str, gone: Participant) -> None:
    """Make nobody of a participant. See ConversationStore.anonymise_participant()."""
    columns = rows.participant_columns(gone, using)
    decided = {f"decided_by_{name[12:]}": value for name, value in columns.items()}

    def work() -> None:
        with transaction.atomic(using):
            for conversation_id in ids(using, gone):
                found = Conversation.objects.using(using).filter(id=conversation_id)
                found.update(**NOBODY)
                for token in found.exclude(reservation="").values_list("reservation", flat=True):
                    held.cut_off(using, conversation_id, token)
            ConversationMessage.objects.using(using).filter(**columns).update(**NOBODY)
            ToolApproval.objects.using(using).filter(**decided).update(
                decided_by_type_id=None, decided_by_key=""
            )

    retried(using, work)


def _owned(using: str, owner: Participant) -> models.QuerySet[Conversation]:
    return Conversation.objects.using(using).filter(**rows.participant_columns(owner, using))
