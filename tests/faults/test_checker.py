"""The checker finds what it is there to find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from django.db.models import F

from agent_memory.models import Conversation, ConversationMessage
from tests.faults.checker import Acknowledged, faults_of_tables, faults_of_turns
from tests.faults.clerks import Clerk, ClerkProvider, Ledger, asking, note_in
from tests.faults.operations import ADA, journalled, store
from tests.faults.talking import facts

rows = ConversationMessage.objects
conversations = Conversation.objects


@pytest.fixture
def ledger(db: None, tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger")


@pytest.fixture
def answers(ledger: Ledger) -> list[Acknowledged]:
    """Two turns of a conversation, the first of which called a tool."""
    clerk = Clerk(provider=ClerkProvider(), tools=[note_in(ledger)])
    bound = clerk.start_conversation(ADA, conversation_id="c", leading=[])
    asked = [
        bound.prompt(asking(prompt, steps=steps), idempotency_key=prompt)
        for prompt, steps in (("p", 1), ("q", 0))
    ]
    return [Acknowledged(**facts(response)) for response in asked]


def test_what_is_whole_has_no_faults(answers: list[Acknowledged], ledger: Ledger) -> None:
    assert faults_of_tables() == []
    assert faults_of_turns(answers, ledger.lines(), alive=True) == []


def move() -> None:
    rows.filter(position=3).update(position=5)


def mix() -> None:
    rows.filter(position=1).update(turn_id=rows.get(position=2).turn_id)


def reserve() -> None:
    store.reserve("c")


def leave_a_placeholder() -> None:
    store.reserve("new", create=True)


def leave_a_journal() -> None:
    journalled(store.reserve("c"))


def swap() -> None:
    rows.filter(position=0).update(role="assistant")


def copy() -> None:
    row = rows.get(position=3)
    row.pk, row.position = None, 4
    row.save()


SPOILS: list[tuple[Callable[[], object], str]] = [
    (lambda: rows.filter(position=3).delete(), "positions|take turns"),
    (move, "positions have a gap"),
    (mix, "are of two turns"),
    (swap, "do not take turns"),
    (copy, "do not take turns"),
    (reserve, "still reserved"),
    (leave_a_placeholder, "a placeholder is left"),
    (leave_a_journal, "a journal entry is left"),
    (lambda: conversations.update(turn_count=3), "counters"),
    (lambda: conversations.update(next_position=6), "counters"),
    (lambda: conversations.update(input_tokens=F("input_tokens") + 1), "input_tokens"),
    (lambda: rows.filter(position=1).update(output_tokens=0), "output_tokens"),
    (lambda: conversations.update(last_activity=F("opened_at")), "last activity"),
    (lambda: rows.filter(position=0).update(position=-3), "leading messages stand at"),
]


@pytest.mark.parametrize(("spoil", "fault"), SPOILS)
def test_a_fault_of_the_tables_is_found(
    answers: list[Acknowledged], spoil: Callable[[], object], fault: str
) -> None:
    spoil()
    assert any(word in found for found in faults_of_tables() for word in fault.split("|"))


def lose(answers: list[Acknowledged], ledger: Ledger) -> None:
    answers.append(replace(answers[0], user_message_id="4711"))


def change(answers: list[Acknowledged], ledger: Ledger) -> None:
    answers[0] = replace(answers[0], text="another")


def forget(answers: list[Acknowledged], ledger: Ledger) -> None:
    answers.pop()


def double(answers: list[Acknowledged], ledger: Ledger) -> None:
    rows.filter(position=2).update(content=rows.get(position=0).content)


def start_again(answers: list[Acknowledged], ledger: Ledger) -> None:
    ledger.note("begun", "p", "call_0_0")


def act_in_secret(answers: list[Acknowledged], ledger: Ledger) -> None:
    ledger.note("begun", "unknown", "call_0_0")


def never_act(answers: list[Acknowledged], ledger: Ledger) -> None:
    ledger.path.unlink()


def interleave(answers: list[Acknowledged], ledger: Ledger) -> None:
    row = rows.get(position=3)
    rows.filter(position=3).update(content=row.content.replace('"history": 1', '"history": 0'))


def lose_a_result(answers: list[Acknowledged], ledger: Ledger) -> None:
    row = rows.get(position=1)
    rows.filter(position=1).update(steps=row.steps.replace('"result"', '"lost"'))


def fail(answers: list[Acknowledged], ledger: Ledger) -> None:
    rows.filter(position=3).update(status="failed")


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lose, "is not there"),
        (change, "is not what was acknowledged"),
        (forget, "was never acknowledged"),
        (double, "stands 2 times"),
        (start_again, "has begun 2 times"),
        (act_in_secret, "no turn tells of it"),
        (never_act, "its tool has not run"),
        (interleave, "its model was sent 0 turns"),
        (lose_a_result, "a call has no result"),
        (fail, "is recorded as failed"),
    ],
)
def test_a_fault_of_the_turns_is_found(
    answers: list[Acknowledged],
    ledger: Ledger,
    spoil: Callable[[list[Acknowledged], Ledger], None],
    fault: str,
) -> None:
    spoil(answers, ledger)
    found = faults_of_turns(answers, ledger.lines(), alive=True)
    assert any(fault in each for each in found), found
