"""Eight processes at once, on one conversation and on fifty: nothing is lost, doubled or mixed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.checker import Acknowledged, faults_of_tables, faults_of_turns, pairs
from tests.faults.clerks import Ledger
from tests.faults.processes import Worker, Workers

FACTS = ("conversation_id", "prompt", "text", "user_message_id", "assistant_message_id")


def acknowledged(workers: list[Worker]) -> list[Acknowledged]:
    """Return what all workers were told."""
    return [
        Acknowledged(**{name: told[name] for name in FACTS})
        for worker in workers
        for told in worker.told("acknowledged")
    ]


def hold(workers: Workers, ledger: Ledger, conversations: list[Any], count: int) -> list[Worker]:
    """Have eight workers hold turns; the first four are two who click twice."""
    begun = []
    for number in range(8):
        who = number // 2 if number < 4 else number
        order = {"name": f"w{who}", "seed": who, "count": count, "conversations": conversations}
        begun.append(workers.start("talk", ledger=str(ledger.path), **order))
    for worker in begun:
        worker.join()
    return begun


@pytest.mark.heavy
@pytest.mark.parametrize("shared", ["usual", "stricter"], indirect=True)
@pytest.mark.parametrize(("conversations", "count"), [(1, 20), (50, 60)])
def test_eight_processes_at_once_lose_double_and_mix_nothing(
    shared: None, workers: Workers, ledger: Ledger, conversations: int, count: int
) -> None:
    names = [f"c-{number}" for number in range(conversations)]
    answers = acknowledged(hold(workers, ledger, names, count))
    assert len(answers) == 8 * count
    assert len(set(answers)) == 6 * count == len(pairs())
    assert faults_of_tables() == []
    assert faults_of_turns(answers, ledger.lines(), alive=True) == []


def test_a_few_processes_at_once_lose_double_and_mix_nothing(
    workers: Workers, ledger: Ledger
) -> None:
    answers = acknowledged(hold(workers, ledger, ["c-0", "c-1", "c-2", None], 3))
    assert len(set(answers)) == 6 * 3 == len(pairs())
    assert faults_of_tables() == []
    assert faults_of_turns(answers, ledger.lines(), alive=True) == []
