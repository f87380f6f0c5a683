"""What a tool returns, as JSON data that every store holds and every model can read."""

from __future__ import annotations

import enum
import functools
import io
import json
import logging
import re
from collections import OrderedDict, UserDict, deque, namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any
from uuid import UUID

import pydantic
import pytest
from django.contrib.auth.models import AnonymousUser, Group, User
from django.test import override_settings
from django.utils import translation
from django.utils.functional import SimpleLazyObject
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy
from pydantic import BaseModel

from agent_memory import Agent
from agent_memory.messages import ToolResult
from agent_memory.results import DEPTH
from agent_memory.tools import Tool
from tests.agents import ask, calling, in_every_way, run_tool, scripted


class Colour(enum.Enum):
    RED = "red"
    NOWHERE = (1, 2)


class Label(str, enum.Enum):  # noqa: UP042  the older form
    NEW = "new"


class Level(enum.IntEnum):
    HIGH = 3


class Address(BaseModel):
    street: str
    number: Any = 1


@dataclass
class Size:
    width: Any
    height: int = field(default=2, repr=False)


@pydantic.dataclasses.dataclass
class Weight:
    kilos: Decimal


Point = namedtuple("Point", "x y")


def nested(levels: int) -> Any:
    return functools.reduce(lambda inner, _: [inner], range(levels), "core")


def count() -> Iterator[int]:
    yield from (1, 2)


RESULTS: list[tuple[Any, Any]] = [
    ("text", "text"),
    ("\ud800 and \0", "\ud800 and \0"),
    ("", ""),
    (None, None),
    (True, True),
    (0.1, 0.1),
    (10**400, 10**400),
    ({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}),
    (["\ud800", "\0"], ["\ud800", "\0"]),
    ((1, 2), [1, 2]),
    (Point(1, Decimal(2)), [1, "2"]),
    ({1}, [1]),
    (frozenset({"a"}), ["a"]),
    (deque([1, 2]), [1, 2]),
    (range(2), [0, 1]),
    (map(str, [1, 2]), ["1", "2"]),
    ({"a": 1}.keys(), ["a"]),
    ({"a": 1}.values(), [1]),
    ({"a": 1}.items(), [["a", 1]]),
    (OrderedDict(a=1), {"a": 1}),
    (MappingProxyType({"a": {2}}), {"a": [2]}),
    (UserDict(a=1), {"a": 1}),
    ({1: "one", None: "none", False: 0, 1.5: 2},
     {"1": "one", "None": "none", "false": 0, "1.5": 2}),
    ({date(2024, 2, 29): 1, UUID(int=1): 2, Decimal("1.0"): 3, Colour.RED: 4, Label.NEW: 5},
     {"2024-02-29": 1, str(UUID(int=1)): 2, "1.0": 3, "red": 4, "new": 5}),
    (date(2024, 2, 29), "2024-02-29"),
    (datetime(2024, 2, 29, 12, 30, tzinfo=UTC), "2024-02-29T12:30:00Z"),
    (time(12, 30), "12:30:00"),
    (timedelta(days=1, seconds=2), "P1DT2S"),
    ([Decimal("1.10")], ["1.10"]),
    (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (Path("/a"), "/a"),
    (Address(street="Main"), {"street": "Main", "number": 1}),
    ([Address(street="\ud800", number={"at": [date(2024, 2, 29)]})],
     [{"street": "\ud800", "number": {"at": ["2024-02-29"]}}]),
    ([Size(width={3})], [{"width": [3], "height": 2}]),
    (Weight(Decimal("1.5")), {"kilos": "1.5"}),
    (Colour.RED, "red"),
    (Colour.NOWHERE, [1, 2]),
    (Label.NEW, "new"),
    (Level.HIGH, 3),
    (mark_safe("<b>"), "<b>"),
    (float("nan"), "NaN"),
    ({"least": float("-inf"), "most": float("inf")}, {"least": "-Infinity", "most": "Infinity"}),
    (Decimal("NaN"), "NaN"),
    (nested(DEPTH), nested(DEPTH)),
]  # fmt: skip


def give(value: Any) -> Tool:
    return Tool(lambda: value, name="give")


@pytest.mark.parametrize(("value", "expected"), RESULTS)
def test_a_result_becomes_json_data(value: Any, expected: Any) -> None:
    result = run_tool(give(value))
    assert result == ToolResult(value=expected)
    assert type(result.value) is type(expected)
    assert ToolResult.model_validate(json.loads(json.dumps(result.model_dump()))) == result


@in_every_way
def test_what_a_tool_yields_is_a_list(way: str) -> None:
    agent = Agent(provider=scripted(calling("count"), "Two."), tools=[count])
    assert ask(way, agent).turn.tool_results() == (ToolResult(value=[1, 2]),)


@pytest.mark.parametrize("value", [gettext_lazy("Yes"), [Address(street="", number=None)]])
def test_a_lazy_translation_is_translated_when_the_tool_runs(value: Any) -> None:
    if isinstance(value, list):
        value[0].number = gettext_lazy("Yes")
    with translation.override("de"):
        assert "Ja" in run_tool(give(value)).text


# What is refused.


def loop() -> list[Any]:
    looped: list[Any] = []
    looped.append(looped)
    return looped


def looped_model() -> Address:
    address = Address(street="")
    address.number = [address]
    return address


async def coroutine() -> int:
    raise AssertionError


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: b"bytes", "The tool returned bytes, .*base64"),
    (lambda: {"file": [bytearray(b"a")]}, "returned bytearray"),
    (lambda: Size(width=memoryview(b"a")), "returned memoryview"),
    (lambda: {b"key": 1}, "returned bytes"),
    (lambda: Address(street="", number=b"\xff"), "returned Address that cannot be written as JSON"),
    (object, "returned object, which JSON has no form for"),
    (lambda: [object()], "returned object, which JSON has no form for"),
    (lambda: {(1, object()): 1}, "returned object|a tuple"),
    (lambda: {frozenset({1}): 1}, "returned frozenset that cannot be written as JSON"),
    (lambda: Address(street="", number=object()), "returned object, which JSON has no form for"),
    (lambda: Size, "returned type"),
    (lambda: io.BytesIO(b"line"), "returned bytes"),
    (lambda: SimpleNamespace(a=1), "returned SimpleNamespace, which"),
    (lambda: User(username="ada"), "returned User, a model instance: return the fields"),
    (lambda: [SimpleLazyObject(lambda: User())], "returned User, a model instance"),
    (lambda: AnonymousUser(), "returned AnonymousUser"),
    (lambda: Group.objects.all(), r"returned QuerySet: return a list, such as list\(orders.values"),
    (lambda: Group.objects.values("name"), "returned QuerySet: return a list"),
    (lambda: Address(street="", number=Group.objects.all()), "returned QuerySet: return a list"),
    (lambda: Group.objects, "returned .*Manager: return a list"),
    (coroutine, "returned coroutine: make it an async function"),
    (loop, "nested more than 100 deep, or holds itself"),
    (looped_model, "returned Address that cannot be written as JSON"),
    (lambda: nested(DEPTH + 1), "nested more than 100 deep"),
    (lambda: nested(100_000), "nested more than 100 deep"),
    (lambda: 10**5000, "an integer of too many digits"),
    (lambda: [Decimal(1), {"a": 10**5000}], "an integer of too many digits"),
    (lambda: {1: "a", "1": "b"}, "keys that are the same text"),
]


@pytest.mark.parametrize(("make", "match"), REFUSED)
def test_what_json_cannot_hold_is_refused_by_name(
    make: Callable[[], Any], match: str, caplog: pytest.LogCaptureFixture
) -> None:
    result = run_tool(Tool(lambda: make(), name="give"))
    assert result.failed
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("agent_memory", logging.ERROR)
    assert record.exc_info is not None
    assert re.search(match, result.text)


@in_every_way
def test_the_turn_goes_on_after_a_result_that_is_refused(way: str) -> None:
    agent = Agent(provider=scripted(calling("give"), "Sorry."), tools=[give(b"bytes")])
    response = ask(way, agent)
    assert response.text == "Sorry."
    assert [result.failed for result in response.turn.tool_results()] == [True]


# Limits.


@pytest.mark.parametrize(("text", "failed"), [("é" * 10, False), ("é" * 10 + "e", True)])
def test_a_result_over_the_limit_is_a_failed_one(text: str, failed: bool) -> None:
    with override_settings(AGENT_MEMORY={"LIMITS": {"tool_result": 20}}):
        for value in (text, ToolResult(value=text)):
            result = run_tool(give(value))
            assert result.failed is failed
            if failed:
                assert result.text == "The result is too large: 21 bytes, 20 are allowed."


# Results that a tool makes itself.


def test_a_tool_may_return_a_result_and_mark_it_failed() -> None:
    assert run_tool(give(ToolResult(value={"a": 1}))) == ToolResult(value={"a": 1})
    own = ToolResult(value="No order has this number.", failed=True)
    assert run_tool(give(own)) == own
    assert run_tool(give(ToolResult(value=[float("nan")], failed=True))) == ToolResult(
        value=["NaN"], failed=True
    )
