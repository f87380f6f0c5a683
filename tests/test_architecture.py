"""What import-linter cannot say: the agent half touches no database, not even Django's."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import agent_memory

PACKAGE = Path(agent_memory.__file__).parent
AGENT_HALF = (
    "agents",
    "approvals",
    "calls",
    "flow",
    "gates",
    "generation",
    "history",
    "recalled",
    "results",
    "signatures",
    "streams",
    "titles",
    "tools",
)


def imported(path: Path) -> set[str]:
    """Return the modules that a file imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("module", AGENT_HALF)
def test_the_agent_half_knows_no_database(module):
    assert not {
        name
        for name in imported(PACKAGE / f"{module}.py")
        if name == "django.db" or name.startswith("django.db.")
    }


def test_an_import_of_the_database_would_be_seen(tmp_path):
    (tmp_path / "guilty.py").write_text("def f():\n    from django import db\n")
    assert "django.db" in imported(tmp_path / "guilty.py")


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.stem)
def test_no_room_is_a_lumber_room(path):
    assert path.stem not in ("utils", "helpers", "services", "common", "misc")
