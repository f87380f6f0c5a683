"""Calls and results of any history become what every API takes."""

from __future__ import annotations

import pytest

from agent_memory.messages import INTERRUPTED, Message, ToolCall, ToolResult
from agent_memory.providers.pairing import Pairing


def calling(*ids: str, **fields: object) -> Message:
    calls = tuple(ToolCall(id=call_id, name="f", **fields) for call_id in ids)
    return Message("assistant", "", tool_calls=calls)


def result(call_id: str | None, text: str = "ok") -> Message:
    return Message("tool", text, tool_call_id=call_id)


def mended(*messages: Message, taken: tuple[str, ...] = ()) -> list[Message]:
    return list(Pairing(taken).mended(messages))


def test_a_whole_history_is_left_as_it_is():
    history = [
        Message("system", "Rules."),
        Message("user", "One"),
        calling("a", "b"),
        result("a"),
        result("b"),
        Message("assistant", "Two"),
    ]
    assert mended(*history) == history


@pytest.mark.parametrize(
    "history",
    [
        [calling("a", "b"), result("b", "B"), result("a", "A"), Message("user", "Hi")],
        [calling("a", "b"), Message("user", "Hi"), result("a", "A"), result("b", "B")],
        [calling("a", "b"), result("a", "A"), Message("user", "Hi"), result("b", "B")],
    ],
    ids=["in another order", "after the next message", "around it"],
)
def test_results_follow_their_calls_in_the_order_of_the_calls(history):
    assert mended(*history) == [
        calling("a", "b"),
        result("a", "A"),
        result("b", "B"),
        Message("user", "Hi"),
    ]


def test_a_call_without_a_result_is_told_as_interrupted():
    told = mended(calling("a", "b"), result("b"), Message("user", "Hi"))
    assert told[1:3] == [result("a", INTERRUPTED), result("b")]


def test_a_result_that_stands_on_its_call_alone_is_told():
    call = calling("a", result=ToolResult(value={"c": 21}), edited={"city": "Rome"})
    told = mended(call)[1].text
    assert "Rome" in told
    assert '{"c": 21}' in told


def test_a_result_without_a_call_is_left_out_with_a_warning(caplog):
    history = [result("a"), calling("b"), result("b"), result("b", "again"), result("c")]
    assert mended(*history) == [calling("b"), result("b")]
    assert "3 tool results of the history answer no call" in caplog.text


def test_ids_that_come_again_are_replaced_in_the_call_and_its_result():
    history = [
        calling("call_0", "call_0"),
        result("call_0", "one"),
        result("call_0", "two"),
        Message("user", "Again"),
        calling("call_0"),
        result("call_0", "three"),
        calling("call_0_1"),
        result("call_0_1", "four"),
    ]
    told = mended(*history)
    ids = [call.id for message in told for call in message.tool_calls]
    assert len(set(ids)) == 4
    assert ids[0] == "call_0"
    answers = {message.tool_call_id: message.text for message in told if message.role == "tool"}
    assert [answers[call_id] for call_id in ids] == ["one", "two", "three", "four"]


def test_the_same_history_gets_the_same_ids_and_a_longer_one_keeps_them():
    history = [calling("a"), result("a"), calling("a"), result("a")]
    told = mended(*history)
    assert mended(*history) == told
    assert mended(*history, calling("a"), result("a"))[:4] == told


@pytest.mark.parametrize("told_id", [None, ""])
def test_missing_ids_are_replaced_and_their_results_found(told_id):
    told = mended(calling("", ""), result(told_id, "one"), result(told_id, "two"))
    ids = [call.id for call in told[0].tool_calls]
    assert len(set(ids)) == 2
    assert all(ids)
    assert told[1:] == [result(ids[0], "one"), result(ids[1], "two")]


def test_ids_that_are_taken_are_not_given_again():
    told = mended(calling("a"), result("a"), taken=("a", "a_1"))
    assert [call.id for call in told[0].tool_calls] == ["a_2"]
    assert told[1].tool_call_id == "a_2"


def test_calls_on_a_message_that_is_no_assistants_are_none():
    message = Message("user", "Hi", tool_calls=(ToolCall(id="a", name="f"),))
    assert mended(message) == [Message("user", "Hi")]
