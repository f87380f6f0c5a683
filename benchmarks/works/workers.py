"""Eight processes at once, each in a conversation of its own, then all in one."""

from __future__ import annotations

import random
import statistics
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.pool import Pool
from multiprocessing.synchronize import Barrier
from typing import Any

from benchmarks.bench import Bench, children
from benchmarks.contestants.base import Contestant
from benchmarks.databases import Database
from benchmarks.results import OURS, Goal, Outcome, Table
from benchmarks.timing import Entry, race
from benchmarks.turns import MESSAGES, Turn, tags

WORKERS, TURNS, ROUNDS = 8, 25, 5
QUICK_WORKERS, QUICK_TURNS, QUICK_ROUNDS = 2, 3, 1


@dataclass
class Shift:
    """What a worker was told: the tags of the turns that were stored, and what others got."""

    stored: list[str] = field(default_factory=list)
    refused: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    begun: float = 0
    ended: float = 0


@dataclass
class Together:
    """What several workers did, and what then stood there."""

    per_second: float
    refused: int
    errors: Counter[str]
    lost: int
    mixed: int

    @property
    def is_correct(self) -> bool:
        return not (self.lost or self.mixed or self.errors)


def run(bench: Bench) -> Outcome:
    contestants = bench.taking_part("workers")
    count = QUICK_WORKERS if bench.quick else WORKERS
    context = children(contestants)
    barrier = context.Barrier(count)
    apart: dict[str, list[Together]] = {each.name: [] for each in contestants}
    together: dict[str, list[Together]] = {each.name: [] for each in contestants}
    with context.Pool(count, _join, (barrier, bench.database)) as pool:
        for number in range(QUICK_ROUNDS if bench.quick else ROUNDS):
            for each in random.sample(contestants, len(contestants)):
                own = [f"own-{number}-{worker}" for worker in range(count)]
                apart[each.name].append(_shift(bench, pool, each, own))
                together[each.name].append(_shift(bench, pool, each, [f"all-{number}"] * count))
    tables = [
        _rates(f"{count} workers, a conversation each: turns a second", apart),
        _rates(f"{count} workers, one conversation: turns a second", together),
        _faults("What became of the turns of one conversation", together),
    ]
    return Outcome(tables, list(_goals(bench, contestants, apart, together)))


def _shift(bench: Bench, pool: Pool, contestant: Contestant, conversations: list[str]) -> Together:
    """Have a worker for each of these conversations take turns there; then look."""
    for conversation in {*conversations}:
        contestant.seed(conversation, 1)
    turns = QUICK_TURNS if bench.quick else TURNS
    tasks = [
        (type(contestant), conversation, number, turns)
        for number, conversation in enumerate(conversations)
    ]
    shifts = pool.starmap(_work, tasks, chunksize=1)
    seconds = max(each.ended for each in shifts) - min(each.begun for each in shifts)
    lost = mixed = 0
    for conversation in {*conversations}:
        found = tags(contestant.history(conversation))
        stored = [
            tag
            for shift, where in zip(shifts, conversations, strict=True)
            if where == conversation
            for tag in shift.stored
        ]
        now_lost, now_mixed = compare(found, stored)
        lost, mixed = lost + now_lost, mixed + now_mixed
    return Together(
        sum(len(each.stored) for each in shifts) / seconds,
        sum(each.refused for each in shifts),
        sum((each.errors for each in shifts), Counter()),
        lost,
        mixed,
    )


def compare(found: list[tuple[str, int]], stored: list[str]) -> tuple[int, int]:
    """Return how many turns that were acknowledged are not whole there, or not in one piece."""
    places = {message: place for place, message in enumerate(found)}
    lost = mixed = 0
    for tag in stored:
        there = [places.get((tag, number)) for number in range(MESSAGES)]
        if None in there:
            lost += 1
        elif there != list(range(there[0] or 0, (there[0] or 0) + MESSAGES)):
            mixed += 1
    return lost, mixed


# In the processes of the workers.

_here: dict[str, Any] = {}


def _join(barrier: Barrier, database: Database) -> None:
    _here.update(barrier=barrier, database=database)


def _work(kind: type[Contestant], conversation: str, worker: int, count: int) -> Shift:
    """Take turns; each process takes one task, since all wait for each other."""
    contestant = kind(_here["database"])
    contestant.open()
    contestant.window(conversation)
    turns = [Turn(f"worker{worker}-{conversation}-{number}") for number in range(count)]
    shaped = [(turn.tag, contestant.shape(turn)) for turn in turns]
    shift = Shift()
    _here["barrier"].wait(120)
    shift.begun = time.monotonic()
    for tag, messages in shaped:
        try:
            contestant.turn(conversation, messages)
        except Exception as error:  # whatever a library raises is its result
            if type(error).__name__ == "ConversationBusy":
                shift.refused += 1
            else:
                shift.errors[type(error).__name__] += 1
        else:
            shift.stored.append(tag)
    shift.ended = time.monotonic()
    contestant.close()
    return shift


# What it comes to.


def _rates(title: str, shifts: dict[str, list[Together]]) -> Table:
    rates = {
        name: statistics.median(each.per_second for each in rounds)
        for name, rounds in shifts.items()
    }
    return Table(title, "/s", {"turns a second": rates})


def _faults(title: str, shifts: dict[str, list[Together]]) -> Table:
    columns = {
        "lost": {name: sum(each.lost for each in rounds) for name, rounds in shifts.items()},
        "interleaved": {
            name: sum(each.mixed for each in rounds) for name, rounds in shifts.items()
        },
        "errors": {
            name: sum(each.errors.total() for each in rounds) for name, rounds in shifts.items()
        },
        "refused": {name: sum(each.refused for each in rounds) for name, rounds in shifts.items()},
    }
    return Table(title, "", {name: dict(column) for name, column in columns.items()})


def _goals(
    bench: Bench,
    contestants: list[Contestant],
    apart: dict[str, list[Together]],
    together: dict[str, list[Together]],
) -> list[Goal]:
    rates = _rates("", apart).columns["turns a second"]
    correct = {
        name: rates[name]
        for name in rates.keys() & bench.peers
        if all(each.is_correct for each in together[name] + apart[name])
    }
    goals = []
    if correct:
        best = max(correct, key=lambda name: correct[name])
        goals.append(
            Goal.at_least(
                "Turns a second of workers apart, of the best correct peer's",
                rates[OURS] / correct[best],
                0.95,
                f"times {best}",
            )
        )
    ours = together[OURS]
    faults = sum(each.lost + each.mixed + each.errors.total() for each in ours)
    goals.append(
        Goal(
            "Workers in one conversation: nothing lost, interleaved or broken",
            f"{faults} faults, {sum(each.refused for each in ours)} refused",
            not faults,
        )
    )
    store = next(each for each in contestants if each.name == OURS)
    return [*goals, _refusal(bench, store)]


def _refusal(bench: Bench, contestant: Any) -> Goal:
    """Compare how long a refusal takes with a window."""
    from agent_memory.exceptions import ConversationBusy

    bench.seed([contestant], "busy", 100)
    held = contestant.store.reserve("busy")

    def refused(_: Any) -> None:
        try:
            contestant.store.reserve("busy")
        except ConversationBusy:
            return
        raise AssertionError("It was not refused.")

    times = race(
        {"refusal": Entry(refused), "window": Entry(lambda _: contestant.window("busy"))},
        bench.effort,
    )
    contestant.store.release(held)
    ratio = times["refusal"] / times["window"]
    return Goal.at_most("A refusal, of a window's time", ratio, 2)
