"""The whole turn: all that is done around the model's call."""

from __future__ import annotations

from itertools import cycle
from typing import Any

from benchmarks.bench import Bench
from benchmarks.contestants.base import Contestant
from benchmarks.results import FLOOR, OURS, Goal, Outcome, Table

MESSAGES_IN_ALL, MOST_COPIES = 10_000, 20


def run(bench: Bench) -> Outcome:
    table = Table(
        "A whole turn: reserve, window of 10 turns, append, release",
        "s",
        note="Messages in the conversation before it. Peers reserve nothing.",
        plot="turn",
    )
    for size in bench.sizes:
        table.columns[f"{size:,}"] = _at(bench, size)
    return Outcome([table], list(_goals(bench, table)))


def _at(bench: Bench, size: int) -> dict[str, float]:
    """Take turns in several conversations, so that none grows much while it is timed."""
    contestants = bench.taking_part("turn", messages=size)
    copies = 1 if bench.quick else max(1, min(MESSAGES_IN_ALL // size, MOST_COPIES))
    names = [f"turn-{size}-{copy}" for copy in range(copies)]
    for name in names:
        bench.seed(contestants, name, size)
    bench.database.settle()
    following = {each.name: cycle(names) for each in contestants}

    def prepare(contestant: Contestant) -> Any:
        return next(following[contestant.name]), contestant.shape(bench.new_turn())

    return bench.race(contestants, lambda each, argument: each.turn(*argument), prepare)


def _goals(bench: Bench, table: Table) -> list[Goal]:
    columns = table.columns
    goals: list[Goal] = []
    if column := columns.get("1,000"):
        goals += Goal.ahead("Whole turn at 1,000 messages", column, bench.peers)
        text = "Whole turn at 1,000 messages, of the raw driver's"
        goals.append(Goal.at_most(text, column[OURS] / column[FLOOR], 2.5))
    if {"100", "100,000"} <= columns.keys():
        ratio = columns["100,000"][OURS] / columns["100"][OURS]
        goals.append(Goal.at_most("Whole turn at 100,000 messages, of that at 100", ratio, 1.1))
    return goals
