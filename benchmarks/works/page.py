"""Pages of a long conversation, newest first."""

from __future__ import annotations

from typing import Any

from benchmarks.bench import Bench
from benchmarks.contestants.base import Contestant
from benchmarks.results import FLOOR, OURS, Goal, Outcome, Table

SIZE, DEEP = 25, 400


def run(bench: Bench) -> Outcome:
    size = max(bench.sizes)
    deep = max(2, min(DEEP, size // SIZE // 4))  # a page of 25 of our entries holds 50 messages
    contestants = bench.taking_part("page", messages=size, pages=True)
    bench.seed(contestants, "pages", size)
    bench.database.settle()
    table = Table(
        f"A page of {SIZE} of {size:,} messages",
        "s",
        note="An answer with its calls is one entry of ours, so 13 entries are what 25 messages are.",
    )
    cursors = {
        (each.name, number): each.cursor("pages", number, SIZE)
        for each in contestants
        for number in (1, deep)
    }

    def read(each: Contestant, number: int, _: Any) -> None:
        each.page("pages", cursors[each.name, number], SIZE)

    for number in (1, deep):
        (column,) = bench.compare(contestants, [number], read).values()
        table.columns[f"page {number}"] = column
    alone = [each for each in contestants if each.name in (OURS, FLOOR)]
    together = Table(
        "The same, both in the same rounds",
        "s",
        {f"page {n}": column for n, column in bench.compare(alone, (1, deep), read).items()},
        note="Without others.",
    )
    first, last = table.columns.values()
    ours, ours_deep = (column[OURS] for column in together.columns.values())
    goals = [
        *Goal.ahead("First page", first, bench.peers),
        *Goal.ahead(f"Page {deep}", last, bench.peers),
        Goal.at_most(f"Page {deep}, of the first", ours_deep / ours, 1.15),
    ]
    return Outcome([table, together], goals)
