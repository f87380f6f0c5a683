"""Values as JSON text: whole, short, readable by later versions, refused from later formats."""

from __future__ import annotations

import json

import pytest

from agent_memory.exceptions import UnsupportedFormat
from agent_memory.messages import (
    ProviderToolCall,
    Reasoning,
    RefusalPart,
    Replay,
    Step,
    StepItem,
    TextPart,
    ToolCall,
    ToolResult,
    Usage,
)
from agent_memory.stores import codec

ODD = "NUL \0, a lone surrogate \ud800, a noncharacter \uffff and ü"

STEP = Step(
    items=(
        Reasoning(text=ODD),
        TextPart(text=ODD, provider_options={ODD: [1, None]}, provider_metadata={"id": "m"}),
        ToolCall(id=ODD, name="f", arguments={"n": 10**400}, result=ToolResult(value=None)),
        ToolCall(id="2", name="g", raw_arguments="{", result=ToolResult(value={}, failed=True)),
        ProviderToolCall(name="web_search_call", data={"query": ODD}),
        RefusalPart(text="no"),
    ),
    finish_reason="tool_calls",
    usage=Usage(input_tokens=1, reasoning_tokens=2),
    provider="p",
    model="m",
)


def told(written: list[codec.Written]) -> list[list[tuple[StepItem, ...]]]:
    return [[tuple(items) for items in turn] for turn in codec.decode_rounds(written)]


def test_steps_come_back_equal_and_apart():
    texts = [codec.encode_steps((STEP, Step()), ""), codec.encode_steps((), "")]
    assert codec.decode_steps((text, "") for text in texts) == [(STEP, Step()), ()]
    assert told([(text, "") for text in texts]) == [[STEP.items, ()], []]
    assert codec.step_value(json.loads(json.dumps(codec.step_data(STEP)))) == STEP


def test_parts_come_back_equal():
    parts = (TextPart(text=ODD), RefusalPart(text=""))
    assert codec.decode_parts([(codec.encode_parts(parts, ""), "")]) == [parts]


LAST = TextPart(text="Said.")
LIKE_IT = {"type": "text"}


@pytest.mark.parametrize(
    "items",
    [
        (LAST,),
        (TextPart(text=""), LAST),
        (ToolCall(id="1", name="f", result=ToolResult(value=[LIKE_IT])), LAST),
        (LAST, ToolCall(id="1", name="f", result=ToolResult(value=[LIKE_IT]))),
        (LAST, ProviderToolCall(name="p", data=LIKE_IT)),
        (LAST.model_copy(update={"provider_metadata": {"id": 1}}),),
        (TextPart(text="Other."), LAST),
        (RefusalPart(text="Said."),),
        (),
    ],
)
def test_text_that_the_content_says_comes_back_from_there_and_no_other_does(items):
    steps = Step(items=(TextPart(text="Said."),)), Step(items=items)
    text = codec.encode_steps(steps, "Said.")
    assert codec.decode_steps([(text, "Said.")]) == [steps]
    assert told([(text, "Said.")]) == [[step.items for step in steps]]
    assert text.endswith('{"type":"text"}]]') == (items[-1:] == (LAST,))
    assert json.loads(codec.whole_steps((text, "Said."))) == [
        {"items": codec.encode_items(step.items)} for step in steps
    ]
    if all(isinstance(item, TextPart | RefusalPart) for item in items):
        text = codec.encode_parts(items, "Said.")
        assert codec.decode_parts([(text, "Said.")]) == [items]
        assert json.loads(codec.whole_parts((text, "Said."))) == codec.encode_items(items)


def test_what_was_edited_in_the_content_is_what_was_said():
    text = codec.encode_parts((LAST,), "Said.")
    assert codec.decode_parts([(text, "Removed.")]) == [(TextPart(text="Removed."),)]


def test_texts_are_plain_ascii_without_what_is_a_default():
    text = codec.encode_steps((Step(items=(TextPart(text="ü"),)),), "")
    assert text == r'[[{"type":"text","text":"\u00fc"}]]'


def test_replay_blocks_stay_out():
    step = STEP.model_copy(update={"replay": Replay(provider="p", model="m")})
    assert codec.decode_steps([(codec.encode_steps((step,), ""), "")]) == [(STEP,)]


def test_fields_of_a_later_version_are_passed_over():
    text = '[[{"type":"text","text":"a","new":1}]]\n[{"new":{}}]'
    assert codec.decode_steps([(text, "")]) == [(Step(items=(TextPart(text="a"),)),)]


def test_what_a_model_is_not_told_stands_in_a_line_of_its_own():
    told, rest = codec.encode_steps((STEP, Step()), "").split("\n")
    assert len(json.loads(told)) == 2
    assert json.loads(rest) == [
        {
            "finish_reason": "tool_calls",
            "usage": {"input_tokens": 1, "reasoning_tokens": 2},
            "provider": "p",
            "model": "m",
        },
        {},
    ]
    assert codec.encode_steps((Step(), Step()), "") == "[[],[]]"


@pytest.mark.parametrize(
    "text",
    ['[{"type":"secret of the future"}]', "secret", '["secret', "[" * 100_000, '"secret"', "[],[]"],
)
def test_parts_that_cannot_be_read_are_an_error_that_quotes_nothing(text):
    with pytest.raises(UnsupportedFormat) as caught:
        codec.decode_parts([(text, "")])
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "secret",
        '[[{"type":"secret"}]]',
        '[{"items":[]}]',
        "[1]",
        "1",
        '["secret"]',
        "[[],[]]\n[{}]",
        "[]\n[{}]",
        "[[]],[[]]",
        "[[]]\nsecret",
        '[[]]\n[{"usage":"secret"}]',
        "[[]]\n[{}]\n[{}]",
    ],
)
def test_steps_that_cannot_be_read_are_an_error_and_shown_as_they_are(text):
    with pytest.raises(UnsupportedFormat) as caught:
        codec.decode_steps([(text, "")])
    assert "secret" not in str(caught.value)
    assert "secret" not in text or "secret" in codec.whole_steps((text, ""))


def test_a_later_format_is_refused():
    codec.check_format(codec.FORMAT)
    with pytest.raises(UnsupportedFormat, match="Upgrade"):
        codec.check_format(codec.FORMAT + 1)
