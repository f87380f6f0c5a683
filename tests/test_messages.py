"""Messages are values: frozen, strict with callers, equal after any round trip."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from agent_memory.messages import (
    INTERRUPTED,
    DocumentPart,
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
    size,
)
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


# Files.


def test_a_file_has_one_source_and_no_second_one():
    for sources in ({"data": b""}, {"url": ""}, {"file_id": "file-1"}):
        assert ImagePart(**sources).model_dump(exclude_defaults=True) == sources
    for sources in ({}, {"data": b"a", "url": "b"}, {"url": "a", "file_id": "b"}):
        with pytest.raises(ValidationError, match="exactly one of data, url, file_id, not"):
            DocumentPart(**sources)


@pytest.mark.parametrize("data", ["aGVsbG8=", bytearray(b"a"), 7])
def test_the_data_of_a_file_is_bytes_and_nothing_that_may_mean_them(data):
    with pytest.raises(ValidationError, match="valid bytes"):
        ImagePart(data=data)


def test_files_are_equal_by_kind_bytes_and_all_that_is_said_of_them():
    one = ImagePart(data=b"a", media_type="image/png", file_name="a", provider_options={"x": 1})
    assert one == ImagePart(**one.model_dump())
    assert one != DocumentPart(**one.model_dump(exclude={"type"}))
    for field, value in (
        *(("data", b"b"), ("media_type", "image/gif")),
        *(("file_name", "b"), ("provider_options", {"x": 2})),
    ):
        assert one != one.model_copy(update={field: value})


def test_a_file_tells_how_many_bytes_it_has_and_does_not_show_them():
    image = ImagePart(data=b"secret" * 1000)
    assert image.size == size(Message(content=[image])) == 6000
    assert "<6000 bytes>" in repr(image)
    assert "secret" not in f"{image} {image!r} {Message(content=[image])!r}"
    assert ImagePart(url="https://example.com/a.png").size == 0


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
