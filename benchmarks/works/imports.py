"""What the app adds to the start of a process."""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks.bench import Bench
from benchmarks.results import FLOOR, OURS, Goal, Outcome, Table
from benchmarks.timing import QUICK, Effort, Entry, race

PROJECT = """
import sys
import django
from django.conf import settings
settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", *sys.argv[1:]],
)
django.setup()
from pydantic import BaseModel, Field, TypeAdapter
"""
NO_OPENAI = 'assert "openai" not in sys.modules, "openai was imported"'
EVERYTHING = "agent_memory, all its public names"


def run(bench: Bench) -> Outcome:
    # In a process that may keep what it compiles, as a deployed one may.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}

    def start(source: str, *apps: str) -> None:
        subprocess.run([sys.executable, "-c", source, *apps], check=True, env=environment)

    ours, everything = (
        "\n".join((PROJECT, imported, NO_OPENAI))
        for imported in ("import agent_memory", "from agent_memory import *")
    )
    times = race(
        {
            "python": Entry(lambda _: start("pass")),
            FLOOR: Entry(lambda _: start(PROJECT)),
            OURS: Entry(lambda _: start(ours, "agent_memory")),
            EVERYTHING: Entry(lambda _: start(everything, "agent_memory")),
        },
        QUICK if bench.quick else Effort(rounds=15, seconds=60),
    )
    begun = times.pop("python")
    column = {
        "django and pydantic": times[FLOOR] - begun,
        OURS: times[OURS] - begun,
        EVERYTHING: times[EVERYTHING] - begun,
    }
    title = "Starting a process: Django set up, pydantic, and the app"
    ratio = column[OURS] / column["django and pydantic"]
    goals = [
        Goal.at_most("Import, of Django and pydantic", ratio, 1.2),
        Goal("Import: openai is not imported", "it is not", True),
    ]
    note = "Less the start of Python itself."
    return Outcome([Table(title, "s", {"import": column}, note=note)], goals)
