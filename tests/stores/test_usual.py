"""What is read without a validator: alike whether it has the usual shape or nearly, or refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_memory.exceptions import UnsupportedFormat
from agent_memory.messages import Step, ToolCall, ToolResult, Usage
from agent_memory.stores import codec

USUAL: dict[str, Any] = {
    "type": "tool_call",
    "id": "1",
    "name": "f",
    "arguments": {"n": [1, None]},
    "result": {"value": {"failed": True}},
}
PLAIN = ToolCall(
    id="1", name="f", arguments={"n": [1, None]}, result=ToolResult(value={"failed": True})
)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {}),
        ({"new": 1}, {}),
        ({"result": {"value": "a", "new": 1}}, {"result": ToolResult(value="a")}),
        ({"result": {"failed": True}}, {"result": ToolResult(failed=True)}),
        ({"result": {}}, {"result": ToolResult()}),
        ({"result": None}, {"result": None}),
        ({"edited": {"n": 2}}, {"edited": {"n": 2}}),
    ],
)
def test_a_call_is_read_alike_whether_its_shape_is_usual_or_not(changes, expected):
    data = USUAL | changes
    for order in (data, dict(reversed(data.items()))):
        ((rounds,),) = codec.decode_rounds([(json.dumps([[order]]), "")])
        assert rounds == [PLAIN.model_copy(update=expected)]
        assert rounds[0].model_dump() == PLAIN.model_copy(update=expected).model_dump()


WRONG: list[tuple[str, Any]] = [
    *((name, wrong) for name in ("type", "id", "name") for wrong in (1, ["secret"], {}, None)),
    *(("arguments", wrong) for wrong in (1, ["secret"], "secret", None)),
    *(("result", wrong) for wrong in (1, ["secret"], "secret", {"failed": "secret"})),
    ("type", "secret"),
]


@pytest.mark.parametrize(("name", "wrong"), WRONG)
def test_a_call_of_a_usual_shape_with_a_wrong_value_is_refused(name, wrong):
    with pytest.raises(UnsupportedFormat) as caught:
        codec.decode_rounds([(json.dumps([[USUAL | {name: wrong}]]), "")])
    assert "secret" not in str(caught.value)


KNOWN: dict[str, Any] = {
    "finish_reason": "tool_calls",
    "usage": {"input_tokens": 1, "reasoning_tokens": 2},
    "provider": "p",
    "model": "m",
}
COUNTED = Step(
    finish_reason="tool_calls",
    usage=Usage(input_tokens=1, reasoning_tokens=2),
    provider="p",
    model="m",
)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {}),
        ({"new": 1}, {}),
        ({"items": []}, {}),
        ({"replay": None}, {}),
        ({"usage": {}}, {"usage": Usage()}),
        ({"usage": {"output_tokens": 10**30}}, {"usage": Usage(output_tokens=10**30)}),
        ({"usage": {"output_tokens": 3, "new": {}}}, {"usage": Usage(output_tokens=3)}),
        ({"usage": {"output_tokens": 3.0}}, {"usage": Usage(output_tokens=3)}),
    ],
)
def test_a_step_is_read_alike_whether_its_shape_is_usual_or_not(changes, expected):
    data = KNOWN | changes
    for order in (data, dict(reversed(data.items()))):
        ((step,),) = codec.decode_steps([(f"[[]]\n{json.dumps([order])}", "")])
        assert step == COUNTED.model_copy(update=expected)
        assert step.model_dump() == COUNTED.model_copy(update=expected).model_dump()


@pytest.mark.parametrize("name", KNOWN)
def test_a_step_reads_defaults_for_what_was_not_written(name):
    data = {other: value for other, value in KNOWN.items() if other != name}
    ((step,),) = codec.decode_steps([(f"[[]]\n{json.dumps([data])}", "")])
    assert step == COUNTED.model_copy(update={name: getattr(Step(), name)})


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *((name, wrong) for name in KNOWN for wrong in (1, ["secret"], None, True)),
        *((name, {"a": "secret"}) for name in KNOWN if name != "usage"),
        ("finish_reason", "secret"),
        *(("usage", {"input_tokens": wrong}) for wrong in ("secret", ["secret"], {}, None, 0.5)),
    ],
)
def test_a_step_of_a_usual_shape_with_a_wrong_value_is_refused(name, wrong):
    with pytest.raises(UnsupportedFormat) as caught:
        codec.decode_steps([(f"[[]]\n{json.dumps([KNOWN | {name: wrong}])}", "")])
    assert "secret" not in str(caught.value)
