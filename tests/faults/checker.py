"""
What must hold of the tables, whatever was done to those who wrote them.

``faults_of_tables`` reads every row, ``faults_of_turns`` compares the turns with what
workers were told and what their tools did. Both return what does not hold, a line each.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from agent_memory.models import (
    Conversation,
    ConversationMessage,
    ToolApproval,
    TurnJournal,
)
from agent_memory.stores import codec

TOKENS = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")


@dataclass(frozen=True)
class Acknowledged:
    """What a worker was told of a turn: an answer, or that it is recorded as failed."""

    conversation_id: str
    prompt: str
    text: str
    user_message_id: str
    assistant_message_id: str


@dataclass(frozen=True)
class StoredPair:
    """The two rows of a turn."""

    said: ConversationMessage
    answered: ConversationMessage

    @property
    def steps(self) -> list[dict[str, Any]]:
        written = self.answered.steps, self.answered.content
        steps: list[dict[str, Any]] = json.loads(codec.whole_steps(written))
        return steps

    def calls(self) -> Iterator[dict[str, Any]]:
        """Yield the tool calls of all steps."""
        for step in self.steps:
            yield from (item for item in step["items"] if item["type"] == "tool_call")

    @property
    def is_completed(self) -> bool:
        return self.answered.status == "completed"


def pairs() -> list[StoredPair]:
    """Return all turns that stand at their places."""
    found: dict[tuple[str, int], dict[int, ConversationMessage]] = {}
    for row in ConversationMessage.objects.filter(position__gte=0):
        found.setdefault((row.conversation_id, row.position // 2), {})[row.position % 2] = row
    return [StoredPair(rows[0], rows[1]) for rows in found.values() if len(rows) == 2]


def faults_of_tables() -> list[str]:
    """Return what no table may show once nobody is at work."""
    found = [f"a journal entry is left of {entry}" for entry in TurnJournal.objects.all()]
    rows: dict[str, list[ConversationMessage]] = {}
    for row in ConversationMessage.objects.order_by("conversation_id", "position"):
        rows.setdefault(row.conversation_id, []).append(row)
    approvals: dict[Any, list[ToolApproval]] = {}
    for approval in ToolApproval.objects.all():
        approvals.setdefault(approval.message_id, []).append(approval)
    for conversation in Conversation.objects.all():
        faults = _of_conversation(conversation, rows.pop(conversation.id, []), approvals)
        found += [f"conversation {conversation.id}: {fault}" for fault in faults]
    found += [f"conversation {name} has messages and no row" for name in rows]
    turns = Counter(row.turn_id for row in ConversationMessage.objects.filter(position__gte=0))
    found += [f"turn {turn} has {count} rows" for turn, count in turns.items() if count > 2]
    return found


def _of_conversation(
    conversation: Conversation,
    rows: list[ConversationMessage],
    approvals: dict[Any, list[ToolApproval]],
) -> Iterator[str]:
    if conversation.opened_at is None:
        yield "a placeholder is left"
    held = conversation.reservation, conversation.reserved_key, conversation.journalled
    if held != ("", "", False) or conversation.reserved_since or conversation.reserved_until:
        yield "it is still reserved"
    leading = [row.position for row in rows if row.position < 0]
    if leading != list(range(-len(leading), 0)):
        yield f"leading messages stand at {leading}"
    turns = rows[len(leading) :]
    if [row.position for row in turns] != list(range(len(turns))):
        yield f"positions have a gap: {[row.position for row in turns]}"
    if len(turns) % 2 or [row.role for row in turns] != ["user", "assistant"] * (len(turns) // 2):
        yield "user and assistant do not take turns"
    for said, answered in zip(turns[::2], turns[1::2], strict=False):
        # The answer of a turn that was paused is of whoever resumed it last.
        resumed = answered.id in approvals and answered.turn_id
        if not said.turn_id or (said.turn_id != answered.turn_id and not resumed):
            yield f"positions {said.position} and {answered.position} are of two turns"
    if (conversation.next_position, conversation.turn_count) != (len(turns), len(turns) // 2):
        yield f"its counters say {conversation.turn_count} turns of {len(turns) // 2}"
    yield from _of_pause(conversation, turns[1::2], approvals)
    for name in TOKENS:
        total = sum(getattr(row, name) for row in rows)
        if getattr(conversation, name) != total:
            yield f"{name} says {getattr(conversation, name)}, and the rows {total}"
    if turns and conversation.last_activity != max(row.finished_at for row in turns[1::2]):
        yield "its last activity is not that of its last turn"
    keys = Counter(row.idempotency_key for row in rows if row.idempotency_key is not None)
    yield from (f"key {key!r} stands {count} times" for key, count in keys.items() if count > 1)


def _of_pause(
    conversation: Conversation,
    answers: list[ConversationMessage],
    approvals: dict[Any, list[ToolApproval]],
) -> Iterator[str]:
    paused = [row.position - 1 for row in answers if row.status == "paused"]
    last = [] if conversation.paused_position is None else [conversation.next_position - 2]
    if paused != last or paused not in ([], [conversation.paused_position]):
        yield f"it is paused at {conversation.paused_position}, and its turns at {paused}"
    undecided = 0
    for row in answers:
        for approval in approvals.get(row.id, []):
            undecided += (approval.status, row.status) == ("pending", "paused")
            if (approval.status in ("claimed", "done", "interrupted")) != bool(approval.claim):
                yield f"approval {approval} has the claim {approval.claim!r}"
    if conversation.undecided_count != undecided:
        yield f"it counts {conversation.undecided_count} undecided calls"


def faults_of_turns(
    acknowledged: Iterable[Acknowledged], deeds: Iterable[tuple[str, str, str]], *, alive: bool
) -> list[str]:
    """
    Return what is wrong with the turns of ``Clerk`` agents.

    ``deeds`` are what tools noted: ``begun`` or ``done``, the prompt, the call.
    ``alive``: no worker was killed, so what is stored is what was acknowledged.
    """
    stored = pairs()
    prompts = Counter(pair.said.content for pair in stored)
    found = [f"{prompt} stands {count} times" for prompt, count in prompts.items() if count > 1]
    known = {(pair.said.conversation_id, str(pair.said.id)): pair for pair in stored}
    told = set()
    for answer in set(acknowledged):
        pair = known.get((answer.conversation_id, answer.user_message_id))
        if pair is None:
            found.append(f"{answer.prompt} was acknowledged and is not there")
            continue
        told.add(pair)
        written = pair.said.content, pair.answered.content, str(pair.answered.id)
        if written != (answer.prompt, answer.text, answer.assistant_message_id):
            found.append(f"{answer.prompt} is not what was acknowledged")
    for pair in stored:
        if pair.is_completed:
            found += [f"{pair.said.content}: {fault}" for fault in _of_completed(pair)]
            if alive and pair not in told:
                found.append(f"{pair.said.content} is stored and was never acknowledged")
        elif alive:
            found.append(f"{pair.said.content} is recorded as failed")
    return [*found, *_of_deeds(stored, Counter(deeds))]


def _of_completed(pair: StoredPair) -> Iterator[str]:
    said, answer = json.loads(pair.said.content), json.loads(pair.answered.content)
    if answer["answer"] != said["prompt"]:
        yield f"it is answered by {answer}"
    if answer["history"] != pair.said.position // 2:
        yield f"its model was sent {answer['history']} turns"
    if len(pair.steps) != said["steps"] + 1:
        yield f"it has {len(pair.steps)} steps"
    if any("result" not in call for call in pair.calls()):
        yield "a call has no result"


def _of_deeds(stored: list[StoredPair], deeds: Counter[tuple[str, str, str]]) -> Iterable[str]:
    calls = {
        (json.loads(pair.said.content)["prompt"], call["id"]): "result" in call
        for pair in stored
        for call in pair.calls()
    }
    for (what, prompt, call_id), count in deeds.items():
        if count > 1:
            yield f"{prompt}: the tool of {call_id} has {what} {count} times"
        if (prompt, call_id) not in calls:
            yield f"{prompt}: the tool of {call_id} has {what}, and no turn tells of it"
    for (prompt, call_id), answered in calls.items():
        if answered and ("done", prompt, call_id) not in deeds:
            yield f"{prompt}: {call_id} has a result, and its tool has not run"
