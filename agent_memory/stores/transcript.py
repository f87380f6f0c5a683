"""One conversation held as values, for stores that have no rows."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent_memory.approvals import Approval, Decisions, PendingApproval, pending
from agent_memory.journals import JournalEntry, folded
from agent_memory.messages import ToolCall, Turn
from agent_memory.records import PausedTurn, Reservation, StoredTurn
from agent_memory.stores import pauses
from agent_memory.stores.kept import KeptTurn
from agent_memory.stores.said import Said


@dataclass(slots=True)
class Transcript(Said):
    """A conversation with the turn that runs, of which there is a journal, or that is paused."""

    def note(self, entry: JournalEntry, reservation: Reservation) -> bool:
        """Note what a turn is about to do or has done; False: this call must not run."""
        if isinstance(entry.value, ToolCall):
            paused = self.paused
            if paused is None:
                return False
            claimed = pauses.claimed(paused.approvals, entry.step, entry.index)
            if claimed is None:
                return False
            paused.approvals = claimed
        self.journal.append(entry)
        self.journalled = reservation
        return True

    # The turn that is paused.

    def is_paused_in(self, turn_id: str) -> bool:
        return self.paused is not None and self.paused.stored.turn_id == turn_id

    def pending(self) -> tuple[PendingApproval, ...]:
        """Return the calls that wait for a decision."""
        paused = self.paused
        return () if paused is None else copy.deepcopy(pending(paused.approvals))

    def decide(self, decisions: Decisions, now: datetime, **record: Any) -> tuple[Approval, ...]:
        """Settle calls that wait; return their approvals."""
        paused = self.paused
        approvals = None if paused is None else copy.deepcopy(paused.approvals)
        decided = copy.deepcopy(pauses.decide(self.id, approvals, decisions, at=now, **record))
        if paused is not None:
            settled = {(each.step, each.index): each for each in decided}
            paused.approvals = tuple(
                settled.get((each.step, each.index), each) for each in paused.approvals
            )
        return copy.deepcopy(decided)

    def refused(self, now: datetime) -> Turn | None:
        """
        Return the paused turn as it ends when nobody came back to it, if one is.

        Raises ``ApprovalsPending`` for one that waits, or is gone on with.
        """
        paused = self.paused
        if paused is None:
            return None
        approvals = pauses.expired(copy.deepcopy(paused.approvals), now)
        if self.journal or not pauses.is_wholly_expired(approvals):
            raise pauses.blocked(self.id, approvals, now)
        return pauses.refused(paused.turn, approvals)

    def resume(self, now: datetime) -> PausedTurn:
        """Return the paused turn to go on with, and with it what a dead worker noted."""
        paused = self._paused()
        self.fold(now)
        paused.approvals = pauses.expired(paused.approvals, now)
        return copy.deepcopy(PausedTurn(paused.turn, paused.stored, paused.approvals))

    def settle(
        self, turn: Turn, described: Iterable[PendingApproval] = (), *, ended: datetime
    ) -> StoredTurn:
        """Put what became of the paused turn in its place."""
        paused = self._paused()
        approvals: tuple[Approval, ...] = ()
        if turn.status == "paused":
            approvals = copy.deepcopy(pauses.paused_again(turn, paused.approvals, described))
        self.rewrite(paused, turn, ended=ended)
        paused.approvals = approvals
        self.drop_journal()
        return paused.stored

    def discard(self, *, ended: datetime) -> StoredTurn | None:
        """Drop the paused turn, or keep it as failed where a tool of it has started."""
        paused = self._paused()
        self.fold(ended)
        if pauses.has_started(paused.turn, paused.approvals):
            return self.settle(pauses.discarded(paused.turn), ended=ended)
        self.turns.remove(paused)
        del self.messages[-2:]
        self.spoke = {kept.speakers: kept.number for kept in self.turns}
        if paused.once is not None:
            del self.keys[paused.once.key]
        self.last_activity = ended
        return None

    def fold(self, now: datetime) -> None:
        """Fold what a dead worker noted into the paused turn that it had resumed."""
        paused = self._paused()
        if self.journal or any(each.status == "claimed" for each in paused.approvals):
            whole = folded(PausedTurn(paused.turn, paused.stored, paused.approvals), self.journal)
            self.rewrite(paused, whole.turn, ended=now)
            paused.approvals = pauses.done(whole.turn, whole.approvals)
            self.drop_journal()

    def _paused(self) -> KeptTurn:
        assert self.paused is not None
        return self.paused
