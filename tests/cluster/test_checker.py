"""The checker of clusters finds what it is there for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.checker import faults

Lines = list[dict[str, Any]]


def turn(number: int, **changes: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "key": f"k{number}",
        "text": f"after k{number - 1}" if number else "first",
    }
    facts |= {"conversation": "c", "ids": [f"{2 * number}", f"{2 * number + 1}"]}
    return {**facts, "position": 2 * number, "status": "completed", **changes}


def told(number: int, **changes: Any) -> dict[str, Any]:
    answer = turn(number, **changes)
    return {name: answer[name] for name in ("key", "text", "conversation", "ids")}


def test_turns_as_they_were_told_are_well() -> None:
    failed = turn(2, status="failed", text="")
    lines = [told(0), told(1), {"tool": "k1"}, {"failed": "k2", "conversation": "c"}, told(3)]
    elsewhere = turn(9, conversation="of nobody that told")
    assert faults([turn(0), turn(1), failed, turn(3), elsewhere], lines) == []


def test_a_turn_that_was_appended_late_may_stand_behind_those_that_went_on() -> None:
    late = turn(2, key="late", text="after k0")
    lines = [told(0), told(1), {"fault": "TurnNotSaved", "key": "late"}]
    lines += [told(2, key="late", text="after k0")]
    assert faults([turn(0), turn(1), late], lines) == []
    assert faults([turn(0), turn(1), {**late, "text": "after k9"}], lines) != []


@pytest.mark.parametrize(
    ("turns", "lines", "found"),
    [
        ([turn(0)], [told(0), told(1)], "k1 was told"),
        ([turn(0), turn(1, ids=["8", "9"])], [told(0), told(1)], "k1 was told"),
        ([turn(0), turn(1, key="k0", text="after k0")], [told(0)], "k0 is stored 2 times"),
        ([turn(0), turn(2, text="after k1")], [told(0), told(2)], "k2 is answered 'after k1'"),
        ([turn(0), turn(1, text="first")], [told(0)], "k1 is answered 'first'"),
        ([turn(0)], [told(0), {"tool": "k0"}, {"tool": "k0"}], "the tool of k0 ran 2 times"),
        ([turn(0)], [told(0), {"failed": "k0", "conversation": "c"}], "k0 was told as failed"),
        ([turn(0)], [told(0), {"failed": "k1", "conversation": "c"}], "k1 was told as failed"),
    ],
)
def test_what_does_not_hold_is_found(turns: Lines, lines: Lines, found: str) -> None:
    assert any(fault.startswith(found) for fault in faults(turns, lines))
