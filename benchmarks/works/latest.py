"""The conversation that a participant of many used last: one who is active, one who has left."""

from __future__ import annotations

from benchmarks.bench import Bench
from benchmarks.contestants.base import HEAVY_USER, LEFT_USER
from benchmarks.results import Goal, Outcome, Table

CONVERSATIONS, QUICK_CONVERSATIONS = 100_000, 2_000


def run(bench: Bench) -> Outcome:
    count = QUICK_CONVERSATIONS if bench.quick else CONVERSATIONS
    many = count // 10
    owners = [LEFT_USER] * many + [
        HEAVY_USER if number % 9 == 0 else 100 + number % 1000 for number in range(count - many)
    ]
    contestants = bench.taking_part("latest", finds_latest=True)
    for each in contestants:
        each.seed_conversations(owners)
    bench.database.settle()
    table = Table(f"The latest of a participant's {many:,} conversations, of {count:,}", "s")
    for name, participant in (("active", HEAVY_USER), ("left long ago", LEFT_USER)):
        table.columns[name] = bench.race(
            contestants, lambda each, _, who=participant: each.latest(who)
        )
    goals = [
        goal
        for name, column in table.columns.items()
        for goal in Goal.ahead(f"Latest conversation of a participant, {name}", column, bench.peers)
    ]
    return Outcome([table], goals)
