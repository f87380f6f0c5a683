"""The page of guarantees: each promise names a test, and the test is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
TEXT = (ROOT / "docs" / "guarantees.md").read_text()
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def promises(text: str) -> list[str]:
    """Return the items of the page's lists."""
    return re.findall(r"^- .*(?:\n  .*)*", text, re.MULTILINE)


@cache
def names_in(path: Path) -> set[str]:
    """Return the names of a module's test functions and methods."""
    tree = ast.parse(path.read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("promise", promises(TEXT), ids=lambda promise: promise[2:60])
def test_a_promise_names_a_test_that_is_there_or_says_that_it_is_none(promise: str) -> None:
    named = NAMED.findall(promise)
    assert bool(named) != promise.startswith("- **Not promised:**")
    for file, name in named:
        assert name.startswith("test_")
        assert name in names_in(ROOT / file)


def test_every_test_that_is_named_belongs_to_a_promise() -> None:
    assert len(promises(TEXT)) > 20
    assert sum(len(NAMED.findall(promise)) for promise in promises(TEXT)) == TEXT.count("::")
