"""The whole turn: all that is done around the model's call."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import cycle
from typing import Any

from benchmarks.bench import Bench
from benchmarks.contestants.base import Contestant
from benchmarks.results import FLOOR, OURS, Column, Goal, Outcome, Table

MESSAGES_IN_ALL, MOST_COPIES = 10_000, 20


def run(bench: Bench) -> Outcome:
    turns = Table(
        "A whole turn: reserve, window of 10 turns, append, release",
        "s",
        note="Messages in the conversation before it. Peers reserve nothing.",
        plot="turn",
    )
    for size in bench.sizes:
        turns.columns[f"{size:,}"] = _at(bench, size)
    together = Table(
        "The same, at all lengths in the same rounds", "s", _together(bench), note="Without others."
    )
    return Outcome([turns, together], list(_goals(bench, turns, together)))


def _at(bench: Bench, size: int) -> Column:
    contestants = bench.taking_part("turn", messages=size)
    for name in _names(bench, size):
        bench.seed(contestants, name, size)
    bench.database.settle()
    (column,) = _race(bench, contestants, [size]).values()
    return column


def _together(bench: Bench) -> dict[str, Column]:
    alone = [each for each in bench.taking_part("turn") if each.name in (OURS, FLOOR)]
    return {f"{size:,}": column for size, column in _race(bench, alone, bench.sizes).items()}


def _names(bench: Bench, size: int) -> list[str]:
    """Return several conversations, so that none grows much while it is timed."""
    copies = 1 if bench.quick else max(1, min(MESSAGES_IN_ALL // size, MOST_COPIES))
    return [f"turn-{size}-{copy}" for copy in range(copies)]


def _race(bench: Bench, contestants: list[Contestant], sizes: Collection[int]) -> dict[int, Column]:
    following = {
        (each.name, size): cycle(_names(bench, size)) for each in contestants for size in sizes
    }

    def prepare(contestant: Contestant, size: int) -> Any:
        return next(following[contestant.name, size]), contestant.shape(bench.new_turn())

    return bench.compare(
        contestants, sizes, lambda each, _, argument: each.turn(*argument), prepare
    )


def _goals(bench: Bench, turns: Table, together: Table) -> Iterator[Goal]:
    if column := turns.columns.get("1,000"):
        yield from Goal.ahead("Whole turn at 1,000 messages", column, bench.peers)
        text = "Whole turn at 1,000 messages, of the raw driver's"
        yield Goal.at_most(text, column[OURS] / column[FLOOR], 2.5)
    columns = together.columns
    if {"100", "100,000"} <= columns.keys():
        ratio = columns["100,000"][OURS] / columns["100"][OURS]
        yield Goal.at_most("Whole turn at 100,000 messages, of that at 100", ratio, 1.1)
