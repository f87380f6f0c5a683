"""The window keeps whole turns, and the leading messages always."""

from __future__ import annotations

import pytest

from agent_memory.history import check_keep_last_turns, check_leading, window
from agent_memory.messages import Message, ToolCall, ToolResult

LEADING = (Message("system", "Be kind."), Message("developer", "Be brief."))
CALL = ToolCall(id="1", name="look", result=ToolResult(value="blue"))


def turn(prompt: str) -> tuple[Message, ...]:
    return (
        Message("user", prompt),
        Message("assistant", tool_calls=(CALL,)),
        Message("tool", "blue", tool_call_id="1"),
        Message("assistant", "It is blue."),
    )


ONE, TWO, THREE = turn("1"), turn("2"), turn("3")


@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        (0, (*ONE, *TWO, *THREE)),
        (1, THREE),
        (2, (*TWO, *THREE)),
        (3, (*ONE, *TWO, *THREE)),
        (9, (*ONE, *TWO, *THREE)),
    ],
)
def test_a_window_is_leading_messages_and_the_last_whole_turns(keep, kept):
    assert window((*ONE, *TWO, *THREE), keep) == kept
    assert window((*LEADING, *ONE, *TWO, *THREE), keep) == (*LEADING, *kept)


def test_a_turn_without_an_answer_is_a_turn():
    asked = (Message("user", "1"), Message("user", "2"), Message("user", "3"))
    assert window(asked, 2) == asked[1:]


def test_only_messages_before_the_first_turn_lead():
    late = Message("system", "Change your tone.")
    history = (*LEADING, *ONE, late, *TWO, *THREE)
    assert window(history, 1) == (*LEADING, *THREE)
    assert window(history, 2) == (*LEADING, *TWO, *THREE)
    assert window(history, 3) == history


def test_a_history_without_a_turn_is_all_kept():
    assert window((), 1) == ()
    assert window(LEADING, 1) == LEADING


def test_what_stands_before_the_first_turn_goes_with_it():
    greeting = Message("assistant", "Welcome!")
    assert window((greeting, *ONE, *TWO), 1) == TWO
    assert window((greeting, *ONE), 1) == (greeting, *ONE)


@pytest.mark.parametrize("wrong", [-1, True, False, 1.0, "1", None, [1]])
def test_a_number_of_turns_is_a_whole_one_from_zero(wrong):
    with pytest.raises(ValueError, match="whole number of turns"):
        check_keep_last_turns(wrong)
    with pytest.raises(ValueError, match="whole number of turns"):
        window(ONE, wrong)
    assert check_keep_last_turns(0) == 0


@pytest.mark.parametrize("wrong", [Message("user", "a"), Message("assistant", "a"), "a", None])
def test_leading_messages_are_system_or_developer_ones(wrong):
    with pytest.raises(ValueError, match="system or developer"):
        check_leading([*LEADING, wrong])
    assert check_leading(iter(LEADING)) == LEADING
