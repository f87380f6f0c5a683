"""What a running turn notes of itself, and the turn that is made of it when its worker dies."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from agent_memory.messages import INTERRUPTED, Message, Step, ToolCall, ToolResult, Turn, TurnError
from agent_memory.records import Heading, PausedTurn

INTERRUPTION = TurnError(code="Interrupted")
"""What a turn died of whose worker left nothing but entries."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """
    What a running turn is about to do, or has done, for whoever finds it dead.

    ``index`` -1 is a ``Step`` whose calls are about to run, with the message
    and the heading of its turn. Another is a call of it: its result, or, in a
    turn that was paused, the approved call itself, which is about to run and is
    claimed by this.
    """

    step: int
    index: int
    value: Step | ToolCall | ToolResult
    heading: Heading | None = None
    user: Message | None = None


def interrupted_turn(entries: Iterable[JournalEntry]) -> tuple[Heading, Turn]:
    """
    Return the failed turn that a dead worker's entries tell of, and its heading.

    A call without a result may have run.
    """
    noted = _Noted(entries)
    assert noted.heading is not None
    assert noted.user is not None
    steps = tuple(noted.with_results(number, step) for number, step in sorted(noted.steps.items()))
    return noted.heading, Turn(user=noted.user, steps=steps, status="failed", error=INTERRUPTION)


def folded(paused: PausedTurn, entries: Iterable[JournalEntry]) -> PausedTurn:
    """
    Return a paused turn with what a dead worker that resumed it noted.

    Its results are on their calls, its further steps follow. A call that may
    have run has a result that says so; an approved one that was not claimed
    waits for the next worker.
    """
    noted = _Noted(entries)
    steps = list(paused.turn.steps)
    for number, step in sorted(noted.steps.items()):
        steps[number:] = [step]
    steps = [noted.with_results(number, step) for number, step in enumerate(steps)]
    claimed, approvals = set(), []
    for approval in paused.approvals:
        if approval.status == "claimed":
            claimed.add((approval.step, approval.index))
            known = approval.index in noted.results.get(approval.step, {})
            approval = replace(approval, status="done" if known else "interrupted")
        approvals.append(approval)
    turn = interrupted(paused.turn.model_copy(update={"steps": tuple(steps)}), claimed)
    return replace(paused, turn=turn, approvals=tuple(approvals))


def interrupted(turn: Turn, claimed: Collection[tuple[int, int]]) -> Turn:
    """
    Return a turn in which each call that may have run has a result that says so.

    Of the calls that need an approval these are the ``claimed`` ones, by step and index.
    """
    steps = []
    for number, step in enumerate(turn.steps):
        unanswered = {
            index: _interrupted()
            for index, call in enumerate(step.tool_calls())
            if call.result is None and (call.approval_reason is None or (number, index) in claimed)
        }
        steps.append(step.with_results(unanswered))
    return turn.model_copy(update={"steps": tuple(steps)})


class _Noted:
    """Entries by the place of what they tell of."""

    def __init__(self, entries: Iterable[JournalEntry]) -> None:
        self.steps: dict[int, Step] = {}
        self.results: dict[int, dict[int, ToolResult]] = {}
        self.heading: Heading | None = None
        self.user: Message | None = None
        for entry in sorted(entries, key=lambda entry: (entry.step, entry.index)):
            if isinstance(entry.value, Step):
                self.steps[entry.step] = entry.value
                self.heading, self.user = entry.heading, entry.user
            elif isinstance(entry.value, ToolResult):
                self.results.setdefault(entry.step, {})[entry.index] = entry.value

    def with_results(self, number: int, step: Step) -> Step:
        return step.with_results(self.results.get(number, {}))


def _interrupted() -> ToolResult:
    return ToolResult(value=INTERRUPTED, failed=True)
