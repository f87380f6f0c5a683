"""The reference pages: they list what there is, and nothing else."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from django.dispatch import Signal

from agent_memory import checks, conf, exceptions, ownership, responses, signals
from agent_memory.calls import PromptOptions, ResumeOptions
from agent_memory.conversations import FLOW, RemembersConversations
from agent_memory.models import Conversation, ToolApproval
from agent_memory.ownership import HasConversations
from agent_memory.participants import Participant
from agent_memory.responses import Event, Response
from agent_memory.stores import ConversationStore
from agent_memory.streams import AgentStream
from agent_memory.tools import Tool, ToolContext, ToolOptions
from tests.pages import Page

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
NAME = re.compile(r"`(\w[\w.]*)[^`]*`")

PATH_OF_A_TURN = {*FLOW, "equip", "discarding"}
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


def untold(page: str, names: set[str]) -> set[str]:
    """Return the names that a page does not hold as code."""
    text = (REFERENCE / f"{page}.md").read_text(encoding="utf-8")
    return {name for name in names if f"`{name}" not in text}


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


def test_every_error_is_listed_in_the_order_of_the_code() -> None:
    there = [
        name
        for name, value in vars(exceptions).items()
        if inspect.isclass(value) and value.__module__ == exceptions.__name__
    ]
    assert listed("errors") == there


def test_the_tree_of_errors_is_the_one_in_the_code() -> None:
    tree = inspect.cleandoc(exceptions.__doc__ or "").partition("::\n\n")[2]
    (block,) = [block for block in Page(REFERENCE / "errors.md").blocks if block.info == "text"]
    assert block.source.splitlines() == inspect.cleandoc(tree).splitlines()


def test_every_attribute_of_an_agent_is_listed_with_its_default() -> None:
    told = {row[0].strip("`"): literal(row[1]) for row in rows("agents", "Attributes")}
    assert told == {
        name: getattr(RemembersConversations, name) for name in RemembersConversations.attributes
    }


def test_every_option_of_a_tool_is_listed_with_its_default() -> None:
    options = [row for row in rows("agents", "Tools") if len(row) == 3]
    told = {row[0].strip("`"): literal(row[1]) for row in options}
    assert told == {name: getattr(Tool, name) for name in ToolOptions.__annotations__}


def test_everything_that_a_tool_may_know_is_listed() -> None:
    there = {field.name for field in fields(ToolContext)} | public(ToolContext)
    assert there - set(listed("agents", "Tools")) - set(ToolOptions.__annotations__) == set()


def test_every_method_of_an_agent_is_listed() -> None:
    there = {name for owner in RemembersConversations.__mro__[:-1] for name in public(owner)}
    assert untold("agents", there - PATH_OF_A_TURN - {"attributes"}) == set()


def test_the_arguments_of_a_prompt_are_listed() -> None:
    ways = ["prompt", "aprompt", "stream", "astream"]
    options = [*PromptOptions.__annotations__]
    assert listed("agents", "Asking") == ways + options


def test_the_arguments_of_a_resumption_are_listed() -> None:
    ways = ["resume", "aresume", "stream_resume", "astream_resume", "discard_pending"]
    assert listed("agents", "Going on") == [*ways, *ResumeOptions.__annotations__]


def test_every_way_to_bind_has_the_signature_that_is_told() -> None:
    for row in rows("agents", "Binding"):
        for told in re.findall(r"`([^`]+)`", row[0]):
            assert told == signature(RemembersConversations, told), row


def signature(owner: type, told: str) -> str:
    """Return the signature that a class has for what a page tells, without annotations."""
    name = told.partition("(")[0]
    there = inspect.signature(getattr(owner, name))
    parameters = [
        parameter.replace(annotation=parameter.empty)
        for parameter in [*there.parameters.values()][1:]
    ]
    plain = there.replace(parameters=parameters, return_annotation=there.empty)
    return f"{name}{plain}".replace("''", '""')


def test_every_field_of_a_response_is_listed() -> None:
    there = {field.name for field in fields(Response)} | public(Response)
    assert set(listed("agents", "Response")) == there


def test_every_event_is_listed_with_what_it_has() -> None:
    told = {row[0].strip("`"): NAME.findall(row[1]) for row in rows("agents", "Events")}
    assert told == {
        name: [field.name for field in fields(value)]
        for name, value in vars(responses).items()
        if inspect.isclass(value) and issubclass(value, Event) and value is not Event
    }


def test_what_a_stream_has_is_listed() -> None:
    assert untold("agents", public(AgentStream) | {"conversation_id", "response"}) == set()


def test_every_method_of_a_store_is_listed() -> None:
    there = public(ConversationStore)
    assert set(listed("store")) == {name for name in there if name[1:] not in there}


def test_every_method_of_a_store_has_the_signature_that_is_told() -> None:
    for row in rows("store"):
        told = row[0].strip("`")
        if told not in ("append_ends_reservation", "can_pause"):
            assert told == signature(ConversationStore, told)


def test_everything_about_participants_is_listed() -> None:
    assert set(listed("participants", "`Participant(type, key)`")) == public(Participant)
    assert untold("participants", {"aget_object", "type", "key"}) == set()
    assert untold("participants", {*ownership.__all__, *public(HasConversations)}) == set()


def test_every_method_of_the_querysets_is_listed() -> None:
    for model in (Conversation, ToolApproval):
        there = listed("participants", f"`{model.__name__}.objects`")
        assert set(there) == public(type(model.objects.all()))


def test_every_signal_is_listed() -> None:
    there = [name for name, value in vars(signals).items() if isinstance(value, Signal)]
    assert sorted(listed("signals")) == sorted(there)


def test_every_check_is_listed() -> None:
    numbers = set(re.findall(r"\b[EW]\d{3}\b", inspect.getsource(checks)))
    assert listed("checks") == [f"agent_memory.{number}" for number in sorted(numbers)]
