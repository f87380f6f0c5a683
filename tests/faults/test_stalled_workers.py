"""A worker that stalls until another one has taken over: it acts no more and writes nothing."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest

from agent_memory.exceptions import ConversationBusy
from agent_memory.messages import INTERRUPTED, Turn
from tests.faults.checker import faults_of_tables, faults_of_turns
from tests.faults.clerks import Clerk, ClerkProvider, Ledger, asking
from tests.faults.operations import ADA
from tests.faults.processes import Worker, Workers

SECONDS = 0.3
"""How long a worker that gives no sign of life holds a conversation here."""

NOTED = "noted call_0_0", "noted call_0_1"


@dataclass
class Stall:
    """
    A stall at the first point of a name, or a later one.

    ``started``: how many tools its worker has started in all; ``told``: the results
    that the next turn is told; ``finished``: the steps of the turn in the worker's error.
    """

    point: str
    later: int
    started: int
    told: tuple[str, ...]
    finished: int = 1


STALLS = [
    Stall("load: before", 0, 0, ()),
    Stall("model: asked", 0, 0, ()),
    Stall("journal: after COMMIT", 0, 0, (INTERRUPTED, INTERRUPTED)),
    Stall(": tool started", 0, 1, (INTERRUPTED, INTERRUPTED)),
    Stall(": tool done", 0, 1, (INTERRUPTED, INTERRUPTED)),
    Stall("journal: after COMMIT", 1, 1, (NOTED[0], INTERRUPTED)),
    Stall("journal: after COMMIT", 2, 2, NOTED, finished=2),
    Stall("model: asked", 1, 2, NOTED, finished=2),
]


class Stalling:
    """Starts turns with two tools in workers that stand still at a point."""

    def __init__(self, workers: Workers, ledger: Ledger) -> None:
        self.workers, self.ledger = workers, ledger
        self.provider = ClerkProvider()
        self.clerk = Clerk(provider=self.provider)

    def start(self, name: str, stop: int | None) -> Worker:
        self.clerk.for_participant(ADA).prompt(asking(f"first {name}"), conversation_id=name)
        return self.workers.start(
            "one turn",
            conversation_id=name,
            new=False,
            key=None,
            prompt=name,
            calls=2,
            stop=stop,
            ledger=str(self.ledger.path),
            settings={"RESERVATION_SECONDS": SECONDS},
        )

    def points(self) -> list[str]:
        worker = self.start("whole", None)
        worker.join()
        return [told["point"] for told in worker.told("point")]


def test_a_worker_that_was_overtaken_starts_no_further_tool_and_writes_nothing(
    workers: Workers, ledger: Ledger
) -> None:
    stalling = Stalling(workers, ledger)
    points = stalling.points()
    stalled = []
    for number, stall in enumerate(STALLS):
        found = [at for at, point in enumerate(points) if point.startswith(stall.point)]
        worker = stalling.start(f"c-{number}", found[stall.later])
        worker.until("stopped")
        worker.stall()
        stalled.append(worker)
    for number, stall in enumerate(STALLS):
        next_turn = asking(f"next c-{number}")
        stalling.clerk.continue_conversation(f"c-{number}").prompt(next_turn, wait=30)
        _, _, *told, _ = (message.text for message in stalling.provider.requests[-1].messages)
        assert tuple(told[2:]) == stall.told
    for worker in stalled:
        worker.wake()
    for number, (stall, worker) in enumerate(zip(STALLS, stalled, strict=True)):
        worker.join()
        (overtaken,) = worker.told("overtaken")
        turn = Turn.model_validate(overtaken["overtaken"])
        assert len(turn.steps) == stall.finished
        begun = [line for line in ledger.lines() if line[:2] == ("begun", f"c-{number}")]
        assert len(begun) == stall.started
    assert faults_of_tables() == []
    assert faults_of_turns([], ledger.lines(), alive=False) == []


def test_a_slow_model_holds_its_conversation_for_longer_than_a_reservation(
    workers: Workers, ledger: Ledger
) -> None:
    stalling = Stalling(workers, ledger)
    slow = stalling.start("c", stalling.points().index("model: asked"))
    slow.until("stopped")
    time.sleep(2 * SECONDS)
    with pytest.raises(ConversationBusy) as caught:
        stalling.clerk.continue_conversation("c").prompt(asking("next"))
    assert 0 < caught.value.retry_after <= SECONDS
    stalling.clerk.for_participant(ADA).prompt(asking("another"), conversation_id="d")
    slow.wake()
    slow.join()
    assert slow.told("overtaken") == []
    assert faults_of_tables() == []
