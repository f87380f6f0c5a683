"""What the promises of paused turns share: turns that ask, and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from agent_memory.approvals import PendingApproval, asked_in
from agent_memory.exceptions import ApprovalsPending
from agent_memory.journals import JournalEntry
from agent_memory.messages import Message, Step, TextPart, ToolCall, ToolResult, Turn, Usage
from agent_memory.records import (
    Heading,
    Once,
    PausedTurn,
    Reservation,
    StoredConversation,
    StoredTurn,
)
from agent_memory.testing.contract.base import COACH, ONE, Promises, raises

KEY = "key-1"
PAST, FUTURE = datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC), datetime(2901, 2, 3, 4, 5, 6, tzinfo=UTC)
USED = Usage(input_tokens=10, output_tokens=5, cached_tokens=3, reasoning_tokens=2)


def asking_turn(
    prompt: str = "Refund it.", *, calls: int = 2, ran: bool = True, **fields: Any
) -> Turn:
    """
    Return a paused turn of one step, whose calls wait for a person.

    They are "call-0", "call-1" and so on; ``ran``: another call beside them has a result.
    """
    asked = [
        ToolCall(
            id=f"call-{number}",
            name="refund",
            arguments={"order": 7, "part": number},
            approval_reason="It costs.",
        )
        for number in range(calls)
    ]
    if ran:
        asked.append(ToolCall(id="look", name="look", result=ToolResult(value="Found it.")))
    step = Step(
        items=(TextPart(text="Let me see."), *asked),
        finish_reason="tool_calls",
        usage=USED,
        provider="test",
        model="test-model",
    )
    return Turn(user=Message("user", prompt), steps=(step,), status="paused", **fields)


def answered(turn: Turn, *results: ToolResult | None) -> Turn:
    """Return a turn with results on the calls of its last step that have none, in order."""
    waiting = [
        index for index, call in enumerate(turn.steps[-1].tool_calls()) if call.result is None
    ]
    found = {
        index: result for index, result in zip(waiting, results, strict=False) if result is not None
    }
    steps = (*turn.steps[:-1], turn.steps[-1].with_results(found))
    return turn.model_copy(update={"steps": steps})


def finished(turn: Turn, *values: str, **fields: Any) -> Turn:
    """Return a paused turn as it is when it has gone on to its end."""
    turn = answered(turn, *(ToolResult(value=value) for value in values))
    last = Step(items=(TextPart(text="Refunded."),), usage=USED, model="test-model")
    update = {"status": "completed", "steps": (*turn.steps, last), **fields}
    return turn.model_copy(update=update)


def asked_by(turn: Turn) -> tuple[PendingApproval, ...]:
    """Return what a paused turn waits for."""
    return tuple(approval.asked for approval in asked_in(turn))


class Pausing(Promises):
    """What the promises of paused turns share."""

    key, past, future, used = KEY, PAST, FUTURE, USED

    def pause(
        self,
        turn: Turn | None = None,
        conversation_id: str | None = ONE,
        *,
        expire: Iterable[datetime | None] = (),
        key: str | None = None,
    ) -> StoredTurn:
        """Append a paused turn of the owner's; its calls expire as told, in order."""
        turn = asking_turn() if turn is None else turn
        once = None if key is None else Once.of(key, turn.user)
        reservation = self.store.reserve(
            conversation_id, participant=self.owner, agent=COACH, create=True, once=once
        )
        described = tuple(
            replace(asked, expires_at=at) for asked, at in zip(asked_by(turn), expire, strict=False)
        )
        heading = Heading(reservation.conversation_id, self.owner, COACH, approvals=described)
        return self.store.append(heading, turn, reservation=reservation)

    def resume(self, conversation_id: str = ONE) -> tuple[Reservation, PausedTurn]:
        reservation = self.store.reserve(conversation_id, resume=True)
        assert reservation.paused is not None
        return reservation, reservation.paused

    def look(self, conversation_id: str = ONE) -> PausedTurn:
        """Return the paused turn, as whoever resumes it gets it."""
        reservation, paused = self.resume(conversation_id)
        self.store.release(reservation)
        return paused

    def statuses(self, conversation_id: str = ONE) -> list[str]:
        return [approval.status for approval in self.look(conversation_id).approvals]

    def claim(self, reservation: Reservation, index: int, step: int = 0) -> bool:
        assert reservation.paused is not None
        call = reservation.paused.turn.steps[step].tool_calls()[index]
        return self.store.journal(reservation, JournalEntry(step, index, call), 60)

    def note(self, reservation: Reservation, index: int, value: str, step: int = 0) -> None:
        """Journal the result of a call."""
        entry = JournalEntry(step, index, ToolResult(value=value))
        assert self.store.journal(reservation, entry, 60) is True

    def assert_blocked(
        self, *waiting: PendingApproval, conversation_id: str = ONE, **kwargs: Any
    ) -> None:
        for store in (self.store, self.elsewhere):
            with raises(ApprovalsPending) as caught:
                store.reserve(conversation_id, **kwargs)
            assert caught.exception.pending == waiting

    def known(self, conversation_id: str = ONE) -> StoredConversation:
        stored = self.store.get(conversation_id)
        assert stored is not None
        return stored

    def settle(
        self, turn: Turn | None, conversation_id: str = ONE, **heading: Any
    ) -> StoredTurn | None:
        """Resume the paused turn, and settle it."""
        reservation, _ = self.resume(conversation_id)
        made = Heading(conversation_id, self.owner, COACH, **heading)
        return self.store.settle(made, turn, reservation=reservation)

    def asked_under(self, key: str, message: Message) -> Reservation:
        return self.store.reserve(ONE, once=Once.of(key, message))
