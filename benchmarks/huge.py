"""The same queries among millions of messages; PostgreSQL alone, seeded by ``COPY``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from benchmarks.bench import Bench, logger
from benchmarks.contestants.base import HEAVY_USER
from benchmarks.contestants.ours import OurStore, seeded, seeded_turn
from benchmarks.results import Goal, Outcome, Table
from benchmarks.timing import Entry, race
from benchmarks.turns import Turn

CONVERSATIONS, TURNS = 1_000_000, 5
"""A turn of ours has two messages, so these are ten million."""
FEW = 10_000
LONG = 100_000
BATCH = 2_000
VARYING = ("conversation_id", "position", "turn_id", "participant_key")


def run(bench: Bench, conversations: int) -> Outcome:
    if bench.database.vendor != "postgresql":
        raise SystemExit("--huge needs --database postgresql.")
    (store,) = (each for each in bench.contestants if type(each) is OurStore)
    store.seed("long", (LONG if not bench.quick else 400) // 4)
    store.seed("turns", 25)
    works = _works(bench, store)
    times, plans = {}, {}
    few = min(FEW, conversations // 2)
    for name, first, last in (("few", 0, few), ("all", few, conversations)):
        logger.info("copying conversations %s to %s", first, last)
        _copy(bench, first, last)
        bench.database.settle()
        entries = {what: Entry(work) for what, work in works.items()}
        times[name] = race(entries, bench.effort)
        plans[name] = {what: _plan(work) for what, work in works.items()}
    table = Table(
        f"Among {conversations * TURNS * 2:,} messages in {conversations:,} conversations", "s"
    )
    for name, count in (("few", few), ("all", conversations)):
        table.columns[f"{count:,} conversations"] = times[name]
    goals = [
        Goal.at_most(f"{what} among them, of that among {few:,}", seconds / times["few"][what], 1.5)
        for what, seconds in times["all"].items()
    ]
    goals += [
        Goal(
            f"{what} keeps its plan",
            "the same" if plan == plans["few"][what] else f"{plans['few'][what]}, then {plan}",
            plan == plans["few"][what],
        )
        for what, plan in plans["all"].items()
    ]
    return Outcome([table], goals)


def _works(bench: Bench, store: Any) -> dict[str, Callable[[Any], Any]]:
    deep = store.cursor("long", 4 if bench.quick else 400)
    from agent_memory import Participant

    heavy = Participant("auth.user", str(HEAVY_USER))
    return {
        "whole turn": lambda _: store.turn("turns", store.shape(bench.new_turn())),
        "window": lambda _: store.window("long"),
        "first page": lambda _: store.page("long", None),
        "deep page": lambda _: store.page("long", deep),
        "latest conversation": lambda _: store.latest(HEAVY_USER),
        "list of conversations": lambda _: store.store.list_conversations(heavy, per_page=25),
    }


def _copy(bench: Bench, first: int, last: int) -> None:
    """Write the rows of conversations by number; a hundredth of them are of one participant."""
    from agent_memory.models import Conversation, ConversationMessage

    store = OurStore(bench.database)
    store.open()
    heads, messages = [], []
    for number in range(16):
        head, heading = seeded("many-0", 1, TURNS)
        turn = Turn(f"many-{number}")
        heads.append(head)
        messages.append(seeded_turn(heading, store.shape(turn), turn))
    head = heads[0]
    rest = [name for name in head if name not in ("id", "participant_key")]
    tail = _line(head[name] for name in rest)
    names = ["id", "participant_key", *rest]
    lines = (f"many-{n}\t{_owner(n)}\t{tail}" for n in range(first, last))
    with bench.database.connect() as connection:
        _write(connection, Conversation._meta.db_table, names, lines)
        rest = [name for name in messages[0][0] if name not in VARYING]
        tails = [[_line(row[name] for name in rest) for row in pair] for pair in messages]
        lines = (
            f"many-{n}\t{2 * turn + place}\t{n}-{turn}\t{'' if place else _owner(n)}\t"
            f"{tails[(n + turn) % 16][place]}"
            for n in range(first, last)
            for turn in range(TURNS)
            for place in (0, 1)
        )
        _write(connection, ConversationMessage._meta.db_table, [*VARYING, *rest], lines)


def _owner(number: int) -> int:
    return HEAVY_USER if number % 100 == 0 else 1000 + number % 100_000


def _line(values: Any) -> str:
    """Return values in the text format of ``COPY``."""
    escaped = (
        r"\N" if value is None else str(value).replace("\\", r"\\").replace("\n", r"\n")
        for value in values
    )
    return "\t".join(escaped) + "\n"


def _write(connection: Any, table: str, names: list[str], lines: Iterator[str]) -> None:
    with connection.cursor().copy(f"COPY {table} ({', '.join(names)}) FROM STDIN") as copy:
        while some := "".join(islice(lines, BATCH)):
            copy.write(some)


def _plan(work: Callable[[Any], Any]) -> str:
    """Return the kinds of scan, with their indexes, of the statements that work makes."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as captured:
        work(None)
    scans = []
    for query in captured.captured_queries:
        if query["sql"].startswith(("SELECT", "UPDATE", "(SELECT")):
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN (FORMAT JSON) {query['sql']}")
                ((found,),) = cursor.fetchall()
            found = json.loads(found) if isinstance(found, str) else found
            scans += _scans(found[0]["Plan"])
    return ", ".join(scans)


def _scans(node: dict[str, Any]) -> list[str]:
    own = [f"{node['Node Type']} {node.get('Index Name', '')}".strip()]
    below = [scan for child in node.get("Plans", ()) for scan in _scans(child)]
    return [each for each in own if "Scan" in each] + below
