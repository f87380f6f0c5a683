"""What must hold of the turns that writers took, given what they were told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from tests.cluster.writer import APPENDED

Lines = list[dict[str, Any]]


def faults(turns: Lines, told: Lines) -> list[str]:
    """
    Return what does not hold, a line each.

    ``turns`` is what ``reading`` tells of the tables, ``told`` what ``writer``s tell:
    an answer that somebody got is stored once, as they were told. Conversations
    that were told of are looked at, no others.
    """
    conversations = {line["conversation"] for line in told if "conversation" in line}
    turns = [turn for turn in turns if turn["conversation"] in conversations]
    stored: dict[str, Lines] = {}
    for turn in turns:
        stored.setdefault(turn["key"], []).append(turn)
    found = [f"{key} is stored {len(there)} times" for key, there in stored.items() if there[1:]]
    tools = Counter(line["tool"] for line in told if "tool" in line)
    found += [f"the tool of {key} ran {count} times" for key, count in tools.items() if count > 1]
    for line in told:
        if "failed" in line:
            there = [turn["status"] for turn in stored.get(line["failed"], ())]
            if there != ["failed"]:
                found.append(f"{line['failed']} was told as failed and is {there}")
        elif "text" in line:
            there = [{name: turn[name] for name in line} for turn in stored.get(line["key"], ())]
            if there != [line]:
                found.append(f"{line['key']} was told as {line} and is {there}")
    late = {line["key"] for line in told if line.get("fault") == "TurnNotSaved"}
    return [*found, *_faults_of_windows(turns, late)]


def _faults_of_windows(turns: Iterable[dict[str, Any]], late: set[str]) -> Iterator[str]:
    """
    Each answer names the prompt before it, which the model must have been sent.

    One that was appended ``late``, once the database was back, names an earlier one
    if others went on meanwhile.
    """
    possible: dict[str, list[str]] = {}
    for turn in turns:
        answers = possible.setdefault(turn["conversation"], ["first"])
        expected = answers if turn["key"] in late else answers[-1:]
        if turn["status"] == "completed" and turn["text"] not in [*expected, APPENDED]:
            yield f"{turn['key']} is answered {turn['text']!r} and not {expected[-1]!r}"
        answers.append(f"after {turn['key']}")
