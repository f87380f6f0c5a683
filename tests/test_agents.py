"""An agent answers: its attributes, its hooks, and the four ways to ask it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group
from django.core.exceptions import SynchronousOnlyOperation
from django.http import HttpRequest, JsonResponse
from django.test import AsyncClient, Client, override_settings
from django.urls import path
from django.utils.translation import gettext_lazy, override

from agent_memory import Agent
from agent_memory.exceptions import InvalidProvider
from agent_memory.providers import ProviderRequest
from agent_memory.responses import (
    Finished,
    Started,
    StepFinished,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from agent_memory.testing import ScriptedProvider, override_agent_memory
from tests.agents import (
    WAYS,
    Noting,
    a_turn_with_everything,
    area,
    ask,
    events,
    in_both_streams,
    in_every_way,
    scripted,
)

# Attributes.


def test_attributes_are_those_of_the_class_or_of_the_constructor() -> None:
    class Coach(Agent):
        instructions = "Be brief."
        model = "small"

    coach = Coach(model="large", max_steps=3)
    assert (coach.instructions, coach.model, coach.max_steps) == ("Be brief.", "large", 3)
    assert (Coach().model, Coach().max_steps) == ("small", 20)


def test_an_attribute_that_does_not_exist_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"Agent has no attribute 'modle'.*model"):
        Agent(modle="large")


def test_a_subclass_may_have_a_constructor_of_its_own() -> None:
    class Coach(Agent):
        def __init__(self, sport: str) -> None:
            self.instructions = f"You coach {sport}."

    provider = scripted("Hi.")
    coach = Coach("chess")
    coach.provider = provider
    assert coach.prompt("Hello").text == "Hi."
    assert provider.requests[0].instructions == "You coach chess."


def test_an_agent_is_filed_under_its_module_and_class_or_its_label() -> None:
    assert Noting().get_label() == "tests.agents.Noting"
    assert Noting(label="coach").get_label() == "coach"


@in_every_way
def test_the_model_is_that_of_the_call_of_the_agent_or_of_the_project(way: str) -> None:
    provider = scripted(*["ok"] * 3)
    ask(way, Agent(provider=provider, model="agent's"), model="call's")
    ask(way, Agent(provider=provider, model="agent's"))
    with override_agent_memory(MODEL="project's"):
        ask(way, Agent(provider=provider))
    assert [request.model for request in provider.requests] == ["call's", "agent's", "project's"]


@in_every_way
def test_an_agent_without_a_model_names_the_setting(way: str) -> None:
    provider = scripted("never")
    with override_agent_memory(MODEL=None), pytest.raises(InvalidProvider, match="AGENT_MEMORY"):
        ask(way, Agent(provider=provider))
    assert provider.requests == []


@in_every_way
def test_hooks_compute_instructions_and_tools_and_may_use_the_orm(way: str, db: None) -> None:
    class Coach(Agent):
        def get_instructions(self) -> str:
            return f"There are {Group.objects.count()} groups."

        def get_tools(self) -> list[Any]:
            return [area] if Group.objects.exists() else []

    Group.objects.create(name="staff")
    provider = scripted("ok")
    ask(way, Coach(provider=provider))
    (request,) = provider.requests
    assert request.instructions == "There are 1 groups."
    assert [spec.name for spec in request.tools] == ["area"]


def test_instructions_may_be_translated_lazily() -> None:
    provider = scripted("ok")
    with override("de"):
        Agent(provider=provider, instructions=gettext_lazy("Yes")).prompt("Hello")
    assert provider.requests[0].instructions == "Ja"
    assert type(provider.requests[0].instructions) is str


# The four ways.


def test_all_four_ways_give_the_same_turn() -> None:
    turns = [ask(way, Agent(provider=a_turn_with_everything(), tools=[area])).turn for way in WAYS]
    assert turns[0].text == "It is six."
    assert turns.count(turns[0]) == 4


@in_both_streams
def test_both_streams_tell_the_same_events_in_order(way: str) -> None:
    provider = a_turn_with_everything()
    told = events(way, Agent(provider=provider, tools=[area]))
    *_, last = told
    assert isinstance(last, Finished)
    first, second = last.response.turn.steps
    a, b = first.tool_calls()
    asked = [call.model_copy(update={"result": None}) for call in (a, b)]
    assert told == [
        Started(None),
        *(TextDelta(word) for word in ("Let ", "me ", "see. ")),
        StepFinished(first.model_copy(update={"items": (first.items[0], *asked)})),
        ToolStarted(asked[0]),
        ToolFinished(a),
        ToolStarted(asked[1]),
        ToolFinished(b),
        *(TextDelta(word) for word in ("It ", "is ", "six.")),
        StepFinished(second),
        last,
    ]


def test_blocking_calls_under_a_running_loop_are_refused_and_name_their_twin() -> None:
    provider = scripted("never")

    async def main() -> None:
        with pytest.raises(SynchronousOnlyOperation, match=r"prompt\(\).*aprompt\(\)"):
            Agent(provider=provider).prompt("Hello")
        with pytest.raises(SynchronousOnlyOperation, match=r"stream\(\).*astream\(\)"):
            Agent(provider=provider).stream("Hello")

    async_to_sync(main)()
    assert provider.requests == []


def test_one_agent_is_shared_by_threads() -> None:
    def echo(request: ProviderRequest) -> str:
        return request.messages[-1].text

    agent = Agent(provider=scripted(*[echo] * 40))
    prompts = [str(number) for number in range(40)]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda text: agent.prompt(text).text, prompts)) == prompts


coach = Agent()


def view(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"text": coach.prompt("Hello").text})


async def aview(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"text": (await coach.aprompt("Hello")).text})


urlpatterns = [path("sync/", view), path("async/", aview)]


@override_settings(ROOT_URLCONF=__name__)
@pytest.mark.parametrize("url", ["/sync/", "/async/"])
def test_agents_answer_in_sync_and_async_views_under_wsgi_and_asgi(
    url: str, scripted_provider: ScriptedProvider
) -> None:
    scripted_provider.extend(["under WSGI", "under ASGI"])
    assert Client().get(url).json() == {"text": "under WSGI"}
    response = async_to_sync(AsyncClient().get)(url)
    assert json.loads(response.content) == {"text": "under ASGI"}
