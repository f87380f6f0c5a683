"""A turn with an image of 1 MB, and what it costs ten turns later."""

from __future__ import annotations

from typing import Any

from benchmarks.bench import Bench
from benchmarks.contestants.base import Contestant
from benchmarks.results import OURS, Goal, Outcome, Table

BEFORE, AFTER = 400, 10
"""Messages before the image, turns after it."""


def run(bench: Bench) -> Outcome:
    contestants = bench.taking_part("image")
    for name in ("pictured", "plain", "pictures"):
        bench.seed(contestants, name, BEFORE)
    table = Table("An image of 1 MB", "s")

    def prepare(contestant: Contestant) -> Any:
        return contestant.shape(bench.new_turn(pictured=True))

    table.columns["turn with it"] = bench.race(
        contestants, lambda each, turn: each.turn("pictures", turn), prepare
    )
    for each in contestants:
        each.append("pictured", prepare(each))
        each.append("plain", each.shape(bench.new_turn()))
    table.columns["window with it"] = bench.race(
        contestants, lambda each, _: each.window("pictured")
    )
    for each in contestants:
        for _ in range(AFTER):
            each.append("pictured", each.shape(bench.new_turn()))
            each.append("plain", each.shape(bench.new_turn()))
    bench.database.settle()
    later, without = bench.compare(
        contestants, ("pictured", "plain"), lambda each, name, _: each.window(name)
    ).values()
    table.columns["window ten turns later"], table.columns["window without one"] = later, without
    goals = [
        *Goal.ahead("Turn with an image", table.columns["turn with it"], bench.peers),
        *Goal.ahead("Window ten turns after an image", later, bench.peers),
        Goal.at_most(
            "Window ten turns after an image, of one without", later[OURS] / without[OURS], 1.1
        ),
    ]
    return Outcome([table], goals)
