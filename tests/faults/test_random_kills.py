"""Workers killed at random moments, while others go on: whole turns, told tools, no two starts."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from django.core.management import call_command

from agent_memory.models import Conversation, ConversationMessage
from tests.faults.checker import faults_of_tables, faults_of_turns, pairs
from tests.faults.clerks import Clerk, ClerkProvider, Ledger, asking
from tests.faults.databases import until
from tests.faults.operations import ADA
from tests.faults.processes import Worker, Workers
from tests.faults.test_stress import acknowledged

CONVERSATIONS = [*(f"c-{number}" for number in range(6)), None, None]
SECONDS = 0.3
"""How long a dead worker holds a conversation here."""


class Crowd:
    """Six workers on a few conversations; each that is killed is replaced."""

    def __init__(self, workers: Workers, ledger: Ledger, seed: int) -> None:
        self.workers, self.ledger, self.random = workers, ledger, random.Random(seed)
        self.all: list[Worker] = []
        self.alive = [self.start([]) for _ in range(6)]

    def start(self, unfinished: list[dict[str, Any]]) -> Worker:
        number = len(self.all)
        order = {"name": f"w{number}", "seed": self.random.random(), "unfinished": unfinished}
        worker = self.workers.start(
            "talk",
            count=10_000,
            conversations=CONVERSATIONS,
            ledger=str(self.ledger.path),
            settings={"RESERVATION_SECONDS": SECONDS},
            **order,
        )
        self.all.append(worker)
        return worker

    def kill(self) -> Worker:
        """Kill a worker at a random moment, mostly soon after its model was asked."""
        seen = {worker: len(worker.told("asked")) for worker in self.alive}
        asked: list[Worker] = []

        def is_asked() -> list[Worker]:
            asked[:] = (each for each in self.alive if len(each.told("asked")) > seen[each])
            return asked

        if self.random.random() < 0.8:
            until(is_asked)
        worker = self.random.choice(asked or self.alive)
        time.sleep(self.random.uniform(0, 0.02))
        worker.kill()
        self.alive.remove(worker)
        return worker

    def replace(self) -> None:
        """Kill a worker, and have another one ask again what it left unfinished."""
        killed = self.kill()
        begun = [told["begun"] for told in killed.told("begun")][-1:]
        ended = {
            told[what]
            for what in ("acknowledged", "failed", "overtaken")
            for told in killed.told(what)
        }
        self.alive.append(self.start([each for each in begun if each["prompt"] not in ended]))

    def end(self) -> None:
        while self.alive:
            self.kill()


def leave_nothing(ledger: Ledger) -> None:
    """Have each conversation go on once its reservation has ended, and the rest swept."""
    clerk = Clerk(provider=ClerkProvider())
    for name in filter(None, CONVERSATIONS):
        clerk.for_participant(ADA).prompt(asking(f"last-{name}"), conversation_id=name, wait=30)
    until(lambda: not Conversation.objects.filter(reserved_until__gt=time.time() * 1000))
    call_command("agent_memory_reservations", "--sweep", verbosity=0)


@pytest.mark.heavy
def test_two_hundred_kills_at_random_moments_break_nothing(
    workers: Workers, ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    crowd = Crowd(workers, ledger, seed=1)
    for _ in range(200):
        crowd.replace()
    crowd.end()
    leave_nothing(ledger)
    answers = acknowledged(crowd.all)
    assert len(answers) > 20
    assert ConversationMessage.objects.filter(error_code="Interrupted").count() > 20
    # An expired reservation of a turn without tools stays until the next turn takes it over.
    Conversation.objects.filter(journalled=False, opened_at__isnull=False).update(
        reservation="", reserved_since=0, reserved_until=0, reserved_key=""
    )
    assert faults_of_tables() == []
    assert faults_of_turns(answers, ledger.lines(), alive=False) == []
    assert len({pair.said.idempotency_key for pair in pairs()}) == len(pairs()) - 5
