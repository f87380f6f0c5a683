"""The rows of a turn, and the hidden row of a conversation whose first turn is running."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.db.models import F

from agent_memory.approvals import asked_in
from agent_memory.journals import INTERRUPTION
from agent_memory.messages import Turn
from agent_memory.models import ConversationMessage
from agent_memory.records import Heading, Reservation, StoredTurn
from agent_memory.stores.database import approvals, attachments, queries, rows
from agent_memory.stores.database.files import Place
from agent_memory.stores.database.terms import TOTALS


def insert_placeholder(
    using: str, heading: Heading, values: dict[str, Any], *, journalled: bool = False
) -> None:
    """Write the hidden, reserved row of a conversation to be."""
    moment = rows.local(datetime.now(UTC))
    row = rows.conversation_row(heading, using, moment=moment, opened=False)
    held = {name: values[name] for name in ("reservation", "reserved_key")}
    queries.placeholder.run(
        using, row | held | {"journalled": journalled}, milliseconds=values["milliseconds"]
    )


class Made(NamedTuple):
    """What a turn's two rows hold but for their positions, made before a row is locked."""

    ended: datetime
    user: dict[str, Any]
    assistant: dict[str, Any]


def make(using: str, heading: Heading, turn: Turn, reservation: Reservation) -> Made:
    """Return the rows of a turn that ends now."""
    ended = rows.local(datetime.now(UTC))
    begun = rows.local(reservation.begun_at)
    return Made(ended, *rows.turn_rows(heading, turn, reservation, using, begun=begun, ended=ended))


def write_turn(
    using: str,
    heading: Heading,
    turn: Turn,
    reservation: Reservation,
    made: Made,
    places: Mapping[str, Place] = attachments.NOWHERE,
) -> StoredTurn | None:
    """
    Count a turn in and write its two rows, inside a transaction of the caller's.

    Those of its files (``places`` hold the bytes of some) and of the approvals
    that a paused one asks for are written with them. Returns ``None``, and
    writes nothing, when the reservation was lost.
    """
    now, user, assistant = made
    usage = rows.totals([*rows.usages(turn), turn.title_usage])
    paused = turn.status == "paused"
    asked = asked_in(turn, heading.approvals) if paused else ()
    position = reservation.next_position
    if reservation.new:
        row = rows.conversation_row(heading, using, moment=now, opened=True)
        row |= usage | {"next_position": 2, "turn_count": 1}
        if paused:
            row |= {"paused_position": 0, "undecided_count": len(asked)}
        queries.conversation.run(using, row)
        position = 0
    else:
        counted = queries.append(bool(heading.title), paused).run(
            using,
            id=heading.id,
            reservation=reservation.turn_id,
            title=heading.title,
            title_source=heading.title_source,
            last_activity=now,
            undecided_count=len(asked),
            **usage,
        )
        if counted is None:
            return None
        if position is None:
            ((following,),) = queries.position.rows(using, id=heading.id)
            position = following - 2
        if reservation.journalled:
            queries.drop_journal.run(using, id=heading.id)
    attachments.keep(using, heading.id, [turn.user], now, places, new=reservation.new)
    user["position"], assistant["position"] = position, position + 1
    user_id, assistant_id = queries.turn_rows.run(using, user, assistant)
    if asked:
        approvals.insert(using, assistant_id, heading.agent, asked, now)
    return StoredTurn(
        reservation.conversation_id,
        reservation.turn_id,
        str(user_id),
        str(assistant_id),
        created=reservation.new or reservation.placeholder,
    )


def rewrite(
    using: str, answer_id: int, turn: Turn, token: str, now: datetime, **condition: Any
) -> bool:
    """Write a turn's next form over its answer's row; False: no such row meets the condition."""
    found = ConversationMessage.objects.using(using).filter(id=answer_id, **condition)
    return bool(found.update(**rows.answer_columns(turn), turn_id=token, finished_at=now))


def grown(before: dict[str, int], turn: Turn) -> dict[str, Any]:
    """Return the changes of a conversation's totals when a turn, once counted, has grown."""
    after = rows.totals([*rows.usages(turn), turn.title_usage])
    return {name: F(name) + (after[name] - before[name]) for name in TOTALS}


class StandingTurn(NamedTuple):
    """A turn that a token has written, or of which it has written the last form."""

    stored: StoredTurn
    answer_id: int
    is_last_form: bool
    status: str
    error_code: str
    totals: dict[str, int]

    def is_form_of(self, turn: Turn) -> bool:
        """Tell whether it stands there as it was to be; a paused one may have gone on since."""
        if not self.is_last_form:
            return turn.status == "paused"
        return (self.status, self.error_code) == (turn.status, rows.error_code(turn))

    @property
    def is_interruption(self) -> bool:
        """Whether it was made of what a worker noted that was taken for dead."""
        form = self.is_last_form, self.status, self.error_code
        return form == (True, "failed", INTERRUPTION.code)


def find(
    using: str, conversation_id: str, token: str, *, position: int = 0, created: bool = False
) -> StandingTurn | None:
    """Return what a token has written, at a position or later, by a commit that nobody saw."""
    found = queries.turn_of.rows(using, id=conversation_id, turn_id=token, position=position)
    if not found:
        return None
    first = found[0][0] - found[0][0] % 2
    pair = (
        ConversationMessage.objects.using(using)
        .filter(conversation=conversation_id, position__in=(first, first + 1))
        .order_by("position")
        .values_list("id", "turn_id", "status", "error_code", *TOTALS)
    )
    if len(pair) != 2:  # cleared in between
        return None
    said, answered = pair
    return StandingTurn(
        StoredTurn(conversation_id, said[1], str(said[0]), str(answered[0]), created=created),
        answered[0],
        answered[1] == token,
        answered[2],
        answered[3],
        dict(zip(TOTALS, answered[4:], strict=True)),
    )
