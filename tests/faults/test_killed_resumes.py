"""A worker killed while it resumes a turn: no call starts twice, and the turn can be gone on with."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from agent_memory import Approve
from agent_memory.exceptions import (
    ApprovalNotResumable,
    ApprovalsPending,
    ConversationBusy,
)
from agent_memory.messages import INTERRUPTED, Turn
from agent_memory.models import Conversation, ToolApproval
from agent_memory.stores.database import DatabaseConversationStore
from tests.faults.checker import faults_of_tables
from tests.faults.clerks import Clerk, ClerkProvider, Ledger, asking, note_in
from tests.faults.operations import ADA, lapse
from tests.faults.processes import Worker, Workers

APPROVED, CLAIMED, DONE, COMPLETED = "approved", "claimed", "done", "completed"

store = DatabaseConversationStore()


class Desk:
    """Paused turns, one a conversation, and a worker that comes after those that were killed."""

    def __init__(self, workers: Workers, ledger: Ledger) -> None:
        self.workers, self.ledger = workers, ledger
        self.provider = ClerkProvider()
        self.clerk = Clerk(provider=self.provider, tools=[note_in(ledger, gated=True)])

    def pause(self, name: str, *, calls: int = 1, decide: bool = True) -> str:
        """Open a conversation whose first turn waits for a person, or has been approved."""
        prompt = asking(name, steps=1, calls=calls)
        response = self.clerk.for_participant(ADA).prompt(prompt, conversation_id=name)
        assert response.status == "paused"
        if decide:
            assert store.decide(name, {"*": Approve()}) == ()
        return name

    def start(self, name: str, stop: int | None) -> Worker:
        return self.workers.start(
            "resume one", conversation_id=name, stop=stop, ledger=str(self.ledger.path)
        )

    def points(self) -> list[str]:
        """Return the points of a resume that nobody disturbs."""
        worker = self.start(self.pause("c-undisturbed"), None)
        worker.join()
        return [told["point"] for told in worker.told("point")]

    def kill_at(self, point: int) -> str:
        """Kill a worker that stands still at a point of its resume."""
        name = self.pause(f"c-{point}")
        worker = self.start(name, point)
        worker.until("stopped")
        worker.kill()
        return name

    def resume(self, name: str) -> Turn:
        return self.clerk.continue_conversation(name, ADA).resume().turn

    def begun(self) -> Counter[str]:
        """Return how often the tool of each prompt has begun."""
        return Counter(prompt for what, prompt, _ in self.ledger.lines() if what == "begun")


@pytest.fixture
def desk(workers: Workers, ledger: Ledger) -> Desk:
    return Desk(workers, ledger)


def outcomes(points: list[str]) -> list[str]:
    """Return what is left at each point: commits alone change it."""
    found, reached = [], iter((CLAIMED, DONE, COMPLETED))
    left = APPROVED
    for point in points:
        if point in ("journal: after COMMIT", "settle: after COMMIT"):
            left = next(reached)
        found.append(left)
    return found


def look(desk: Desk, name: str, left: str) -> None:
    """Look at what is left of a resume whose worker was killed, and go on with it."""
    before = desk.begun()[name]
    if left == COMPLETED:
        with pytest.raises(ApprovalNotResumable):
            desk.resume(name)
    else:
        with pytest.raises(ApprovalsPending) as caught:
            desk.clerk.continue_conversation(name, ADA).prompt(asking("too early"))
        assert caught.value.pending == ()
        turn = desk.resume(name)
        told = INTERRUPTED if left == CLAIMED else "noted call_0_0"
        assert [result.text for result in turn.tool_results()] == [told]
    assert desk.begun()[name] == before + (left == APPROVED) <= 1
    (approval,) = ToolApproval.objects.filter(message__conversation=name)
    assert approval.status == ("interrupted" if left == CLAIMED else "done")
    desk.clerk.continue_conversation(name, ADA).prompt(asking("next"))


@pytest.mark.heavy
def test_a_worker_killed_at_any_point_of_a_resume_starts_no_call_twice(desk: Desk) -> None:
    points = desk.points()
    left = outcomes(points)
    assert left[-1] == COMPLETED
    for point in (": tool started", ": tool acting", ": tool done", "model: asked"):
        assert point in points
    names = [desk.kill_at(number) for number, _ in enumerate(points)]
    lapse()
    for name, outcome in zip(names, left, strict=True):
        look(desk, name, outcome)
    assert faults_of_tables() == []


def test_a_worker_that_stalls_in_an_approved_call_is_overtaken_and_starts_nothing(
    desk: Desk,
) -> None:
    name = desk.pause("c", calls=2)
    worker = desk.start(name, desk.points().index(": tool acting"))
    worker.until("stopped")
    with pytest.raises(ConversationBusy):
        desk.resume(name)
    lapse()
    turn = desk.resume(name)
    assert [result.text for result in turn.tool_results()] == [INTERRUPTED, "noted call_0_1"]
    worker.wake()
    worker.until("overtaken")
    worker.join()
    assert desk.begun()[name] == 2
    assert faults_of_tables() == []


def test_turns_that_several_processes_resume_at_once_run_their_calls_once(desk: Desk) -> None:
    names = [desk.pause(f"c-{number}", calls=2) for number in range(12)]
    order = {"conversations": names, "ledger": str(desk.ledger.path)}
    workers = [desk.workers.start("resume many", seed=seed, **order) for seed in range(3)]
    told: list[dict[str, Any]] = []
    for worker in workers:
        worker.join()
        told += worker.told("resumed")
    assert Counter(each["resumed"] for each in told) == dict.fromkeys(names, 1)
    assert desk.begun() == dict.fromkeys(names, 2)
    assert faults_of_tables() == []


def test_a_call_that_several_processes_decide_at_once_is_decided_once(desk: Desk) -> None:
    names = [desk.pause(f"c-{number}", calls=3, decide=False) for number in range(12)]
    workers = [
        desk.workers.start("decide many", seed=seed, approve=seed % 2 == 0, conversations=names)
        for seed in range(4)
    ]
    told: list[dict[str, Any]] = []
    for worker in workers:
        worker.join()
        told += worker.told("decided")
    calls = {(name, f"call_0_{index}") for name in names for index in range(3)}
    decided = Counter((each["conversation_id"], each["decided"]) for each in told)
    assert decided == dict.fromkeys(calls, 1)
    assert not Conversation.objects.exclude(undecided_count=0).exists()
    assert not ToolApproval.objects.filter(status="pending").exists()
    assert faults_of_tables() == []
