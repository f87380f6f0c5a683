"""A run: its database, who takes part, how long to look, and what has been seeded."""

from __future__ import annotations

import logging
import multiprocessing
from collections.abc import Callable, Collection, Hashable, Iterator
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.context import ForkServerContext
from typing import Any, TypeVar

from benchmarks import project
from benchmarks.contestants import ALL
from benchmarks.contestants.base import Contestant
from benchmarks.databases import Database
from benchmarks.results import Column
from benchmarks.timing import QUICK, THOROUGH, Effort, Entry, race
from benchmarks.turns import MESSAGES, Turn, tags

logger = logging.getLogger("benchmarks")

C = TypeVar("C", bound=Hashable)


@dataclass
class Bench:
    """``sizes`` are messages of a conversation; ``quick`` is to see that it works."""

    database: Database
    contestants: list[Contestant]
    sizes: tuple[int, ...]
    quick: bool = False
    left: dict[str, str] = field(default_factory=dict)
    """Who or what is missing, and why."""
    _numbers: Iterator[int] = field(default_factory=lambda: iter(range(10**9)))

    @property
    def effort(self) -> Effort:
        return QUICK if self.quick else THOROUGH

    @property
    def peers(self) -> set[str]:
        """The names of the packages that we mean to be ahead of."""
        return {each.name for each in self.contestants if each.kind == "peer"}

    def taking_part(self, work: str, *, messages: int = 0, **abilities: bool) -> list[Contestant]:
        """Return who takes part in a work, at a length, and can do what it needs."""
        return [
            each
            for each in self.contestants
            if (not each.only or work in each.only)
            and messages <= each.longest
            and all(getattr(each, name) is wanted for name, wanted in abilities.items())
        ]

    def new_turn(self, **fields: Any) -> Turn:
        """Return a turn that no other one is like."""
        return Turn(f"new-{next(self._numbers)}", **fields)

    def seed(self, contestants: list[Contestant], conversation: str, messages: int) -> None:
        """
        Seed a conversation for each, and check that its window is what was seeded.

        A package that fails at that is left out of ``contestants``, and told of in ``left``.
        """
        count = messages // MESSAGES
        wanted = [
            (f"{conversation}-{number}", place)
            for number in range(max(0, count - 10), count)
            for place in range(MESSAGES)
        ]
        for each in [*contestants]:
            logger.info("seeding %s: %s, %s messages", each.name, conversation, messages)
            try:
                each.seed(conversation, count)
                if not each.only:
                    assert tags(each.window(conversation)) == wanted, each.name
            except Exception as error:  # whatever a package raises is its result
                if each.kind in ("floor", "ours"):
                    raise
                contestants.remove(each)
                failed = type(error).__name__
                self.left[each.name] = f"fails with {failed} at {messages:,} messages"

    def race(
        self,
        contestants: list[Contestant],
        run: Callable[[Contestant, Any], Any],
        prepare: Callable[[Contestant], Any] = lambda _: None,
    ) -> Column:
        """Time the same thing for each contestant."""
        (column,) = self.compare(
            contestants,
            [None],
            lambda each, _, argument: run(each, argument),
            lambda each, _: prepare(each),
        ).values()
        return column

    def compare(
        self,
        contestants: list[Contestant],
        cases: Collection[C],
        run: Callable[[Contestant, C, Any], Any],
        prepare: Callable[[Contestant, C], Any] = lambda *_: None,
    ) -> dict[C, Column]:
        """Time several cases of a thing for each contestant, all of them in the same rounds."""
        entries = {
            (each.name, case): Entry(partial(run, each, case), partial(prepare, each, case))
            for each in contestants
            for case in cases
        }
        times = race(entries, self.effort)
        return {case: {each.name: times[each.name, case] for each in contestants} for case in cases}


def opened(database: Database, wanted: list[str]) -> tuple[list[Contestant], dict[str, str]]:
    """
    Return the contestants with tables of their own, connected, and why others are not here.

    ``wanted`` are parts of names; nobody but the floors and us is left out by none.
    """
    project.configure(database)
    project.migrate()
    there: list[Contestant] = []
    left: dict[str, str] = {}
    for each in ALL:
        is_wanted = not wanted or each.kind in ("floor", "ours")
        if not (is_wanted or any(part in each.name for part in wanted)):
            continue
        if reason := each.obstacle(database):
            left[each.name] = reason
            continue
        contestant = each(database)
        contestant.create()
        contestant.open()
        there.append(contestant)
    return there, left


def children(contestants: list[Contestant]) -> ForkServerContext:
    """Return what starts processes that have imported all libraries and hold no connection."""
    context = multiprocessing.get_context("forkserver")
    libraries = {name for each in contestants for name in each.needs}
    context.set_forkserver_preload(["benchmarks.works.workers", *sorted(libraries)])
    return context
