"""What is made of a turn whose worker died."""

from __future__ import annotations

from agent_memory.approvals import Approval, PendingApproval
from agent_memory.journals import JournalEntry, folded, interrupted
from agent_memory.messages import INTERRUPTED, Message, Step, ToolCall, ToolResult, Turn
from agent_memory.records import Heading, PausedTurn, StoredTurn

DONE = ToolResult(value="done")
UNKNOWN = ToolResult(value=INTERRUPTED, failed=True)
HELLO = Message("user", "Hello")
ASKED = PendingApproval("a", "refund")


def step(*calls: ToolCall) -> Step:
    return Step(items=calls, finish_reason="tool_calls")


def gated(name: str) -> ToolCall:
    return ToolCall(id=name, name="refund", approval_reason="Money.")


def free(name: str) -> ToolCall:
    return ToolCall(id=name, name="look")


def paused(*statuses: str) -> PausedTurn:
    """Return a turn that waits for as many calls as there are statuses."""
    calls = [gated(f"call-{index}") for index in range(len(statuses))]
    return PausedTurn(
        Turn(user=HELLO, steps=(step(*calls),), status="paused"),
        StoredTurn("one", "turn"),
        tuple(Approval(0, index, ASKED, status) for index, status in enumerate(statuses)),  # type: ignore[arg-type]  # each is a status
    )


def results(turn: PausedTurn) -> list[ToolResult | None]:
    return [call.result for call in turn.turn.tool_calls()]


def test_a_claimed_call_has_the_result_that_was_noted_or_may_have_run():
    found = folded(paused("claimed", "claimed", "approved"), [JournalEntry(0, 0, DONE)])
    assert results(found) == [DONE, UNKNOWN, None]
    assert [each.status for each in found.approvals] == ["done", "interrupted", "approved"]
    assert found.turn.status == "paused"


def test_further_steps_follow_with_what_is_known_of_their_calls():
    further = step(free("look"), free("look"), gated("late"))
    entries = [
        JournalEntry(0, 0, DONE),
        JournalEntry(1, 0, DONE),
        JournalEntry(1, -1, further, Heading("one"), HELLO),
    ]
    found = folded(paused("claimed"), entries)
    assert results(found) == [DONE, DONE, UNKNOWN, None]
    assert found.turn.user == HELLO


def test_nothing_noted_changes_nothing():
    turn = paused("pending", "approved", "denied")
    assert folded(turn, []) == turn


def test_a_turn_tells_of_each_call_that_may_have_run():
    turn = Turn(user=HELLO, steps=(step(free("a"), gated("b"), gated("c")),), status="failed")
    found = interrupted(turn, {(0, 2)})
    assert [call.result for call in found.tool_calls()] == [UNKNOWN, None, UNKNOWN]


def test_a_failed_turn_tells_the_model_which_calls_nobody_allowed():
    turn = Turn(user=HELLO, steps=(step(free("a"), gated("b")),), status="failed")
    _, _, ran, waited = turn.messages
    assert ran.text == INTERRUPTED
    assert "needed an approval" in waited.text


def test_the_model_is_told_what_a_person_changed():
    edited = gated("a").model_copy(update={"edited": {"amount": 5}, "result": DONE})
    _, asked, told = Turn(user=HELLO, steps=(step(edited),)).messages
    assert asked.tool_calls[0].arguments == {}
    assert told.text == 'A person changed the arguments to {"amount": 5}.\ndone'
