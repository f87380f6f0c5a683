"""What tools are given and what they give back, and where they run."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Group
from django.test import TestCase
from pydantic import BaseModel

from agent_memory import Agent, tool
from agent_memory.messages import ToolCall, ToolResult
from agent_memory.tools import Tool
from tests.agents import WAYS, ask, calling, in_every_way, run_tool, scripted


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    street: str
    number: int = 1


@dataclass
class Size:
    width: int
    height: int = 2


# Arguments.


def test_arguments_arrive_as_what_the_hints_say() -> None:
    got: dict[str, Any] = {}

    @tool
    def take(
        day: date,
        price: Decimal,
        key: UUID,
        colour: Colour,
        address: Address,
        size: Size,
        pair: tuple[int, str],
        tags: set[str],
    ) -> None:
        got["all"] = (day, price, key, colour, address, size, pair, tags)

    result = run_tool(
        take,
        day="2024-02-29",
        price="1.10",
        key="12345678123456781234567812345678",
        colour="blue",
        address={"street": "Main"},
        size={"width": 3},
        pair=[1, "a"],
        tags=["x", "x"],
    )
    assert result == ToolResult()
    assert got["all"] == (
        date(2024, 2, 29),
        Decimal("1.10"),
        UUID("12345678-1234-5678-1234-567812345678"),
        Colour.BLUE,
        Address(street="Main", number=1),
        Size(width=3, height=2),
        (1, "a"),
        {"x"},
    )


def test_a_default_is_the_functions_own() -> None:
    missing: list[str] = []

    @tool
    def take(text: list[str] | None = missing) -> bool:
        return text is missing

    assert run_tool(take).value is True
    assert run_tool(take, text=None).value is False


@pytest.mark.parametrize("text", ["", "\0", "\ud800", "a\udc80b", 10**400])
def test_odd_arguments_arrive_as_they_are(text: Any) -> None:
    @tool
    def take(text: Any) -> bool:
        return bool(text == given)

    given = text
    assert run_tool(take, text=text).value is True


def test_the_problems_of_bad_arguments_are_named_without_their_values() -> None:
    def take(address: Address, colour: Colour) -> None:
        raise AssertionError

    text = run_tool(take, address={"street": 4711, "number": "0815"}, colour="secret").text
    assert "address.street: Input should be a valid string" in text
    assert "colour: Input should be 'red' or 'blue'" in text
    assert "4711" not in text
    assert "secret" not in text


# Results.


class Label(str, enum.Enum):  # noqa: UP042  the older form
    NEW = "new"


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
    ({1: "one", None: "none"}, {"1": "one", "None": "none"}),
    (date(2024, 2, 29), "2024-02-29"),
    ([Decimal("1.10")], ["1.10"]),
    (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (Address(street="Main"), {"street": "Main", "number": 1}),
    ([Size(width=3)], [{"width": 3, "height": 2}]),
    (Colour.RED, "red"),
    (Label.NEW, "new"),
    (b"bytes", "bytes"),
    (float("nan"), "NaN"),
    ({"least": float("-inf"), "most": float("inf")}, {"least": "-Infinity", "most": "Infinity"}),
]


@pytest.mark.parametrize(("value", "expected"), RESULTS)
def test_a_result_becomes_json_data(value: Any, expected: Any) -> None:
    result = run_tool(Tool(lambda: value, name="give"))
    assert result == ToolResult(value=expected)
    assert type(result.value) is type(expected)
    assert isinstance(result.text, str)


def loop() -> list[Any]:
    looped: list[Any] = []
    looped.append(looped)
    return looped


def deep() -> Any:
    return functools.reduce(lambda inner, _: [inner], range(10_000), "core")


@pytest.mark.parametrize(
    "make", [object, lambda: [object()], lambda: b"\xff", loop, deep, lambda: 10**5000]
)
@in_every_way
def test_a_result_that_json_cannot_hold_fails_and_the_turn_goes_on(
    way: str, make: Callable[[], Any]
) -> None:
    give = Tool(make, name="give")
    response = ask(way, Agent(provider=scripted(calling("give"), "Sorry."), tools=[give]))
    assert response.text == "Sorry."
    assert [result.failed for result in response.turn.tool_results()] == [True]


# Where tools run.


@in_every_way
def test_async_tools_run_in_every_way(way: str) -> None:
    @tool
    async def double(number: int) -> int:
        if number < 0:
            raise ValueError
        return number * 2

    calls = [calling("double", "a", number=2), calling("double", "b", number=-1)]
    turn = ask(way, Agent(provider=scripted(calls, "Done."), tools=[double])).turn
    assert [(result.value, result.failed) for result in turn.tool_results()] == [
        (4, False),
        ("The tool failed: ValueError.", True),
    ]


class ToolsInATestCase(TestCase):
    """A tool sees the rows of the test's transaction, and the test sees the tool's."""

    def test_sync_tools_share_the_callers_connection_in_every_way(self) -> None:
        def rename(name: str) -> str:
            group = Group.objects.get()
            group.name, before = name, group.name
            group.save()
            return before

        Group.objects.create(name="first")
        for before, way in zip(("first", *WAYS), WAYS, strict=False):
            agent = Agent(provider=scripted(calling("rename", name=way), "Done."), tools=[rename])
            (result,) = ask(way, agent).turn.tool_results()
            assert result == ToolResult(value=before)
        assert Group.objects.get().name == WAYS[-1]


def test_arguments_that_were_no_json_run_nothing() -> None:
    def take() -> None:
        raise AssertionError

    call = ToolCall(id="call-1", name="take", raw_arguments="{")
    assert Tool(take).run(call) == ToolResult(
        value="The arguments are not a JSON object.", failed=True
    )
