"""Processes of the example project, each on a database file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

Done = subprocess.CompletedProcess[str]


def environment(database: Path, **more: str) -> dict[str, str]:
    """Return the variables of a process that nobody has told of a model."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OPENAI_", "AGENT_", "DJANGO_"))
    }
    return {**inherited, "EXAMPLE_DATABASE": str(database), **more}


def python(database: Path, *arguments: str, **more: str) -> Done:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment(database, **more),
        capture_output=True,
        text=True,
        check=False,
    )


def manage(database: Path, *command: str, **more: str) -> Done:
    return python(database, "manage.py", *command, **more)
