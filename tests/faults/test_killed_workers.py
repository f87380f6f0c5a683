"""A worker killed at any point of its turn: the turn is whole or absent, and its tools are told."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import pytest

from agent_memory.exceptions import TurnFailed
from agent_memory.messages import INTERRUPTED
from agent_memory.models import Conversation, ConversationMessage, TurnJournal
from tests.faults.checker import faults_of_tables, faults_of_turns
from tests.faults.clerks import Clerk, ClerkProvider, Ledger, asking, note_in
from tests.faults.operations import ADA, lapse
from tests.faults.processes import Workers

ABSENT, STARTED, DONE, COMPLETED = "absent", "started", "done", "completed"

POINTS_OF_A_TURN = [
    ("reserve: before UPDATE agent_conversations", ABSENT),
    ("reserve: after UPDATE agent_conversations", ABSENT),
    ("load: before SELECT agent_conversation_messages", ABSENT),
    ("load: after SELECT agent_conversation_messages", ABSENT),
    ("model: asked", ABSENT),
    ("journal: before UPDATE agent_conversations", ABSENT),
    ("journal: after UPDATE agent_conversations", ABSENT),
    ("journal: before INSERT agent_turn_journal", ABSENT),
    ("journal: after INSERT agent_turn_journal", ABSENT),
    ("journal: before COMMIT", ABSENT),
    ("journal: after COMMIT", STARTED),
    (": tool started", STARTED),
    (": tool acting", STARTED),
    (": tool done", STARTED),
    ("journal: before UPDATE agent_conversations", STARTED),
    ("journal: after UPDATE agent_conversations", STARTED),
    ("journal: before INSERT agent_turn_journal", STARTED),
    ("journal: after INSERT agent_turn_journal", STARTED),
    ("journal: before COMMIT", STARTED),
    ("journal: after COMMIT", DONE),
    ("model: asked", DONE),
    ("append: before UPDATE agent_conversations", DONE),
    ("append: after UPDATE agent_conversations", DONE),
    ("append: before DELETE agent_turn_journal", DONE),
    ("append: after DELETE agent_turn_journal", DONE),
    ("append: before INSERT agent_conversation_messages", DONE),
    ("append: after INSERT agent_conversation_messages", DONE),
    ("append: before COMMIT", DONE),
    ("append: after COMMIT", COMPLETED),
]
"""The points of a turn with one tool, and what is left of it when its worker dies there."""


def outcomes(points: list[str]) -> list[str]:
    """Return what is left at each point: commits alone change it."""
    found, reached = [], iter((STARTED, DONE, COMPLETED))
    left = ABSENT
    for point in points:
        if point in ("journal: after COMMIT", "append: after COMMIT"):
            left = next(reached)
        found.append(left)
    return found


class Killing:
    """Kills one worker at each point of a turn, and looks at what is left."""

    def __init__(self, workers: Workers, ledger: Ledger, kind: str) -> None:
        self.workers, self.ledger, self.kind = workers, ledger, kind
        self.provider = ClerkProvider()
        self.clerk = Clerk(provider=self.provider, tools=[note_in(ledger)])

    def start(self, number: int, **order: Any) -> Any:
        """Begin a turn in a worker, in a conversation of its own."""
        name = f"c-{number}"
        if self.kind == "known":
            self.clerk.for_participant(ADA).prompt(asking(f"first-{number}"), conversation_id=name)
        return self.workers.start(
            "one turn",
            conversation_id=None if self.kind == "ours" else name,
            new=self.kind == "new",
            key=None if self.kind == "ours" else f"key-{number}",
            prompt=f"p-{number}",
            ledger=str(self.ledger.path),
            **order,
        )

    def points(self) -> list[str]:
        """Return the points of a turn that nobody disturbs."""
        worker = self.start(0, stop=None)
        worker.join()
        return [told["point"] for told in worker.told("point")]

    def kill_at(self, point: int, number: int) -> None:
        """Kill a worker that stands still at a point."""
        worker = self.start(number, stop=point)
        worker.until("stopped")
        worker.kill()

    def kill_behind(self, point: int, number: int) -> None:
        """Kill a worker that has just passed a point."""
        worker = self.start(number, stop=point, passing=True)
        worker.until("stopped")
        time.sleep(random.uniform(0, 0.004))
        worker.kill()

    def left(self, number: int) -> str:
        """Return what is left of a killed turn, as the tables say."""
        said = ConversationMessage.objects.filter(content=asking(f"p-{number}", steps=1))
        if said.exists():
            return COMPLETED
        entries = TurnJournal.objects.filter(conversation=f"c-{number}").count()
        return (ABSENT, STARTED, DONE)[entries]

    def look(self, number: int, left: str) -> None:
        """Look at what is left of a killed turn, once its reservation has ended."""
        prompt, conversation_id = asking(f"p-{number}", steps=1), self.find(number)
        if conversation_id is None:
            assert left == ABSENT
            return
        bound = self.clerk.continue_conversation(conversation_id, ADA)
        if self.kind != "ours":
            left = self.ask_again(number, left)
        bound.prompt(asking(f"next-{number}"))
        *history, _ = [message.text for message in self.provider.requests[-1].messages]
        first = self.kind == "known"
        expected = [asking(f"first-{number}"), answer(f"first-{number}", 0)] if first else []
        if left != ABSENT:
            expected += [prompt, "", INTERRUPTED if left == STARTED else "noted call_0_0"]
        if left == COMPLETED:
            expected.append(answer(f"p-{number}", int(first)))
        assert history == expected

    def ask_again(self, number: int, left: str) -> str:
        """Send the prompt again under its key; return what is left of it then."""
        asked = len(self.provider.requests)
        options = {"idempotency_key": f"key-{number}", "conversation_id": f"c-{number}"}
        prompt = asking(f"p-{number}", steps=1)
        if left in (STARTED, DONE):
            with pytest.raises(TurnFailed) as caught:
                self.clerk.for_participant(ADA).prompt(prompt, **options)
            assert caught.value.turn.error.code == "Interrupted"
        else:
            self.clerk.for_participant(ADA).prompt(prompt, **options)
        assert len(self.provider.requests) == asked + (2 if left == ABSENT else 0)
        return COMPLETED if left == ABSENT else left

    def find(self, number: int) -> str | None:
        if self.kind != "ours":
            return f"c-{number}"
        prompt = asking(f"p-{number}", steps=1)
        for entry in TurnJournal.objects.filter(index=-1):
            if json.loads(entry.entry)["user"][0]["text"] == prompt:
                return entry.conversation_id
        said = ConversationMessage.objects.filter(content=prompt).first()
        return None if said is None else said.conversation_id


def answer(prompt: str, history: int) -> str:
    return json.dumps({"answer": prompt, "history": history})


@pytest.mark.parametrize(
    "kind",
    ["known", *(pytest.param(kind, marks=pytest.mark.heavy) for kind in ("new", "ours"))],
)
def test_a_worker_killed_at_any_point_leaves_its_turn_whole_or_absent_and_its_tools_told(
    workers: Workers, ledger: Ledger, kind: str
) -> None:
    killing = Killing(workers, ledger, kind)
    points = killing.points()
    left = outcomes(points)
    if kind == "known":
        loads = {"load: before SELECT agent_conversations": POINTS_OF_A_TURN[2][0]}
        loads |= {"load: after SELECT agent_conversations": POINTS_OF_A_TURN[3][0]}
        named = [loads.get(point, point) for point in points]
        assert list(zip(named, left, strict=True)) == POINTS_OF_A_TURN
    assert left[-1] == COMPLETED
    for number in range(len(points)):
        killing.kill_at(number, number + 1)
    lapse()
    for number, outcome in enumerate(left):
        killing.look(number + 1, outcome)
    assert faults_of_turns([], ledger.lines(), alive=False) == []
    Conversation.objects.filter(opened_at__isnull=True).delete()
    assert faults_of_tables() == []


@pytest.mark.heavy
def test_a_worker_killed_during_a_commit_leaves_what_was_before_or_what_was_to_be(
    workers: Workers, slow_commits: None, ledger: Ledger
) -> None:
    killing = Killing(workers, ledger, "known")
    points = killing.points()
    left = outcomes(points)
    commits = [index for index, point in enumerate(points) if point.endswith("before COMMIT")]
    assert len(commits) == 3
    killed = [(point, 1 + 1000 * point + number) for point in commits for number in range(20)]
    for point, number in killed:
        killing.kill_behind(point, number)
    time.sleep(0.5)  # a server may still be at it
    lapse()
    for point, number in killed:
        found = killing.left(number)
        assert found in left[point:]  # it may have come further than this commit
        killing.look(number, found)
    assert faults_of_turns([], ledger.lines(), alive=False) == []
    assert faults_of_tables() == []
