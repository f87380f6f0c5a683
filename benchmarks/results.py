"""What a work gives back: tables, and the goals that they meet or miss."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

Unit = Literal["s", "B", "/s", ""]
Column = dict[str, float]
"""A value for each contestant, by name."""

FLOOR = "raw driver"
OURS = "agent_memory"


@dataclass
class Table:
    """
    Values by column and contestant; ``plot`` names the file of a picture of them.

    With a plot the columns are numbers of messages.
    """

    title: str
    unit: Unit
    columns: dict[str, Column] = field(default_factory=dict)
    note: str = ""
    plot: str = ""


@dataclass(frozen=True)
class Goal:
    """What was to be reached, what was, and whether that is enough."""

    text: str
    measured: str
    met: bool

    @classmethod
    def at_most(cls, text: str, value: float, limit: float, of: str = "times") -> Goal:
        return cls(f"{text}: at most {limit:g} {of}", f"{value:.2f} {of}", value <= limit)

    @classmethod
    def at_least(cls, text: str, value: float, limit: float, of: str = "times") -> Goal:
        return cls(f"{text}: at least {limit:g} {of}", f"{value:.2f} {of}", value >= limit)

    @classmethod
    def ahead(cls, text: str, column: Column, peers: Collection[str]) -> list[Goal]:
        """Return the goal to need less time than every peer; none without peers."""
        others = {name: value for name, value in column.items() if name in peers}
        if not others:
            return []
        best = min(others, key=lambda name: others[name])
        ratio = column[OURS] / others[best]
        return [cls(f"{text}: ahead of every peer", f"{ratio:.2f} times {best}", ratio < 1)]


@dataclass
class Outcome:
    """What a work found, and what it could not do."""

    tables: list[Table] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
