"""What a function takes: what a model is told of it, and what arrives of what a model gives."""

from __future__ import annotations

import enum
import functools
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

import pytest
from django.http import HttpRequest
from pydantic import BaseModel, ConfigDict, Field, Strict

from agent_memory import ToolContext, tool
from agent_memory.messages import ToolCall, ToolResult
from agent_memory.signatures import PROBLEMS
from agent_memory.tools import Tool
from tests.agents import calling, run_tool

if TYPE_CHECKING:
    from fractions import Fraction


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    street: str
    number: int = 1


class Strictly(BaseModel):
    model_config = ConfigDict(strict=True)

    day: date
    number: int = 1


@dataclass
class Size:
    width: int
    height: int = 2


def parameters(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the JSON schema of each parameter."""
    properties: dict[str, Any] = Tool(function).spec.parameters["properties"]
    return properties


# The schema.


def test_a_tool_is_told_by_its_name_its_docstring_and_its_hints() -> None:
    def look_up(city: str, days: int = 1) -> str:
        """
        Return the weather.

        In a city.
        """
        raise AssertionError

    spec = Tool(look_up).spec
    assert (spec.name, spec.description) == ("look_up", "Return the weather.\n\nIn a city.")
    assert spec.parameters == {
        "title": "look_up",
        "type": "object",
        "additionalProperties": False,
        "required": ["city"],
        "properties": {
            "city": {"title": "City", "type": "string"},
            "days": {"title": "Days", "type": "integer", "default": 1},
        },
    }


def test_a_tool_without_parameters_and_docstring_takes_an_empty_object() -> None:
    def now() -> str:
        raise AssertionError

    spec = Tool(now).spec
    assert spec.description == ""
    assert spec.parameters["type"] == "object"
    assert spec.parameters["properties"] == {}


def test_hints_tell_descriptions_bounds_choices_and_what_may_be_null() -> None:
    def find(
        text: Annotated[str, Field(description="What to look for.", min_length=2)],
        colour: Colour,
        sort: Literal["asc", "desc"] = "asc",
        limit: int | None = None,
    ) -> None: ...

    spec = Tool(find).spec
    properties = spec.parameters["properties"]
    assert properties["text"]["description"] == "What to look for."
    assert properties["text"]["minLength"] == 2
    assert properties["sort"]["enum"] == ["asc", "desc"]
    assert properties["limit"]["anyOf"] == [{"type": "integer"}, {"type": "null"}]
    assert properties["limit"]["default"] is None
    assert spec.parameters["$defs"]["Colour"]["enum"] == ["red", "blue"]
    assert spec.parameters["required"] == ["text", "colour"]


@pytest.mark.parametrize("name", ["schema", "json", "copy", "model_config", "model_dump", "_id"])
def test_a_parameter_may_have_any_name(name: str) -> None:
    source = f"def look_up({name}: int, self: int = 2) -> int:\n    return {name} * self"
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    look_up = namespace["look_up"]
    assert parameters(look_up)[name]["type"] == "integer"
    assert run_tool(look_up, **{name: 3}).value == 6
    assert f"{name}: Input should be" in run_tool(look_up, **{name: "x"}).text


def test_an_alias_in_a_hint_does_not_rename_the_parameter() -> None:
    def look_up(city: Annotated[str, Field(alias="town")]) -> str:
        return city

    assert list(parameters(look_up)) == ["city"]
    assert run_tool(look_up, city="Rome").value == "Rome"


def test_a_default_that_json_has_no_form_for_is_left_out_of_the_schema() -> None:
    missing = object()

    def look_up(city: Any = missing) -> bool:
        return city is missing

    assert "default" not in parameters(look_up)["city"]
    assert Tool(look_up).spec.parameters.get("required", []) == []
    assert run_tool(look_up).value is True


# What may be a tool.


class Shop:
    def sell(self, count: int) -> int:
        """Sell."""
        return count + 1

    def __call__(self, count: int) -> int:
        """Count."""
        return count + 2


class Cafe:
    async def __call__(self, count: int) -> int:
        return count + 3


def multiply(count: int, by: int, plus: int = 0) -> int:
    """Multiply."""
    return count * by + plus


@pytest.mark.parametrize(
    ("function", "name", "description", "result"),
    [
        (Shop().sell, "sell", "Sell.", 3),
        (Shop(), "shop", "Count.", 4),
        (Cafe(), "cafe", "", 5),
        (functools.partial(multiply, by=5), "multiply", "Multiply.", 10),
        (functools.partial(functools.partial(multiply, by=5), plus=1), "multiply", "Multiply.", 11),
        (functools.partial(Shop().sell), "sell", "Sell.", 3),
        (functools.lru_cache(Shop().sell), "sell", "Sell.", 3),
    ],
)
def test_methods_objects_and_partials_are_tools_too(
    function: Callable[..., Any], name: str, description: str, result: int
) -> None:
    spec = Tool(function).spec
    assert (spec.name, spec.description) == (name, description)
    assert "count" in spec.parameters["required"]
    assert run_tool(function, count=2).value == result


def test_what_a_partial_has_given_no_model_may_change() -> None:
    triple = functools.partial(multiply, by=3)
    assert list(parameters(triple)) == ["count", "plus"]
    refused = run_tool(triple, count=2, by=100)
    assert refused.failed
    assert "by: Extra inputs are not permitted" in refused.text


def functions_with_odd_parameters() -> list[tuple[Any, str]]:
    def args(*texts: str) -> None: ...
    def kwargs(**texts: str) -> None: ...
    def positional(text: str, /) -> None: ...
    def unhinted(text: str, size) -> None: ...
    def method(self, text: str) -> None: ...
    def field(text: str = Field("a")) -> None: ...

    return [
        (args, r"'args' takes \*texts"),
        (kwargs, r"'kwargs' takes \*\*texts"),
        (positional, "'positional' takes text"),
        (unhinted, "a type hint for 'size'"),
        (method, "is a method without its object"),
        (field, r"Annotated\[\.\.\., Field"),
    ]


def functions_with_odd_hints() -> list[tuple[Any, str]]:
    def unimported(share: Fraction) -> None: ...
    def request(request: HttpRequest) -> None: ...
    def callback(call: Callable[[], None]) -> None: ...
    def two(context: ToolContext, again: ToolContext | None) -> None: ...
    def forged(contexts: list[ToolContext]) -> None: ...
    def mixed(context: ToolContext | str) -> None: ...

    return [
        (unimported, "not there at run time: name 'Fraction' is not defined.*TYPE_CHECKING"),
        (request, "'request' has a type hint that JSON has no form for: .*HttpRequest"),
        (callback, "'callback' has a type hint that JSON has no form for"),
        (two, "'two' takes its ToolContext twice: context, again"),
        (forged, "A model cannot give a ToolContext"),
        (mixed, "A model cannot give a ToolContext"),
    ]


async def stream(text: str) -> AsyncIterator[str]:
    yield text


NO_TOOLS: list[tuple[Any, str]] = [
    (stream, "'stream' is an async generator"),
    (Shop, r"Shop is a class: give an instance, Shop\(...\)"),
    (Tool(multiply), "'multiply' is a tool already"),
    ("len_of", "is a function, not 'len_of'"),
]


@pytest.mark.parametrize(
    ("function", "match"),
    [*functions_with_odd_parameters(), *functions_with_odd_hints(), *NO_TOOLS],
)
def test_a_function_that_a_model_cannot_call_is_refused_by_name(function: Any, match: str) -> None:
    with pytest.raises(TypeError, match=match):
        tool(function)


# Arguments.


def test_arguments_arrive_as_what_the_hints_say() -> None:
    got: dict[str, Any] = {}

    @tool
    def take(
        day: date,
        moment: datetime,
        span: timedelta,
        price: Decimal,
        key: UUID,
        colour: Colour,
        address: Address,
        size: Size,
        pair: tuple[int, str],
        tags: set[str],
        count: int,
    ) -> None:
        got["all"] = (day, moment, span, price, key, colour, address, size, pair, tags, count)

    result = run_tool(
        take,
        day="2024-02-29",
        moment="2024-02-29T12:30:00Z",
        span="PT90S",
        price="1.10",
        key="12345678123456781234567812345678",
        colour="blue",
        address={"street": "Main"},
        size={"width": 3},
        pair=[1, "a"],
        tags=["x", "x"],
        count="3",
    )
    assert result == ToolResult()
    assert got["all"] == (
        date(2024, 2, 29),
        datetime(2024, 2, 29, 12, 30, tzinfo=UTC),
        timedelta(seconds=90),
        Decimal("1.10"),
        UUID("12345678-1234-5678-1234-567812345678"),
        Colour.BLUE,
        Address(street="Main", number=1),
        Size(width=3, height=2),
        (1, "a"),
        {"x"},
        3,
    )


def test_strict_hints_take_from_text_what_json_has_no_form_for_and_nothing_else() -> None:
    def take(place: Strictly, since: Annotated[date, Strict()]) -> bool:
        return place.day == since == date(2024, 2, 29)

    assert run_tool(take, place={"day": "2024-02-29"}, since="2024-02-29").value is True
    refused = run_tool(take, place={"day": "2024-02-29", "number": "1"}, since="2024-02-29")
    assert "place.number: Input should be a valid integer" in refused.text


def test_a_default_is_the_functions_own() -> None:
    missing: list[str] = []

    @tool
    def take(text: list[str] | None = missing) -> bool:
        return text is missing

    assert run_tool(take).value is True
    assert run_tool(take, text=None).value is False


@pytest.mark.parametrize(
    "text",
    ["", "\0", "\ud800", "a\udc80b", 10**400, functools.reduce(lambda x, _: [x], range(240), "x")],
)
def test_odd_arguments_arrive_as_they_are(text: Any) -> None:
    @tool
    def take(text: Any) -> bool:
        return bool(text == given)

    given = text
    assert run_tool(take, text=text).value is True


def test_the_problems_of_bad_arguments_are_named_without_their_values() -> None:
    def take(address: Address, colour: Colour) -> None:
        raise AssertionError

    result = run_tool(take, address={"street": 4711, "number": "0815x"}, colour="secret")
    assert result.failed
    assert "address.street: Input should be a valid string" in result.text
    assert "colour: Input should be 'red' or 'blue'" in result.text
    assert "4711" not in result.text
    assert "0815" not in result.text
    assert "secret" not in result.text


def test_of_many_problems_some_are_told_and_how_many_more() -> None:
    def take(numbers: list[int]) -> None:
        raise AssertionError

    text = run_tool(take, numbers=["x"] * (PROBLEMS + 7)).text
    assert text.count("Input should be a valid integer") == PROBLEMS
    assert text.endswith("; and 7 more")


def test_arguments_that_were_no_json_run_nothing() -> None:
    def take() -> None:
        raise AssertionError

    call = ToolCall(id="call-1", name="take", raw_arguments="{")
    assert Tool(take).run(call) == ToolResult(
        value="The arguments are not a JSON object.", failed=True
    )


def test_a_call_runs_with_what_a_person_made_of_its_arguments() -> None:
    def double(number: int) -> int:
        return number * 2

    call = calling("double", number=1)
    assert Tool(double).run(call.model_copy(update={"edited": {"number": "4"}})).value == 8
    refused = Tool(double).run(call.model_copy(update={"edited": {}}))
    assert refused.failed
    assert "number: Field required" in refused.text


def test_arguments_can_be_checked_without_a_run() -> None:
    def take(number: int) -> None:
        raise AssertionError

    made = Tool(take)
    made.check_arguments({"number": 1})
    with pytest.raises(ValueError, match="number: Input should be a valid integer"):
        made.check_arguments({"number": "many"})
    with pytest.raises(ValueError, match="size: Extra inputs are not permitted"):
        made.check_arguments({"number": 1, "size": 2})
