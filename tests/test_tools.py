"""Functions as tools: what a model is told of them, what they are given, how they may fail."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from django.http import HttpRequest
from pydantic import Field

from agent_memory import tool
from agent_memory.tools import Tool, tools_by_name
from tests.agents import run_tool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


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


def test_methods_are_tools_too() -> None:
    class Shop:
        def sell(self, count: int) -> int:
            """Sell."""
            return count + 1

    sell = Tool(Shop().sell)
    assert list(parameters(Shop().sell)) == ["count"]
    assert sell.spec.description == "Sell."
    assert run_tool(sell, count=1).value == 2


# Options.


def test_name_and_time_out_are_options_and_the_function_stays_callable() -> None:
    @tool(name="seek", timeout=90)
    def look_up(city: str) -> str:
        return city.upper()

    assert (look_up.name, look_up.spec.name, look_up.timeout) == ("seek", "seek", 90)
    assert look_up("Rome") == look_up(city="Rome") == "ROME"
    assert tool(len_of).timeout is None


def len_of(text: str) -> int:
    return len(text)


@pytest.mark.parametrize("timeout", [0, -1])
def test_a_time_out_is_positive(timeout: float) -> None:
    with pytest.raises(ValueError, match="positive number of seconds"):
        tool(timeout=timeout)(len_of)


@pytest.mark.parametrize("name", ["two words", "größe", "a.b", "x" * 65, "\0"])
def test_a_name_that_no_api_takes_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="A tool's name"):
        Tool(len_of, name=name)


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="Two tools are named 'len_of'"):
        tools_by_name([len_of, Tool(len_of)])
    assert list(tools_by_name([len_of, Tool(len_of, name="size")])) == ["len_of", "size"]


def refused_functions() -> list[tuple[Any, str]]:
    def args(*texts: str) -> None: ...
    def kwargs(**texts: str) -> None: ...
    def positional(text: str, /) -> None: ...
    def unhinted(text: str, size) -> None: ...  # type: ignore[no-untyped-def]
    def field(text: str = Field("a")) -> None: ...

    def request(request: HttpRequest) -> None: ...

    def callback(call: Callable[[], None]) -> None: ...

    return [
        (args, r"'args' takes \*texts"),
        (kwargs, r"'kwargs' takes \*\*texts"),
        (positional, "'positional' takes text"),
        (unhinted, "a type hint for 'size'"),
        (field, r"Annotated\[\.\.\., Field"),
        (request, "'request' has a type hint that JSON has no form for: .*HttpRequest"),
        (callback, "'callback' has a type hint that JSON has no form for"),
        ("len_of", "is a function, not 'len_of'"),
    ]


@pytest.mark.parametrize(("function", "match"), refused_functions())
def test_a_function_that_a_model_cannot_call_is_refused_by_name(function: Any, match: str) -> None:
    with pytest.raises(TypeError, match=match):
        tool(function)
