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


def orders(ledger: Ledger, conversations: list[Any], count: int) -> list[dict[str, Any]]:
    """Return what eight workers are to do; the first four are two who click twice."""
    return [
        {
            "name": f"w{who}",
            "seed": who,
            "count": count,
            "conversations": conversations,
            "ledger": str(ledger.path),
        }
        for who in (0, 0, 1, 1, 4, 5, 6, 7)
    ]


def assert_all_is_well(begun: list[Worker], ledger: Ledger, count: int) -> None:
    """Let workers end, and look at what they were told, did and stored."""
    for worker in begun:
        worker.join()
    answers = acknowledged(begun)
    assert len(answers) == 8 * count
    assert len(set(answers)) == 6 * count == len(pairs())
    assert faults_of_tables() == []
    assert faults_of_turns(answers, ledger.lines(), alive=True) == []


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("shared", "conversations", "count"),
    [("usual", 1, 20), ("usual", 50, 60), ("stricter", 1, 20)],
    indirect=["shared"],
)
def test_eight_processes_at_once_lose_double_and_mix_nothing(
    shared: None, workers: Workers, ledger: Ledger, conversations: int, count: int
) -> None:
    names = [f"c-{number}" for number in range(conversations)]
    begun = workers.start_alone("talk", orders(ledger, names, count))
    assert_all_is_well(begun, ledger, count)


def test_eight_forks_at_once_lose_double_and_mix_nothing(workers: Workers, ledger: Ledger) -> None:
    names = ["c-0", "c-1", "c-2", None]
    begun = [workers.start("talk", **order) for order in orders(ledger, names, 3)]
    assert_all_is_well(begun, ledger, 3)
