"""The parts of messages: files have one source, and what is said of a part can be written as JSON."""

from __future__ import annotations

import copy
import math
import pickle
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from agent_memory import AnonymousAgent
from agent_memory.approvals import Edit
from agent_memory.history import check_leading
from agent_memory.messages import (
    DocumentPart,
    ImagePart,
    Message,
    RefusalPart,
    Step,
    TextPart,
    ToolCall,
    ToolResult,
    Usage,
)
from agent_memory.parts import trusting
from agent_memory.records import StoredMessage
from agent_memory.testing import ScriptedProvider


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
    assert image.size == Message(content=[image]).size == 6000
    assert "<6000 bytes>" in repr(image)
    assert "secret" not in f"{image} {image!r} {Message(content=[image])!r}"
    assert ImagePart(url="https://example.com/a.png").size == 0


def test_the_size_of_a_message_is_that_of_its_texts_in_utf_8_and_of_its_files():
    parts = [TextPart(text="\u00e4\ud800"), RefusalPart(text="no"), ImagePart(data=b"abc")]
    assert [part.size for part in parts] == [5, 2, 3]
    assert Message(content=parts).size == 10


NO_JSON = [math.nan, math.inf, -math.inf, [{"a": math.nan}], 10**4300, {"a": [-(10**5000)]}]
JSON = [10**4299, -0.0, 5e-324, "\ud800\0", {"": [None, True, {}]}]


def parts_with(value: Any) -> list[Any]:
    return [
        TextPart(text="Look.", provider_options={"odd": value}),
        ImagePart(data=b"a", media_type="image/png", provider_options={"odd": value}),
    ]


@pytest.mark.parametrize("value", NO_JSON, ids=lambda value: f"{type(value).__name__}")
def test_options_that_json_has_no_form_for_are_refused_before_the_model_is_called(value):
    provider = ScriptedProvider()
    for part in parts_with(value):
        with pytest.raises(ValueError, match="a number that JSON has no form for"):
            AnonymousAgent(provider=provider, model="test").prompt(Message(content=[part]))
        with pytest.raises(ValueError, match="a number that JSON has no form for"):
            check_leading([Message("developer", [part])])
    with pytest.raises(ValueError, match="JSON-able"):
        Edit({"odd": value})
    assert provider.requests == []


@pytest.mark.parametrize("value", JSON, ids=lambda value: f"{type(value).__name__}")
def test_options_that_are_json_are_taken(value):
    for part in parts_with(value):
        assert check_leading([Message("developer", [part])])
    assert Edit({"odd": value}).arguments == {"odd": value}


TEXT = TextPart(text="a")
CALL = ToolCall(id="1", name="f", result=ToolResult(value=[1]))
VALUES = [
    *(TEXT, CALL, CALL.result, Usage(input_tokens=1), Message("user", "a")),
    Step(items=(TEXT, CALL), model="m"),
    StoredMessage("1", "user", "a", datetime(2026, 1, 1, tzinfo=UTC), 0, meta={"a": 1}),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_of_fields_that_are_valid_already_is_like_one_that_was_validated(value):
    made = trusting(type(value))(**vars(value))
    for each in (made, pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made)):
        assert each == value
        assert value == each
        assert repr(each) == repr(value)
    name = next(iter(vars(value)))
    with pytest.raises((AttributeError, ValidationError)):
        setattr(made, name, None)
    assert made == value
