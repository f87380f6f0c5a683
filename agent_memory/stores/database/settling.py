"""The end of a pause: its turn is written in its next form, or goes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

from django.db.models import F

from agent_memory.approvals import asked_in
from agent_memory.exceptions import ConversationConflict
from agent_memory.journals import folded
from agent_memory.messages import Turn
from agent_memory.models import Conversation, ConversationMessage
from agent_memory.records import Heading, PausedTurn, Reservation, StoredTurn, new_id
from agent_memory.stores import pauses
from agent_memory.stores.attachments import files_of
from agent_memory.stores.database import (
    approvals,
    attachments,
    journal,
    pausing,
    queries,
    rows,
    turns,
)
from agent_memory.stores.database.retrying import retried
from agent_memory.stores.database.terms import FREE
from agent_memory.stores.database.transactions import durable


def settle(
    using: str, heading: Heading, turn: Turn | None, reservation: Reservation
) -> StoredTurn | None:
    """
    Replace a paused turn, or drop it, in a transaction that ends here.

    Raises as ``ConversationStore.settle()`` does.
    """
    if (paused := reservation.paused) is None:
        raise ConversationConflict(heading.id, turn)
    tries = count()

    def work() -> StoredTurn | None:
        again = bool(next(tries))
        with durable(using):
            if _hold(using, heading, reservation):
                if turn is None:
                    return _drop(using, paused, reservation)
                return write(using, heading, turn, paused, reservation.turn_id)
        found = turns.find(using, heading.id, reservation.turn_id)
        if found is not None and found.is_form_of(turn or pauses.discarded(paused.turn)):
            return found.stored
        if turn is None and again and not turns.find(using, heading.id, paused.stored.turn_id):
            return None
        raise ConversationConflict(heading.id, turn)

    return retried(using, work)


def write(using: str, heading: Heading, turn: Turn, paused: PausedTurn, token: str) -> StoredTurn:
    """Write the next form of a paused turn, in a transaction that holds it under a token."""
    answer_id = pausing.answer_id(paused)
    before = approvals.of_pause(using, heading.id)
    approvals.change(using, answer_id, before, pauses.done(turn, before))
    known = {(each.step, each.index) for each in before}
    asked = asked_in(turn, heading.approvals) if turn.status == "paused" else ()
    further = [each for each in asked if (each.step, each.index) not in known]
    if not further:
        return _rewrite(using, paused, turn, token)
    now = rows.local(datetime.now(UTC))
    approvals.insert(using, answer_id, heading.agent, further, now)
    return _rewrite(using, paused, turn, token, undecided_count=len(further))


def fold(using: str, conversation_id: str, token: str) -> None:
    """
    Fold what a worker that resumed a turn has noted into it, and free the conversation.

    In a transaction that has taken the worker's place.
    """
    paused = pausing.read(using, conversation_id)
    left = folded(paused, journal.entries(using, conversation_id, token))
    approvals.change(using, pausing.answer_id(paused), paused.approvals, left.approvals)
    # Under the token of nobody: a worker that lives after all must not take it for its own form.
    _rewrite(using, paused, left.turn, new_id())


def _drop(using: str, paused: PausedTurn, reservation: Reservation) -> StoredTurn | None:
    conversation_id = reservation.conversation_id
    before = approvals.of_pause(using, conversation_id)
    noted = journal.entries(using, conversation_id, reservation.turn_id)
    left = folded(replace(paused, approvals=before), noted)
    if pauses.has_started(left.turn, left.approvals):
        approvals.change(using, pausing.answer_id(paused), before, left.approvals)
        return _rewrite(using, paused, pauses.discarded(left.turn), reservation.turn_id)
    ConversationMessage.objects.using(using).filter(
        conversation=conversation_id, position__gte=reservation.next_position
    ).delete()
    if files_of([paused.turn.user]):
        attachments.drop_unused(using, conversation_id)
    _end(
        using,
        conversation_id,
        rows.local(datetime.now(UTC)),
        next_position=F("next_position") - 2,
        turn_count=F("turn_count") - 1,
        **_UNPAUSED,
    )
    return None


_UNPAUSED: dict[str, Any] = {"paused_position": None, "undecided_count": 0}


def _rewrite(using: str, paused: PausedTurn, turn: Turn, token: str, **changes: Any) -> StoredTurn:
    """Write a turn over its paused form, count what it took since, and end the reservation."""
    now = rows.local(datetime.now(UTC))
    turns.rewrite(using, pausing.answer_id(paused), turn, token, now)
    if turn.status != "paused":
        changes |= _UNPAUSED
    grown = turns.grown(rows.totals(rows.usages(paused.turn)), turn)
    _end(using, paused.stored.conversation_id, now, **changes, **grown)
    return paused.stored


def _end(using: str, conversation_id: str, now: datetime, **changes: Any) -> None:
    queries.drop_journal.run(using, id=conversation_id)
    Conversation.objects.using(using).filter(id=conversation_id).update(
        last_activity=now, **changes, **FREE
    )


def _hold(using: str, heading: Heading, reservation: Reservation) -> bool:
    held = {"id": heading.id, "reservation": reservation.turn_id}
    return queries.renew.run(using, **held, milliseconds=60_000) is not None
