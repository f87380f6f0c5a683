"""Deciding on calls that wait: each once, all or none, whoever holds the conversation."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from itertools import count

from django.db import transaction
from django.db.models import F

from agent_memory.approvals import Approval, Decisions, PendingApproval, pending
from agent_memory.exceptions import ApprovalMismatch, ConversationDoesNotExist
from agent_memory.models import Conversation
from agent_memory.participants import Participant
from agent_memory.stores import pauses
from agent_memory.stores.database import approvals, pausing
from agent_memory.stores.database.retrying import retried


def decide(
    using: str,
    conversation_id: str,
    decisions: Decisions,
    *,
    by: Participant | None,
    note: str,
    tell: Callable[[Approval], object],
) -> tuple[PendingApproval, ...]:
    """
    Settle calls in one transaction, which may be part of the caller's; return what waits still.

    ``tell`` is called with each settled approval once that is committed. Raises as
    ``ConversationStore.decide()`` does.
    """
    at = datetime.now(UTC)
    tries = count()

    def work() -> tuple[PendingApproval, ...]:
        again = bool(next(tries))
        with transaction.atomic(using):
            _lock(using, conversation_id)
            message_id = pausing.message_id(using, conversation_id)
            found = None if message_id is None else approvals.of_pause(using, conversation_id)
            # What an earlier, unseen commit has settled bears the time of this decision.
            settled = tuple(each for each in found or () if again and each.decided_at == at)
            if not settled:
                settled = pauses.decide(conversation_id, found, decisions, by=by, note=note, at=at)
                _write(using, conversation_id, message_id, found or (), settled)
            for approval in settled:
                transaction.on_commit(partial(tell, approval), using=using, robust=True)
            places = {(each.step, each.index) for each in settled}
            left = [each for each in found or () if (each.step, each.index) not in places]
            return pending(left, at)

    return retried(using, work)


def _lock(using: str, conversation_id: str) -> None:
    found = Conversation.objects.using(using).filter(id=conversation_id, opened_at__isnull=False)
    if not found.update(undecided_count=F("undecided_count")):
        raise ConversationDoesNotExist(conversation_id)


def _write(
    using: str,
    conversation_id: str,
    message_id: int | None,
    found: tuple[Approval, ...],
    settled: tuple[Approval, ...],
) -> None:
    assert message_id is not None
    if not approvals.change(using, message_id, found, settled):
        # Only in a caller's transaction that reads what was before.
        raise ApprovalMismatch("Somebody else has decided on these calls meanwhile.")
    pausing.count_down(using, conversation_id, len(settled))
