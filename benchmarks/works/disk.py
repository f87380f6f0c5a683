"""Bytes on disk."""

from __future__ import annotations

from benchmarks.bench import Bench
from benchmarks.contestants.base import Contestant
from benchmarks.results import FLOOR, OURS, Goal, Outcome, Table
from benchmarks.turns import Turn

TURNS, QUICK_TURNS = 1_000, 50


def run(bench: Bench) -> Outcome:
    contestants = bench.taking_part("disk")
    sizes = {each.name: _per_thousand_turns(bench, each) for each in contestants}
    fewer = [each.name for each in contestants if each.disk_turns < TURNS]
    note = f"Of {', '.join(fewer)} 100 turns were stored, times ten." if fewer else ""
    table = Table("Bytes on disk of 1,000 turns", "B", {"1,000 turns": sizes}, note=note)
    ratio = sizes[OURS] / sizes[FLOOR]
    return Outcome([table], [Goal.at_most("Disk, of the raw driver's", ratio, 1.25)])


def _per_thousand_turns(bench: Bench, contestant: Contestant) -> float:
    """Append one turn after another, as they come, while nobody else writes."""
    count = QUICK_TURNS if bench.quick else min(TURNS, contestant.disk_turns)
    before = bench.database.size()
    contestant.seed("disk", 1)
    for number in range(1, count):
        contestant.append("disk", contestant.shape(Turn(f"disk-{number}")))
    return (bench.database.size() - before) * 1000 / count
