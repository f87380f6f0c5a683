"""Many streamed turns at once in one event loop, while a model takes its time."""

from __future__ import annotations

import statistics
import threading
import time

from benchmarks import agents
from benchmarks.bench import Bench, children
from benchmarks.databases import Database
from benchmarks.model_server import serving
from benchmarks.results import OURS, Goal, Outcome, Table

STREAMS, SECONDS, TOKENS, ROUNDS = 200, 1.0, 20, 5
QUICK_STREAMS, QUICK_SECONDS = 8, 0.1


def run(bench: Bench) -> Outcome:
    count, seconds = (QUICK_STREAMS, QUICK_SECONDS) if bench.quick else (STREAMS, SECONDS)
    conversations = agents.seed(bench.database, count, "stream")
    bench.database.settle()
    rounds = 1 if bench.quick else ROUNDS
    with (
        serving(seconds, TOKENS) as url,
        children([]).Pool(1) as pool,
        Connections(bench.database) as connections,
    ):
        arguments = bench.database, url, conversations, rounds, True
        heard = pool.apply(agents.in_turn, arguments)
    rates = {
        name: count / statistics.median(taken for taken, _ in every)
        for name, every in heard.items()
    }
    table = Table(
        f"{count} concurrent astream() turns, a model that answers in {seconds:g} s", "/s"
    )
    table.columns["turns a second"] = rates
    if bench.database.vendor != "postgresql":
        return Outcome([table])
    ratio = rates[OURS] / rates["bare client"]
    goals = [
        Goal.at_least("Concurrent streams, of the bare client's", ratio, 0.8),
        Goal.at_most(
            "Connections during them, of the pool's", connections.most, agents.POOL, "open"
        ),
    ]
    return Outcome([table], goals)


class Connections:
    """Counts, during its block, how many connections a server has to others than itself."""

    def __init__(self, database: Database) -> None:
        self.database, self.most, self.before = database, 0, 0
        self._ended = threading.Event()

    def __enter__(self) -> Connections:
        if self.database.vendor == "postgresql":
            self.before = self._count()
            threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()

    def _watch(self) -> None:
        while not self._ended.is_set():
            self.most = max(self.most, self._count() - self.before)
            time.sleep(0.05)

    def _count(self) -> int:
        return int(
            self.database.one(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
        )
