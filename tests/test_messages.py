"""Messages are values: frozen, strict with callers, equal after any round trip."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
from typing import Any

import pytest
from pydantic import ValidationError

from agent_memory import parts
from agent_memory.messages import (
    INTERRUPTED,
    ImagePart,
    Message,
    ProviderToolCall,
    Reasoning,
    RefusalPart,
    Step,
    TextPart,
    ToolCall,
    ToolResult,
    Turn,
    TurnError,
    Usage,
    trusted_message,
)
from agent_memory.parts import plain_text
from agent_memory.testing.contract.fidelity import odd_turns


def call(number: int, *, result: Any = "done") -> ToolCall:
    answer = None if result is None else ToolResult(value=result)
    return ToolCall(id=f"call-{number}", name="look", arguments={"n": number}, result=answer)


def text(words: str) -> TextPart:
    return TextPart(text=words)


def test_text_is_short_for_one_text_part():
    assert Message("user", "Hello") == Message(role="user", content=(text("Hello"),))
    assert Message(content=[text("Hello")]) == Message("user", "Hello")
    assert Message("user", "").content == (text(""),)
    assert Message().content == ()


def test_the_text_of_a_message_is_that_of_its_text_parts():
    message = Message("assistant", (text("a"), RefusalPart(text="no"), text("b")))
    assert message.text == "ab"


def test_values_cannot_be_changed():
    for value, name in ((Message(), "role"), (text("a"), "text"), (Turn(user=Message()), "steps")):
        with pytest.raises(ValidationError, match="frozen"):
            setattr(value, name, None)


@pytest.mark.parametrize("value", [Message, Step, Turn, Usage, ToolCall, TextPart, TurnError])
def test_unknown_fields_are_refused_from_callers(value):
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        value(surprise=1)


def test_fields_of_a_newer_version_are_ignored_on_reading():
    turn = Turn(user=Message("user", "Hi"), steps=(Step(items=(call(1), text("Hi"))),))
    newer = turn.model_dump()
    newer["surprise"] = newer["user"]["surprise"] = newer["steps"][0]["surprise"] = 1
    newer["steps"][0]["items"][0]["result"]["surprise"] = {"deep": 1}
    with pytest.raises(ValidationError):
        Turn.model_validate(newer)
    assert Turn.model_validate(newer, extra="ignore") == turn


def test_an_error_does_not_tell_what_it_was_given():
    with pytest.raises(ValidationError) as caught:
        Message("user", [{"type": "text", "text": {"secret": "hunter2"}}])
    assert "hunter2" not in str(caught.value)


def test_a_part_is_told_by_its_type():
    parts = [{"type": "image", "url": "https://example.com/a.png"}, {"type": "text", "text": "a"}]
    assert Message("user", parts).content == (
        ImagePart(url="https://example.com/a.png"),
        text("a"),
    )
    with pytest.raises(ValidationError, match="does not match any of the expected tags"):
        Message("user", [{"type": "video", "url": "a"}])


@pytest.mark.parametrize("turn", [*odd_turns()])
def test_a_turn_is_equal_after_a_round_trip_through_json(turn):
    stored = json.dumps(turn.model_dump())
    assert stored.isascii()
    read = Turn.model_validate(json.loads(stored))
    assert read == turn
    assert repr(read) == repr(turn)


# A turn, flattened.


def test_a_turn_flattens_to_user_assistant_tool_assistant():
    steps = (
        Step(items=(Reasoning(text="Hm"), text("Let me "), call(1), text("look."), call(2))),
        Step(items=(call(3, result={"a": [1, "é"]}),)),
        Step(items=(text("Done"), RefusalPart(text="But no."))),
    )
    assert Turn(user=Message("user", "Go"), steps=steps).messages == (
        Message("user", "Go"),
        Message("assistant", (text("Let me "), text("look.")), tool_calls=(call(1), call(2))),
        Message("tool", "done", tool_call_id="call-1"),
        Message("tool", "done", tool_call_id="call-2"),
        Message("assistant", tool_calls=(call(3, result={"a": [1, "é"]}),)),
        Message("tool", '{"a": [1, "é"]}', tool_call_id="call-3"),
        Message("assistant", (text("Done"), RefusalPart(text="But no."))),
    )


def test_a_step_that_said_nothing_is_left_out():
    silent = (Step(), Step(items=(Reasoning(text="Hm"), ProviderToolCall(name="web_search"))))
    assert Turn(user=Message("user", "Go"), steps=silent).messages == (Message("user", "Go"),)


def test_an_unanswered_call_of_a_completed_turn_is_left_out():
    steps = (Step(items=(text("a"), call(1, result=None), call(2))),)
    turn = Turn(user=Message("user", "Go"), steps=steps)
    assert turn.messages[1:] == (
        Message("assistant", "a", tool_calls=(call(2),)),
        Message("tool", "done", tool_call_id="call-2"),
    )


def test_an_unanswered_call_of_a_failed_turn_is_told_as_interrupted():
    steps = (Step(items=(call(1), call(2, result=None))),)
    turn = Turn(user=Message("user", "Go"), steps=steps, status="failed")
    interrupted = ToolResult(value=INTERRUPTED, failed=True)
    told = call(2, result=None).model_copy(update={"result": interrupted})
    assert turn.messages[1:] == (
        Message("assistant", tool_calls=(call(1), told)),
        Message("tool", "done", tool_call_id="call-1"),
        Message("tool", INTERRUPTED, tool_call_id="call-2"),
    )


def test_calls_and_results_flatten_in_the_order_of_the_steps():
    search = ProviderToolCall(name="web_search")
    steps = (Step(items=(call(1), search, call(2, result=None))), Step(items=(call(3),)))
    turn = Turn(user=Message(), steps=steps)
    assert [each.id for each in turn.tool_calls()] == ["call-1", "call-2", "call-3"]
    assert turn.tool_results() == (ToolResult(value="done"), ToolResult(value="done"))
    assert turn.provider_tool_calls() == (search,)


def test_a_turn_adds_up_its_usage_and_tells_its_last_text():
    usage = Usage(input_tokens=1, output_tokens=2, cached_tokens=3, reasoning_tokens=4)
    step = Step(items=(text("a"), text("b")), usage=usage)
    turn = Turn(user=Message(), steps=(step, step), title_usage=Usage(input_tokens=100))
    assert turn.usage == Usage(input_tokens=2, output_tokens=4, cached_tokens=6, reasoning_tokens=8)
    assert turn.text == "ab"
    assert Turn(user=Message()).text == ""
    assert Turn(user=Message()).usage == Usage()


# Tool calls.


def test_results_go_onto_calls_by_their_index_among_the_calls():
    step = Step(items=(text("a"), call(1, result=None), text("b"), call(2, result=None)))
    answered = step.with_results({1: ToolResult(value="two")})
    assert answered.items == (text("a"), call(1, result=None), text("b"), call(2, result="two"))
    assert step.tool_calls() == (call(1, result=None), call(2, result=None))
    assert answered.with_results({0: ToolResult(value="one")}).tool_calls() == (
        call(1, result="one"),
        call(2, result="two"),
    )


@pytest.mark.parametrize(
    ("value", "told"),
    [("as it is", "as it is"), ("", ""), (None, "null"), (True, "true"), ([1, "é"], '[1, "é"]')],
)
def test_a_result_is_told_as_text_or_as_json(value, told):
    assert ToolResult(value=value).text == told


def test_arguments_are_told_as_json_or_as_the_model_wrote_them():
    assert call(1).arguments_text == '{"n": 1}'
    unread = ToolCall(id="1", name="look", raw_arguments="{not json")
    assert (unread.arguments, unread.arguments_text) == ({}, "{not json")
    assert ToolCall(id="1", name="look", raw_arguments="").arguments_text == ""


def trusted(role: str, **fields: Any) -> Message:
    others = {"content": (), "tool_calls": (), "tool_call_id": None}
    return trusted_message(role=role, **others | fields)


@pytest.mark.parametrize(
    ("made", "validated"),
    [
        (plain_text("Hello"), TextPart(text="Hello")),
        (trusted("user", content=(text("Hello"),)), Message("user", "Hello")),
        (trusted("assistant", tool_calls=(call(1),)), Message("assistant", tool_calls=[call(1)])),
        (
            trusted("tool", content=(text("done"),), tool_call_id="call-1"),
            Message("tool", "done", tool_call_id="call-1"),
        ),
    ],
)
def test_a_trusted_value_is_as_a_validated_one(made: Any, validated: Any) -> None:
    assert made == validated
    assert vars(made).keys() == type(validated).model_fields.keys() == made.model_fields_set
    assert made.model_extra is None
    assert not hasattr(made, "unknown")
    assert repr(made) == repr(validated)
    assert made.model_dump_json() == validated.model_dump_json()
    for copied in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert copied == validated
    changed = {"text": "Bye"} if isinstance(made, TextPart) else {"role": "developer"}
    assert made.model_copy(update=changed) == validated.model_copy(update=changed)
    with pytest.raises(ValidationError, match="frozen"):
        setattr(made, *next(iter(changed.items())))


def test_a_file_is_hashed_once_and_a_copy_with_other_data_anew(monkeypatch):
    hashed = []

    def counted(data):
        hashed.append(data)
        return hashlib.sha256(data)

    monkeypatch.setattr(parts, "sha256", counted)
    part = ImagePart(data=b"one", media_type="image/png")
    assert part.sha256 == part.sha256 == hashlib.sha256(b"one").hexdigest()
    assert hashed == [b"one"]
    assert part.model_copy(update={"data": b"two"}).sha256 == hashlib.sha256(b"two").hexdigest()
    assert part == ImagePart(data=b"one", media_type="image/png")
