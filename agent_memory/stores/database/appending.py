"""Writing a turn so that it stands there once: whole, in order, and only for who may."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count

from django.db import IntegrityError, transaction

from agent_memory.exceptions import (
    ApprovalNotResumable,
    ConversationConflict,
    ConversationDoesNotExist,
)
from agent_memory.messages import Turn
from agent_memory.models import Conversation
from agent_memory.records import Heading, Reservation, StoredTurn, new_id
from agent_memory.stores import pauses
from agent_memory.stores.database import files, reserving, rows, settling, turns
from agent_memory.stores.database.retrying import retried
from agent_memory.stores.database.transactions import durable

ATTEMPTS = 5


def append(using: str, heading: Heading, turn: Turn, reservation: Reservation) -> StoredTurn:
    """
    Write a turn under its reservation, in a transaction that ends here.

    Raises ``ConversationConflict`` for a lost reservation and for that of a resume,
    and ``TransactionOpen`` inside a transaction of the caller's.
    """
    pauses.check_appends(reservation, turn)

    def work() -> StoredTurn:
        made = turns.make(using, heading, turn, reservation)
        try:
            with durable(using):
                stored = turns.write_turn(using, heading, turn, reservation, made, places)
        except IntegrityError:
            if not reservation.new:
                raise
            stored = None
        if stored is not None:
            return stored
        found = turns.find(
            using,
            heading.id,
            reservation.turn_id,
            position=reservation.next_position or 0,
            created=reservation.new or reservation.placeholder,
        )
        if found is None or not found.is_form_of(turn):
            raise ConversationConflict(heading.id, turn)
        return found.stored

    with files.written(using, heading.id, [turn.user], new=reservation.new) as places:
        return retried(using, work)


def append_directly(using: str, heading: Heading, turn: Turn) -> StoredTurn:
    """
    Write a turn with a reservation of its own; may join a transaction of the caller's.

    A heading that names the turn's id makes it one that may stand there, or be
    journalled, or be recorded as interrupted, which it replaces then.
    """
    turn_id = heading.turn_id or new_id()
    wanted = reserving.Wanted(using, heading, turn_id, create=True)
    tries = count(bool(heading.turn_id))

    def work() -> StoredTurn:
        again = bool(next(tries))
        for _ in range(ATTEMPTS):
            if again and (found := turns.find(using, heading.id, turn_id)) is not None:
                if (stored := _stand(using, heading, turn, found)) is not None:
                    return stored
                continue  # another one replaced it in between
            try:
                with transaction.atomic(using):
                    taken = reserving.take(wanted)
                    taken.once, taken.journalled = heading.once, bool(heading.turn_id)
                    if again and turns.find(using, heading.id, turn_id) is not None:
                        transaction.set_rollback(True, using=using)  # recorded in between
                        continue
                    made = turns.make(using, heading, turn, taken)
                    stored = turns.write_turn(using, heading, turn, taken, made, places)
            except IntegrityError:
                continue  # another one opened the conversation in between
            if stored is not None:
                return stored
        raise ConversationConflict(heading.id, turn)

    with files.written(using, heading.id, [turn.user]) as places:
        return retried(using, work)


def append_rest(using: str, heading: Heading, turn: Turn) -> StoredTurn:
    """
    Settle a paused turn with a reservation of its own; may join a transaction of the caller's.

    Raises ``ConversationConflict`` unless the turn that the heading settles is paused still.
    """
    token = heading.turn_id or new_id()
    wanted = reserving.Wanted(using, heading, token, resume=True)

    def work() -> StoredTurn:
        found = turns.find(using, heading.id, token)
        if found is not None and found.is_form_of(turn):
            return found.stored
        try:
            with transaction.atomic(using):
                taken = reserving.take(wanted)
                assert taken.paused is not None
                if taken.paused.stored.turn_id != heading.settles:
                    raise ConversationConflict(heading.id, turn)
                return settling.write(using, heading, turn, taken.paused, token)
        except (ApprovalNotResumable, ConversationDoesNotExist):
            raise ConversationConflict(heading.id, turn) from None

    return retried(using, work)


def _stand(
    using: str, heading: Heading, turn: Turn, found: turns.StandingTurn
) -> StoredTurn | None:
    """
    Return a turn that stands there; the record of its interruption is replaced by it.

    ``None``: it is worth trying again. Raises ``ConversationConflict`` for another form.
    """
    if found.is_form_of(turn):
        return found.stored
    if not found.is_interruption or turn.status == "paused":
        raise ConversationConflict(heading.id, turn)
    now = rows.local(datetime.now(UTC))
    with transaction.atomic(using):
        grown = turns.grown(found.totals, turn)
        Conversation.objects.using(using).filter(id=heading.id).update(last_activity=now, **grown)
        record = {"status": "failed", "error_code": found.error_code, "turn_id": heading.turn_id}
        if turns.rewrite(using, found.answer_id, turn, heading.turn_id, now, **record):
            return found.stored
        transaction.set_rollback(True, using=using)
    return None
