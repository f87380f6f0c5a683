"""The results as JSON, and as Markdown that a page of the documentation can take in."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks import plots
from benchmarks.results import FLOOR, OURS, Goal, Outcome, Table, Unit

PACKAGES = (
    "django",
    "pydantic",
    "psycopg",
    "mysqlclient",
    "openai",
    "openai-agents",
    "sqlalchemy",
    "agentic-django",
    "django-ai-assistant",
    "langgraph",
    "langgraph-checkpoint-sqlite",
    "langgraph-checkpoint-postgres",
    "langchain-postgres",
    "pydantic-ai-slim",
)


@dataclass
class Report:
    """A run on one database; ``skipped`` tells why somebody or something is missing."""

    database: str
    server: str
    outcomes: Mapping[str, Outcome]
    skipped: Mapping[str, str]
    quick: bool
    cpus: int
    seconds: float

    @property
    def made_on(self) -> str:
        versions = ", ".join(f"{name} {number}" for name, number in _versions().items())
        kind = " A quick run: it shows that the benchmark works, and its numbers say nothing."
        return (
            f"{datetime.now(UTC):%Y-%m-%d}, {self.cpus} cores, {self.server}, "
            f"Python {platform.python_version()}, {versions}.{kind if self.quick else ''}"
        )

    def markdown(self, images: str) -> str:
        """Return the goals, then the tables; ``images`` is the folder of the plots."""
        goals = [goal for outcome in self.outcomes.values() for goal in outcome.goals]
        parts = [self.made_on]
        if goals:
            parts.append(_goals(goals))
        for outcome in self.outcomes.values():
            for table in outcome.tables:
                parts.append(_table(table))
                if table.plot:
                    name = self.plot_name(table)
                    parts.append(f"![{table.title}, by length]({images}/{name})")
        parts += [f"Missing: {name}, which {why}." for name, why in self.skipped.items()]
        return "\n\n".join(parts) + "\n"

    def write(self, folder: Path) -> None:
        """Write JSON, Markdown and plots into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        data = {
            "made on": self.made_on,
            "seconds": round(self.seconds),
            "skipped": dict(self.skipped),
            "works": {name: asdict(outcome) for name, outcome in self.outcomes.items()},
        }
        (folder / f"{self.database}.json").write_text(json.dumps(data, indent=1) + "\n")
        (folder / f"{self.database}.md").write_text(self.markdown("."))
        self.draw(folder)

    def publish(self, page: Path) -> None:
        """Put the tables between this database's two comments of a page, and the plots beside it."""
        begin, end = f"<!-- results: {self.database} -->", f"<!-- end: {self.database} -->"
        text = page.read_text()
        found = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        if not found.search(text):
            raise LookupError(f"{page.name} has no {begin} and {end}.")
        filled = f"{begin}\n\n{self.markdown('images')}\n{end}"
        page.write_text(found.sub(lambda _: filled, text))
        self.draw(page.parent / "images")

    def draw(self, folder: Path) -> None:
        """Draw each table that has a plot."""
        folder.mkdir(parents=True, exist_ok=True)
        for outcome in self.outcomes.values():
            for table in outcome.tables:
                if table.plot:
                    (folder / self.plot_name(table)).write_text(plots.draw(table))

    def plot_name(self, table: Table) -> str:
        return f"performance-{self.database}-{table.plot}.svg"


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _goals(goals: list[Goal]) -> str:
    lines = ["| Goal | Measured | |", "|---|---|---|"]
    lines += [
        f"| {goal.text} | {goal.measured} | {'met' if goal.met else '**missed**'} |"
        for goal in goals
    ]
    return "\n".join(lines)


def _table(table: Table) -> str:
    names = list(dict.fromkeys(name for column in table.columns.values() for name in column))
    first = next(iter(table.columns.values()))
    names.sort(key=lambda name: first.get(name, float("inf")), reverse=table.unit == "/s")
    lines = [f"**{table.title}.** {table.note}".rstrip(), ""]
    lines += ["| | " + " | ".join(table.columns) + " |", "|---|" + "---:|" * len(table.columns)]
    for name in names:
        cells = [_cell(column, name, table.unit) for column in table.columns.values()]
        shown = f"**{name}**" if name.startswith(OURS) else name
        lines.append(f"| {shown} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(column: dict[str, float], name: str, unit: Unit) -> str:
    if name not in column:
        return "-"
    told = quantity(column[name], unit)
    floor = column.get(FLOOR)
    return f"{told} ({column[name] / floor:.2f})" if floor and unit else told


def quantity(value: float, unit: Unit) -> str:
    """Return a value with its unit, in three figures or so."""
    if unit == "s":
        if value >= 1:
            return f"{value:.2f} s"
        return f"{value * 1e3:.2f} ms" if value >= 1e-3 else f"{value * 1e6:.0f} µs"
    if unit == "B":
        return f"{value / 1e6:.2f} MB"
    return f"{value:,.0f}{unit}"
