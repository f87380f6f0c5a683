"""The reference: it tells of every public name, by its docstring or in a table."""

from __future__ import annotations

import ast
import inspect
import re
from argparse import ArgumentParser
from pkgutil import iter_modules
from typing import Any

import pytest
from django.core.management import load_command_class
from django.core.management.base import BaseCommand
from django.db.models import Model
from django.dispatch import Signal

import agent_memory
from agent_memory import (
    approvals,
    checks,
    conf,
    exceptions,
    http_errors,
    messages,
    models,
    ownership,
    providers,
    querysets,
    records,
    responses,
    signals,
    sse,
    stores,
    testing,
    views,
)
from agent_memory.calls import PromptOptions, ResumeOptions
from agent_memory.conversations import FLOW, RemembersConversations
from agent_memory.management import commands
from agent_memory.stores import ConversationStore
from agent_memory.tools import Tool, ToolOptions
from tests.directives import REFERENCE, Directive, directives, is_told, told_members
from tests.pages import Page

NAME = re.compile(r"`(\w[\w.]*)[^`]*`")

PATH_OF_A_TURN = {*FLOW, "equip", "discarding", "attributes"}
"""What drivers and the mixin call; no user does."""


def rows(page: str, *headings: str) -> list[list[str]]:
    """Return the cells of a page's tables, or of those under some headings; heads left out."""
    found: list[list[str]] = []
    heading, seen = "", set()
    for _, line in Page(REFERENCE / f"{page}.md").prose:
        if line.startswith("#"):
            heading = line.strip("# ")
            seen.add(heading)
        elif headings and heading not in headings:
            continue
        elif line.startswith("|---"):
            found.pop()
        elif line.startswith("|"):
            found.append([cell.strip() for cell in line.strip("|").split(" | ")])
    assert found
    assert seen >= set(headings)
    return found


def listed(page: str, *headings: str) -> list[str]:
    """Return the names in the first column of tables."""
    return [name for row in rows(page, *headings) for name in NAME.findall(row[0])]


def literal(cell: str) -> Any:
    return ast.literal_eval(cell.strip("`"))


def public(owner: type) -> set[str]:
    """Return the names that a class defines itself and that do not begin with an underscore."""
    return {name for name in vars(owner) if not name.startswith("_")}


def classes(module: Any, base: type = object) -> dict[str, type]:
    """Return the public classes that a module defines."""
    return {
        name: value
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and issubclass(value, base)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    }


def is_member(owner: type, name: str) -> bool:
    """Tell a method or a property from the field of a value."""
    member = inspect.getattr_static(owner, name)
    return inspect.isfunction(member) or isinstance(member, property | classmethod)


# What is made of docstrings.


def test_whatever_is_told_has_a_docstring() -> None:
    assert [
        each.path
        for each in directives()
        if each.kind != "attribute" and not inspect.getdoc(each.target)
    ] == []


def test_a_name_that_there_is_not_is_found() -> None:
    with pytest.raises(ImportError, match="Massage"):
        Directive.of("class", "agent_memory.messages.Massage")


def test_nothing_is_told_twice() -> None:
    paths = [each.path for each in directives()]
    assert [path for path in paths if paths.count(path) > 1] == []


@pytest.mark.parametrize("module", [agent_memory, stores, testing, providers, ownership])
def test_every_public_name_is_told(module: Any) -> None:
    assertions = told_members(testing.ConversationAssertions)
    assert [
        name
        for name in module.__all__
        if not (is_told(getattr(module, name)) or name in {"conversation_store", *assertions})
    ] == []


@pytest.mark.parametrize("module", [messages, records, responses, approvals])
def test_every_value_is_told_with_its_members(module: Any) -> None:
    for name, value in classes(module).items():
        if value is not messages.Value:
            assert is_told(value), name
            there = {each for each in public(value) if is_member(value, each)}
            assert there - told_members(value) == set(), name


def test_every_method_of_an_agent_is_told() -> None:
    there = {name for owner in RemembersConversations.__mro__[:-1] for name in public(owner)}
    there -= PATH_OF_A_TURN | {*RemembersConversations.attributes}
    assert there - told_members(RemembersConversations) == set()


def test_every_method_of_a_store_is_told() -> None:
    there = {name for owner in ConversationStore.__mro__[:-1] for name in public(owner)}
    assert told_members(ConversationStore) == {name for name in there if name[1:] not in there}


def test_every_model_is_told_and_every_method_of_its_querysets() -> None:
    assert all(map(is_told, classes(models, Model).values()))
    for queryset in (querysets.ConversationQuerySet, querysets.ToolApprovalQuerySet):
        assert told_members(queryset) == public(queryset)


def test_what_serves_http_is_told() -> None:
    for function in (sse.event_stream, sse.aevent_stream, http_errors.error_response):
        assert is_told(function)
    assert is_told(views.AttachmentView)


def test_every_error_is_told_and_listed_in_the_order_of_the_code() -> None:
    assert listed("errors") == [*classes(exceptions)]
    assert all(map(is_told, classes(exceptions).values()))


@pytest.mark.parametrize("options", [PromptOptions, ResumeOptions, ToolOptions])
def test_every_option_is_told_in_its_docstring(options: type) -> None:
    assert re.findall(r"^- ``(\w+)``", inspect.getdoc(options) or "", re.MULTILINE) == [
        *options.__annotations__
    ]


def test_every_option_of_a_tool_is_told_with_its_default() -> None:
    defaults = re.findall(
        r"^- ``(\w+)`` \(``(.+?)``\)", inspect.getdoc(ToolOptions) or "", re.MULTILINE
    )
    assert {name: literal(text) for name, text in defaults} == {
        name: getattr(Tool, name) for name in ToolOptions.__annotations__
    }


# What is told in tables.


def test_every_setting_is_listed_with_its_default() -> None:
    told = {row[0].strip("`"): literal(row[1]) for row in rows("settings", "Settings")}
    assert list(told.items()) == list(conf.DEFAULTS.items())


def test_every_key_of_attachments_is_listed_with_its_default() -> None:
    told = {row[0].strip("`"): literal(row[1]) for row in rows("settings", "Attachments")}
    types = [row[0].strip("`") for row in rows("settings", "Media types")]
    assert told | {"MEDIA_TYPES": tuple(types)} == conf.ATTACHMENTS


def test_every_table_is_listed_with_its_name() -> None:
    told = {name.strip("`"): table.strip("`") for name, table in rows("settings", "Tables")}
    assert told == conf.TABLES


def test_the_tree_of_errors_is_the_one_in_the_code() -> None:
    tree = inspect.cleandoc(exceptions.__doc__ or "").partition("::\n\n")[2]
    (block,) = [block for block in Page(REFERENCE / "errors.md").blocks if block.info == "text"]
    assert block.source.splitlines() == inspect.cleandoc(tree).splitlines()


def test_every_attribute_of_an_agent_is_listed_with_its_default() -> None:
    told = {row[0].strip("`"): literal(row[1]) for row in rows("agents", "Attributes")}
    assert told == {
        name: getattr(RemembersConversations, name) for name in RemembersConversations.attributes
    }


def test_every_signal_is_listed() -> None:
    there = [name for name, value in vars(signals).items() if isinstance(value, Signal)]
    assert sorted(listed("signals")) == sorted(there)


def test_every_check_is_listed() -> None:
    numbers = set(re.findall(r"\b[EW]\d{3}\b", inspect.getsource(checks)))
    assert listed("checks") == [f"agent_memory.{number}" for number in sorted(numbers)]


@pytest.mark.parametrize(
    "name", [module.name for module in iter_modules(commands.__path__) if module.name[0] != "_"]
)
def test_every_command_is_listed_with_its_options(name: str) -> None:
    command: Any = load_command_class("agent_memory", name)
    assert listed_options(f"`{name}`") == {
        option
        for action in own_actions(command)
        for option in action.option_strings or [action.dest]
    }


def own_actions(command: BaseCommand) -> list[Any]:
    parser = ArgumentParser(add_help=False)
    command.add_arguments(parser)  # type: ignore[arg-type]
    return parser._actions


def listed_options(heading: str) -> set[str]:
    return {row[0].strip("`").split()[0] for row in rows("commands", heading)}
