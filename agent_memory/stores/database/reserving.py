"""Taking the reservation of a conversation, and telling what stood in the way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.db import IntegrityError, transaction

from agent_memory import conf
from agent_memory.approvals import pending
from agent_memory.exceptions import (
    ConversationBusy,
    ConversationConflict,
    ConversationDoesNotExist,
    TurnFailed,
)
from agent_memory.records import Answered, Heading, Once, Reservation, StoredTurn, new_id
from agent_memory.stores import pauses
from agent_memory.stores.database import (
    approvals,
    burying,
    pausing,
    queries,
    readings,
    rows,
    settling,
)
from agent_memory.stores.database.transactions import fleeting
from agent_memory.stores.database.turns import insert_placeholder

ATTEMPTS = 5


@dataclass(slots=True)
class Wanted:
    """
    A reservation that is asked for; ``turn_id`` will be its token.

    ``resume``: to go on with the paused turn. ``buried`` is what was put away on the way to it.
    """

    using: str
    heading: Heading
    turn_id: str
    must_own: bool = False
    create: bool = False
    once: Once | None = None
    resume: bool = False
    buried: Answered | None = None

    @property
    def owner(self) -> queries.Owner:
        if not self.must_own:
            return "anybody"
        return "nobody" if self.heading.participant is None else "participant"

    @property
    def values(self) -> dict[str, Any]:
        return {
            "id": self.heading.id,
            "reservation": self.turn_id,
            "reserved_key": self.once.key if self.once else "",
            "milliseconds": round(conf.seconds("RESERVATION_SECONDS") * 1000),
            **rows.participant_columns(self.heading.participant, self.using),
        }

    def reservation(self, **facts: Any) -> Reservation:
        return Reservation(
            self.heading.id, self.turn_id, once=self.once, buried=self.buried, **facts
        )


def reserve(wanted: Wanted, *, again: bool = False) -> Reservation:
    """
    Take a conversation's reservation for the participant of a heading.

    A new id gets a hidden row at once, where ``create`` allows it; ``again``: an
    earlier try may have written it unseen. Raises as ``ConversationStore.reserve()``
    does.
    """
    for _ in range(ATTEMPTS):
        reservation = _attempt(wanted)
        if reservation is None:
            found = queries.obstacle.rows(wanted.using, id=wanted.heading.id)
            if found:
                reservation = _clear_the_way(wanted, Obstacle(*found[0]))
            elif wanted.resume or not wanted.create:
                raise ConversationDoesNotExist(wanted.heading.id)
            else:
                reservation = _insert_placeholder(wanted)
        if reservation is not None:
            if again and reservation.next_position is None:
                ((opened_at, *_),) = queries.obstacle.rows(wanted.using, id=wanted.heading.id)
                reservation.placeholder = opened_at is None
            return reservation
    raise _overtaken(wanted)


def take(wanted: Wanted) -> Reservation:
    """Take it inside the transaction of a direct append, which creates what is not there."""
    for _ in range(ATTEMPTS):
        reservation = _attempt(wanted)
        if reservation is None:
            found = queries.obstacle.rows(wanted.using, id=wanted.heading.id)
            if not found and wanted.resume:
                raise ConversationDoesNotExist(wanted.heading.id)
            if not found:
                return wanted.reservation(new=True)
            reservation = _clear_the_way(wanted, Obstacle(*found[0]))
        if reservation is not None:
            return reservation
    raise _overtaken(wanted)


def _overtaken(wanted: Wanted) -> ConversationBusy:
    """Return what to raise when each time somebody else was faster."""
    return ConversationBusy(wanted.heading.id, since=datetime.now(UTC), retry_after=0)


def drop_dead_placeholder(using: str, conversation_id: str) -> bool:
    """Remove the hidden row of a first turn whose worker died; tells whether there was one."""
    found = queries.obstacle.rows(using, id=conversation_id)
    if not found or not (obstacle := Obstacle(*found[0])).is_dead_placeholder:
        return False
    return bool(queries.drop_placeholder.run(using, id=conversation_id, reservation=obstacle.token))


def fill(reservation: Reservation, row: rows.Row, using: str) -> Reservation:
    """Tell a reservation what ``RESERVED`` columns say; an empty row says nothing yet."""
    if row:
        following, paused, type_id, key, reservation.title_source, opened_at = row
        reservation.next_position = following if paused is None else paused
        reservation.participant = rows.participant_value(type_id, key, using)
        reservation.placeholder = opened_at is None
    return reservation


class Obstacle(NamedTuple):
    """A conversation that could not be reserved, in the columns of ``queries.obstacle``."""

    opened_at: datetime | None
    participant_type_id: int | None
    participant_key: str
    paused_position: int | None
    since: int
    until: int
    token: str
    key: str
    journalled: bool
    now: int

    @property
    def is_dead_placeholder(self) -> bool:
        return self.opened_at is None and not self.journalled and self.until <= self.now

    def belongs_to(self, values: dict[str, Any]) -> bool:
        owner = self.participant_type_id, self.participant_key
        return owner == (values["participant_type_id"], values["participant_key"])


def _update(wanted: Wanted) -> Reservation | None:
    statement = queries.reserve(wanted.owner, wanted.once is not None, wanted.resume)
    with fleeting(wanted.using):
        row = statement.run(wanted.using, **wanted.values)
    return None if row is None else fill(wanted.reservation(), row, wanted.using)


def _attempt(wanted: Wanted) -> Reservation | None:
    """Reserve, and read the turn that is to be gone on with."""
    if not wanted.resume:
        return _update(wanted)
    using, conversation_id = wanted.using, wanted.heading.id
    with transaction.atomic(using):
        reservation = _update(wanted)
        if reservation is None:
            return None
        if reservation.next_position is None:
            (row,) = queries.reserved.rows(using, id=conversation_id)
            fill(reservation, row, using)
        reservation.paused = pausing.read_in_time(using, conversation_id)
    return reservation


def _clear_the_way(wanted: Wanted, obstacle: Obstacle) -> Reservation | None:
    """
    Raise what stood in the way: ownership first, then the key, a pause, another turn.

    What a dead worker left is put away. Returns the turn that an idempotency
    key has already, and ``None`` when it is worth trying again.
    """
    conversation_id = wanted.heading.id
    if obstacle.is_dead_placeholder:
        queries.drop_placeholder.run(wanted.using, id=conversation_id, reservation=obstacle.token)
        return None
    hidden = obstacle.opened_at is None and not obstacle.journalled and not wanted.create
    if hidden or (wanted.must_own and not obstacle.belongs_to(wanted.values)):
        raise ConversationDoesNotExist(conversation_id)
    paused = obstacle.paused_position is not None
    if wanted.resume and not paused:
        raise pauses.not_resumable(conversation_id)
    if not wanted.resume:
        answered = _answered(wanted)
        if answered is not None:
            return answered
        if paused:
            _end_the_pause(wanted, obstacle)
            return None
    if obstacle.until > obstacle.now:
        raise ConversationBusy(
            conversation_id,
            since=datetime.fromtimestamp(obstacle.since / 1000, UTC),
            retry_after=(obstacle.until - obstacle.now) / 1000,
            same_message=wanted.once is not None and wanted.once.key == obstacle.key,
        )
    if obstacle.journalled:
        wanted.buried = burying.bury(
            wanted.using,
            conversation_id,
            obstacle.token,
            paused=paused,
            hidden=obstacle.opened_at is None,
        )
    return None


def _end_the_pause(wanted: Wanted, obstacle: Obstacle) -> None:
    """
    End a paused turn as denied of which all has expired, before another one begins.

    Raises ``ApprovalsPending`` where somebody must come back to it.
    """
    using, conversation_id = wanted.using, wanted.heading.id
    now = datetime.now(UTC)
    found = approvals.of_pause(using, conversation_id)
    free = obstacle.until <= obstacle.now and not obstacle.journalled
    if not free or not pauses.is_wholly_expired(pauses.expired(found, now)):
        raise pauses.blocked(conversation_id, found, now)
    with transaction.atomic(using):
        taken = _attempt(replace(wanted, turn_id=new_id(), once=None, resume=True))
        if taken is None or taken.paused is None:
            return
        turn, found = taken.paused.turn, taken.paused.approvals
        if pauses.is_wholly_expired(found):
            refused = pauses.refused(turn, found)
            settling.write(using, wanted.heading, refused, taken.paused, taken.turn_id)
        else:  # decided in between
            transaction.set_rollback(True, using=using)


def _answered(wanted: Wanted) -> Reservation | None:
    """Return the turn that the key has; raises ``TurnFailed``, and for another message."""
    if wanted.once is None:
        return None
    conversation_id, using = wanted.heading.id, wanted.using
    found = readings.keyed_position.rows(using, id=conversation_id, idempotency_key=wanted.once.key)
    if not found:
        return None
    ((position, fingerprint),) = found
    if fingerprint != wanted.once.fingerprint:
        raise ConversationConflict(
            conversation_id,
            message="This idempotency key stands for another message: give each its own.",
        )
    rows_of_turn = readings.turn_at.rows(using, id=conversation_id, position=position)
    if len(rows_of_turn) != 2:  # cleared in between
        return None
    said, answered = rows_of_turn
    turn = rows.turn(said, answered, conversation_id, using)
    if turn.status == "failed":
        raise TurnFailed(turn)
    stored = StoredTurn(conversation_id, said[1], str(said[0]), str(answered[0]))
    asked = approvals.of_pause(using, conversation_id) if turn.status == "paused" else ()
    return wanted.reservation(answered=Answered(turn, stored, pending(asked)))


def _insert_placeholder(wanted: Wanted) -> Reservation | None:
    """Write the hidden row of a conversation to be; ``None``: somebody was faster."""
    try:
        with transaction.atomic(wanted.using):
            insert_placeholder(wanted.using, wanted.heading, wanted.values)
    except IntegrityError:
        return None
    return wanted.reservation(
        placeholder=True, next_position=0, participant=wanted.heading.participant
    )
