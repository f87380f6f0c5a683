"""Timing that is fair on a noisy machine: all contestants in each round, in random order."""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)
Prepare = Callable[[], Any]
Run = Callable[[Any], Any]


class Entry(NamedTuple):
    """What is timed, and what makes its argument outside the clock."""

    run: Run
    prepare: Prepare = lambda: None


@dataclass(frozen=True)
class Effort:
    """How long to look: ``rounds`` for who is quick, ``seconds`` in all for who is not."""

    rounds: int
    seconds: float
    warmup: int = 3


THOROUGH = Effort(rounds=300, seconds=3)
QUICK = Effort(rounds=4, seconds=0.2, warmup=1)


def race(entries: Mapping[K, Entry], effort: Effort) -> dict[K, float]:
    """
    Return the median seconds of each entry.

    One that has used its time sits out the further rounds, but has run at least
    once; its first, slow run counts then.
    """
    taken: dict[K, list[float]] = {name: [] for name in entries}
    order = list(entries)
    gc.collect()
    gc.freeze()  # what the others hold is not looked through on anybody's clock
    for number in range(effort.warmup + effort.rounds):
        random.shuffle(order)
        for name in order:
            times = taken[name]
            if sum(times) > effort.seconds:
                continue
            if number == effort.warmup:
                times.clear()
            entry = entries[name]
            argument = entry.prepare()
            begun = time.perf_counter()
            entry.run(argument)
            times.append(time.perf_counter() - begun)
    gc.unfreeze()
    return {name: statistics.median(times) for name, times in taken.items()}
