"""The window that a model is sent, as messages of each library's own."""

from __future__ import annotations

from benchmarks.bench import Bench
from benchmarks.results import Goal, Outcome, Table

WINDOWS = {"10 turns": 10, "100 messages": 25}


def run(bench: Bench) -> Outcome:
    tables = {
        name: Table(f"The last {name}, as message values", "s", plot=f"window-{count}")
        for name, count in WINDOWS.items()
    }
    for size in bench.sizes:
        contestants = bench.taking_part("window", messages=size)
        bench.seed(contestants, f"window-{size}", size)
        bench.database.settle()
        for name, count in WINDOWS.items():
            tables[name].columns[f"{size:,}"] = bench.race(
                contestants,
                lambda each, _, count=count, size=size: each.window(f"window-{size}", count),
            )
    goals = [
        goal
        for name, table in tables.items()
        for size, column in table.columns.items()
        for goal in Goal.ahead(f"Window of {name} at {size} messages", column, bench.peers)
    ]
    return Outcome([*tables.values()], goals)
