"""Pages of a long conversation, newest first."""

from __future__ import annotations

from benchmarks.bench import Bench
from benchmarks.results import OURS, Goal, Outcome, Table

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
    for number in (1, deep):
        cursors = {each.name: each.cursor("pages", number, SIZE) for each in contestants}
        table.columns[f"page {number}"] = bench.race(
            contestants, lambda each, _, at=cursors: each.page("pages", at[each.name], SIZE)
        )
    first, last = table.columns.values()
    goals = [
        *Goal.ahead("First page", first, bench.peers),
        *Goal.ahead(f"Page {deep}", last, bench.peers),
        Goal.at_most(f"Page {deep}, of the first", last[OURS] / first[OURS], 1.15),
    ]
    return Outcome([table], goals)
