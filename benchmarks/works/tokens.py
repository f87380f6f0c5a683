"""What stands between a token and its reader: the first one, and each further one."""

from __future__ import annotations

import statistics

from benchmarks import agents
from benchmarks.bench import Bench, children
from benchmarks.model_server import serving
from benchmarks.results import OURS, Goal, Outcome, Table

FIRST, EACH = 0.25, 0.01
"""Seconds that a fast model takes for its first token, and for each further one."""
FEW, MANY = 20, 1020
"""Tokens of a short and of a long answer."""
ANSWERS, QUICK_ANSWERS = 15, 2


def run(bench: Bench) -> Outcome:
    conversations = agents.seed(bench.database, 5, "token")
    bench.database.settle()
    rounds = QUICK_ANSWERS if bench.quick else ANSWERS
    short, long = (_heard(bench, conversations, rounds, tokens) for tokens in (FEW, MANY))
    first = {name: statistics.median(e.first for e in every) for name, every in short.items()}
    further = {
        name: (_last(long[name]) - _last(every)) / (MANY - FEW) for name, every in short.items()
    }
    table = Table(
        "Streamed tokens, of a server that answers at once",
        "s",
        {"the first": first, "each further": further},
        note=f"A fast model takes {FIRST:g} s for the first, {EACH:g} s for each further one.",
    )
    goals = [
        Goal.at_most(
            f"{what} token over the bare client, of a model's {seconds:g} s", share, 5, "%"
        )
        for what, seconds, column in (("First", FIRST, first), ("Each further", EACH, further))
        for share in [100 * (column[OURS] - column["bare client"]) / seconds]
    ]
    return Outcome([table], goals)


def _heard(
    bench: Bench, conversations: list[str], rounds: int, tokens: int
) -> dict[str, list[agents.Heard]]:
    with serving(0, tokens) as url, children([]).Pool(1) as pool:
        heard = pool.apply(agents.in_turn, (bench.database, url, conversations, rounds, False))
    return {name: [each for _, some in every for each in some] for name, every in heard.items()}


def _last(every: list[agents.Heard]) -> float:
    return statistics.median(each.last for each in every)
