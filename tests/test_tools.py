"""Tools: their options, tools with state, what a tool may know, how it may fail, where it runs."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import threading
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group, User
from django.test import TestCase
from django.utils.translation import gettext_lazy
from pydantic import Field

from agent_memory import Agent, Participant, ToolContext, tool
from agent_memory.exceptions import ParticipantDoesNotExist, ToolError
from agent_memory.messages import ToolResult
from agent_memory.tools import Tool, tools_by_name
from tests.agents import WAYS, ask, calling, in_every_way, run_tool, scripted


def len_of(text: str) -> int:
    """Count characters."""
    return len(text)


# Options.


def test_options_are_set_and_the_function_stays_callable() -> None:
    @tool(name="seek", description="Find.", timeout=90, concurrent=True)
    def look_up(city: str) -> str:
        """Return the weather."""
        return city.upper()

    assert (look_up.name, look_up.timeout, look_up.concurrent) == ("seek", 90, True)
    assert (look_up.spec.name, look_up.spec.description) == ("seek", "Find.")
    assert look_up("Rome") == look_up(city="Rome") == "ROME"


def test_a_tool_without_options_is_free_to_run_alone_and_takes_the_usual_time() -> None:
    made = tool(len_of)
    assert (made.needs_approval, made.approval_expires) == (False, None)
    assert (made.timeout, made.concurrent) == (None, False)


def test_a_lazy_description_is_translated_when_the_model_is_told() -> None:
    made = tool(description=gettext_lazy("Yes"))(len_of)
    assert made.spec.description == "Yes"


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), True, "60"])
def test_a_time_out_is_a_positive_number_of_seconds(timeout: Any) -> None:
    with pytest.raises(ValueError, match="positive number of seconds"):
        tool(timeout=timeout)(len_of)


@pytest.mark.parametrize("name", ["two words", "größe", "a.b", "x" * 65, "\0"])
def test_a_name_that_no_api_takes_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="A tool's name"):
        Tool(len_of, name=name)


def test_an_option_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(TypeError, match="takes no 'retries'; it takes name, description, needs_"):
        tool(retries=3)(len_of)


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="Two tools are named 'len_of'"):
        tools_by_name([len_of, Tool(len_of)])
    assert list(tools_by_name([len_of, Tool(len_of, name="size")])) == ["len_of", "size"]


# Tools with state.


class LookUpOrder(Tool):
    """Tell the status of an order."""

    timeout = 5

    def __init__(self, orders: dict[str, str]) -> None:
        self.orders = orders

    def call(self, number: Annotated[str, Field(description="As on the invoice.")]) -> str:
        return self.orders[number]


class LookUpLater(LookUpOrder):
    async def call(self, number: str, context: ToolContext) -> str:
        """Tell it later."""
        await asyncio.sleep(0)
        return f"{self.orders[number]} {context.call_id}"


def test_a_tool_class_is_told_by_its_call_and_its_own_docstring() -> None:
    spec = LookUpOrder({}).spec
    assert (spec.name, spec.description) == ("look_up_order", "Tell the status of an order.")
    assert spec.parameters["properties"]["number"]["description"] == "As on the invoice."
    later = LookUpLater({})
    assert (later.spec.name, later.spec.description) == ("look_up_later", "Tell it later.")
    assert list(later.spec.parameters["properties"]) == ["number"]


@in_every_way
def test_a_tool_keeps_the_state_that_its_constructor_gave_it(way: str) -> None:
    tools = [LookUpOrder({"7": "paid"}), LookUpLater({"7": "sent"})]
    calls = [calling(made.name, "a", number="7") for made in tools]
    turn = ask(way, Agent(provider=scripted(calls, "Done."), tools=tools)).turn
    assert [result.value for result in turn.tool_results()] == ["paid", "sent a"]
    assert tools[0]("7") == tools[0].call("7") == "paid"


def test_a_tool_class_may_take_its_options_and_its_name_from_anywhere() -> None:
    class Named(LookUpOrder):
        name = "find"
        description = "Find."

    class Configured(LookUpOrder):
        def __init__(self, **options: Any) -> None:
            super(LookUpOrder, self).__init__(**options)

    class Inherited(Named):
        pass

    @dataclasses.dataclass
    class Data(Tool):
        """Count."""

        start: int

        def call(self, step: int) -> int:
            return self.start + step

    assert (Named({}).spec.name, Named({}).spec.description) == ("find", "Find.")
    assert (Inherited({}).name, Inherited({}).timeout) == ("find", 5)
    assert (Configured().name, Configured().timeout) == ("configured", 5)
    assert (Configured(name="other").name, Configured(timeout=9).timeout) == ("other", 9)
    assert Data(2).spec.name == "data"
    assert run_tool(Data(2), step=1).value == 3


def test_a_tool_class_is_refused_where_it_is_defined() -> None:
    with pytest.raises(TypeError, match="The tool 'pay' needs a type hint for 'amount'"):

        class Pay(Tool):
            def call(self, amount): ...

    with pytest.raises(ValueError, match="A tool's name is 1 to 64"):

        class Payment(Tool):
            name = "pay now"

            def call(self) -> None: ...


def test_a_tool_object_is_refused_where_it_is_used() -> None:
    class Slow(LookUpOrder):
        def __init__(self, timeout: Any) -> None:
            self.timeout = timeout

    class Unfinished(Tool):
        def __init__(self) -> None:
            pass

    with pytest.raises(ValueError, match="positive number of seconds, not 0"):
        tools_by_name([Slow(0)])
    for unfinished in (lambda: tools_by_name([Unfinished()]), Tool):
        with pytest.raises(TypeError, match=r"is no tool yet: give Tool\(\) a function, or write"):
            unfinished()
    with pytest.raises(TypeError, match=r"LookUpOrder is a class: give an instance"):
        tools_by_name([LookUpOrder])


# What a tool may know.


CONTEXT = ToolContext(
    agent=Agent(),
    participant=Participant("auth.user", "7"),
    conversation_id="c-1",
    call_id="call-1",
    idempotency_key="t-1:0:0",
)


def annotated(text: str, context: Annotated[ToolContext, "ours"]) -> Any:
    return context.idempotency_key


def optional(context: ToolContext | None = None, *, text: str = "") -> Any:
    return context and context.idempotency_key


async def awaited(text: str, who: ToolContext) -> Any:
    return who.idempotency_key


@pytest.mark.parametrize("function", [annotated, optional, awaited])
def test_a_parameter_for_the_context_is_filled_and_not_told(function: Callable[..., Any]) -> None:
    made = Tool(function)
    assert list(made.spec.parameters["properties"]) == ["text"]
    call = calling(made.name, text="a")
    assert made.run(call, CONTEXT).value == "t-1:0:0"
    assert async_to_sync(made.arun)(call, CONTEXT).value == "t-1:0:0"
    assert "Extra inputs" in made.run(calling(made.name, text="a", context={}), CONTEXT).text


def test_a_context_leads_to_the_saved_instance_of_who_speaks(user: User) -> None:
    context = ToolContext(participant=Participant.of(user))
    assert context.get_participant() == user
    assert async_to_sync(context.aget_participant)() == user
    nobody = ToolContext()
    assert nobody.get_participant() is async_to_sync(nobody.aget_participant)() is None


def test_a_participant_that_is_gone_fails_the_tool_by_name(db: None) -> None:
    def who(context: ToolContext) -> str:
        return str(context.get_participant())

    with pytest.raises(ParticipantDoesNotExist):
        who(CONTEXT)
    assert Tool(who).run(calling("who"), CONTEXT) == ToolResult(
        value="The tool failed: ParticipantDoesNotExist.", failed=True
    )


# How a tool may fail.


def fail() -> None:
    raise ValueError("the password is secret")


async def afail() -> None:
    raise ValueError("the password is secret")


@in_every_way
@pytest.mark.parametrize("function", [fail, afail])
def test_an_exception_is_told_by_its_class_and_logged_whole(
    function: Callable[..., Any], way: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = function.__name__
    response = ask(way, Agent(provider=scripted(calling(name), "Sorry."), tools=[function]))
    assert response.text == "Sorry."
    assert response.turn.tool_results() == (
        ToolResult(value="The tool failed: ValueError.", failed=True),
    )
    (record,) = [record for record in caplog.records if record.name == "agent_memory"]
    assert record.levelno == logging.ERROR
    assert record.getMessage() == f"The tool {name} failed."
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "the password is secret"


@in_every_way
def test_a_tool_error_is_told_by_its_text_and_not_logged(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    def find(number: str) -> str:
        raise ToolError(f"No order has the number {number}.")

    agent = Agent(provider=scripted(calling("find", number="7"), "Sorry."), tools=[find])
    assert ask(way, agent).turn.tool_results() == (
        ToolResult(value="No order has the number 7.", failed=True),
    )
    assert [record for record in caplog.records if record.name == "agent_memory"] == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_an_interrupt_is_not_taken_for_a_failure(error: type[BaseException]) -> None:
    def interrupt() -> None:
        raise error

    async def ainterrupt() -> None:
        raise error

    with pytest.raises(error):
        Tool(interrupt).run(calling("interrupt"))
    with pytest.raises(error):
        async_to_sync(Tool(ainterrupt).arun)(calling("ainterrupt"))


def test_a_tool_that_ends_an_iteration_fails_like_any_other() -> None:
    def stop() -> None:
        raise StopIteration

    made = Tool(stop)
    told = ToolResult(value="The tool failed: StopIteration.", failed=True)
    assert made.run(calling("stop")) == async_to_sync(made.arun)(calling("stop")) == told


# Where tools run.


@in_every_way
def test_async_tools_run_in_every_way(way: str) -> None:
    @tool
    async def double(number: int) -> int:
        return number * 2

    agent = Agent(provider=scripted(calling("double", number=2), "Done."), tools=[double])
    assert ask(way, agent).turn.tool_results() == (ToolResult(value=4),)


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


def test_concurrent_sync_tools_run_beside_each_other_in_a_loop() -> None:
    both = threading.Barrier(2, timeout=10)

    @tool(concurrent=True)
    def meet() -> int:
        both.wait()
        return threading.get_ident()

    async def meeting() -> list[Any]:
        call = calling("meet")
        return [one.value for one in await asyncio.gather(meet.arun(call), meet.arun(call))]

    assert len({*async_to_sync(meeting)(), threading.get_ident()}) == 3
