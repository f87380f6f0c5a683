"""Whether a person must allow a call: only a clear no lets it run."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group
from django.test import TestCase
from django.utils import translation
from django.utils.translation import gettext_lazy
from pydantic import AfterValidator

from agent_memory import Participant, ToolContext, tool
from agent_memory.gates import LONGEST_EXPIRY
from agent_memory.messages import ToolCall
from agent_memory.tools import Tool
from tests.agents import calling

CONTEXT = ToolContext(agent=None, participant=Participant("auth.user", "7"))


def refund(order: str, amount: Decimal = Decimal(50)) -> None:
    raise AssertionError


def gate(needs_approval: Any, **arguments: Any) -> str | None:
    """Return what both colours of a gate say of a refund."""
    made = Tool(refund, needs_approval=needs_approval)
    call = calling("refund", **{"order": "7", **arguments})
    said = made.gate(call, CONTEXT)
    assert async_to_sync(made.agate)(call, CONTEXT) == said
    return said


def awaited(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule as an async one."""

    @functools.wraps(rule)
    async def twin(**arguments: Any) -> Any:
        return rule(**arguments)

    return twin


in_both_colours = pytest.mark.parametrize("colour", [lambda rule: rule, awaited])


# What it says.


def test_a_gate_is_open_shut_or_shut_for_a_reason() -> None:
    assert Tool(refund).gate(calling("refund", order="7")) is None
    assert gate(False) is None
    assert gate(True) == ""
    assert gate("Money moves.") == "Money moves."


def test_a_reason_is_translated_for_whoever_asks() -> None:
    with translation.override("de"):
        assert gate(gettext_lazy("Yes")) == "Ja"
        assert gate(lambda: gettext_lazy("Yes")) == "Ja"
    assert gate(gettext_lazy("Yes")) == "Yes"


@in_both_colours
def test_a_rule_decides_by_the_arguments_that_it_names(colour: Any) -> None:
    def rule(amount: Decimal) -> bool | str:
        return f"{amount} is much." if amount > 100 else False

    assert gate(colour(rule), amount="100.50") == "100.50 is much."
    assert gate(colour(rule), amount="100") is None


@in_both_colours
def test_a_rule_gets_the_tools_defaults_for_what_the_model_leaves_out(colour: Any) -> None:
    def rule(amount: Decimal) -> bool:
        return amount == 50

    assert gate(colour(rule)) == ""


@in_both_colours
def test_a_rule_may_take_all_arguments_and_the_context(colour: Any) -> None:
    def rule(who: ToolContext | None, **arguments: Any) -> str:
        return f"{who is CONTEXT} {sorted(arguments.items())}"

    assert gate(colour(rule)) == f"True {[('amount', Decimal(50)), ('order', '7')]}"


def test_a_method_an_object_or_a_partial_may_be_the_rule() -> None:
    class Policy:
        limit = 10

        def over(self, amount: Decimal) -> bool:
            return amount > self.limit

        async def __call__(self, amount: Decimal) -> bool:
            return amount > self.limit

    def over(amount: Decimal, limit: int) -> bool:
        return amount > limit

    for rule in (Policy().over, Policy(), functools.partial(over, limit=10)):
        assert gate(rule, amount=11) == ""
        assert gate(rule, amount=9) is None


def test_a_method_of_a_tool_class_is_its_rule() -> None:
    class Refund(Tool):
        def __init__(self, limit: int) -> None:
            self.limit = limit

        def call(self, amount: int) -> None: ...

        def needs_approval(self, amount: int) -> bool:
            return amount > self.limit

    assert Refund(10).gate(calling("refund", amount=11)) == ""
    assert Refund(20).gate(calling("refund", amount=11)) is None


# What it does not let through.


@pytest.mark.parametrize("needs_approval", [True, "Money.", lambda order: True])
def test_a_call_whose_arguments_do_not_fit_runs_to_fail(needs_approval: Any) -> None:
    made = Tool(refund, needs_approval=needs_approval)
    for call in (calling("refund"), ToolCall(id="call-1", name="refund", raw_arguments="{")):
        assert made.gate(call) is None
        assert async_to_sync(made.agate)(call) is None
        assert made.run(call).failed


def failing(order: str) -> bool:
    raise LookupError("secret")


def refusing(order: str) -> bool:
    Tool(refund).check_arguments({})
    return False


ODD_RULES: list[tuple[Callable[..., Any], str]] = [
    (failing, "LookupError"),
    (refusing, "InvalidArguments"),
    (lambda order: None, "TypeError"),
    (lambda order: 0, "TypeError"),
    (lambda order: [], "TypeError"),
    (lambda order: (_ for _ in ()), "TypeError"),
]


@in_both_colours
@pytest.mark.parametrize(("rule", "kind"), ODD_RULES)
def test_a_rule_that_does_not_clearly_say_no_makes_the_call_wait(
    colour: Any, rule: Callable[..., Any], kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert gate(colour(rule)) == f"The rule that decides on this call failed: {kind}."
    for record in caplog.records:
        assert (record.name, record.levelno) == ("agent_memory", logging.ERROR)
        assert record.getMessage() == "The rule of the tool 'refund' failed."
        assert record.exc_info is not None
    assert len(caplog.records) == 2


def test_an_empty_reason_of_a_rule_is_a_reason_without_words() -> None:
    assert gate(lambda order: "") == ""


def broken(text: str) -> str:
    raise LookupError


def test_a_validator_that_breaks_makes_the_call_wait() -> None:
    def take(text: Annotated[str, AfterValidator(broken)]) -> None: ...

    made = Tool(take, needs_approval=True)
    assert made.gate(calling("take", text="a")) == (
        "The rule that decides on this call failed: LookupError."
    )


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_is_not_taken_for_a_failure(error: type[BaseException]) -> None:
    def rule() -> bool:
        raise error

    with pytest.raises(error):
        Tool(refund, needs_approval=rule).gate(calling("refund", order="7"))


class RulesInATestCase(TestCase):
    """A rule sees the rows of the test's transaction in both colours."""

    def test_sync_rules_share_the_callers_connection(self) -> None:
        Group.objects.create(name="first")
        assert gate(lambda: Group.objects.get().name) == "first"


# What is refused when the tool is made.


@pytest.mark.parametrize("needs_approval", ["", None, 0, 1, [], b"a", timedelta(1)])
def test_what_is_neither_a_rule_nor_an_answer_is_refused(needs_approval: Any) -> None:
    with pytest.raises(ValueError, match="needs_approval is True, False, a reason"):
        tool(needs_approval=needs_approval)(refund)


def unhinted(sum_of_money: Any) -> bool: ...
def positional(order: str, /) -> bool: ...
def unimported(order: Missing) -> bool: ...  # noqa: F821  it is not there


@pytest.mark.parametrize(
    ("rule", "match"),
    [
        (unhinted, "The rule of the tool 'refund' takes 'sum_of_money', which is no argument"),
        (positional, "The rule of the tool 'refund' takes order"),
        (unimported, "The rule of the tool 'refund' has a type hint that is not there"),
    ],
)
def test_a_rule_that_cannot_be_asked_is_refused(rule: Any, match: str) -> None:
    with pytest.raises(TypeError, match=match):
        tool(needs_approval=rule)(refund)


@pytest.mark.parametrize(
    "expires", [timedelta(), timedelta(seconds=-1), LONGEST_EXPIRY * 2, timedelta.max, 60, "1h"]
)
def test_an_approval_expires_after_some_time_of_this_era(expires: Any) -> None:
    with pytest.raises(ValueError, match="approval_expires is a timedelta above 0"):
        tool(needs_approval=True, approval_expires=expires)(refund)


def test_an_expiry_goes_with_a_gate() -> None:
    with pytest.raises(ValueError, match="goes with needs_approval"):
        tool(approval_expires=timedelta(hours=1))(refund)
    made = tool(needs_approval=True, approval_expires=timedelta(hours=1))(refund)
    assert made.approval_expires == timedelta(hours=1)
