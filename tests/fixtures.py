"""Fixtures of tests that hold over both stores and in all four ways to ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from agent_memory import Agent, RemembersConversations
from agent_memory.responses import Finished, Response
from agent_memory.stores import ConversationStore
from agent_memory.testing import ScriptedProvider, override_store
from tests.testapp.models import Team

Ask = Callable[..., Response]

STORES = ("database", "in memory")
WAYS = (
    "plain",
    pytest.param("task", marks=pytest.mark.heavy),
    pytest.param("stream", marks=pytest.mark.heavy),
    "stream in a task",
)
STORES_AND_WAYS = (
    ("database", "plain"),
    ("database", "stream in a task"),
    pytest.param("in memory", "task", marks=pytest.mark.heavy),
    pytest.param("in memory", "stream", marks=pytest.mark.heavy),
)


def database_store() -> ConversationStore:
    from agent_memory.stores.database import DatabaseConversationStore

    return DatabaseConversationStore()


def echo(request: Any) -> str:
    return f"{len(request.messages)}: {request.messages[-1].text}"


def ask_plainly(agent: Agent, message: Any, **options: Any) -> Response:
    return agent.prompt(message, **options)


def ask_in_a_task(agent: Agent, message: Any, **options: Any) -> Response:
    return async_to_sync(agent.aprompt)(message, **options)


def ask_for_a_stream(agent: Agent, message: Any, **options: Any) -> Response:
    *_, last = agent.stream(message, **options)
    assert isinstance(last, Finished)
    return last.response


def ask_for_a_stream_in_a_task(agent: Agent, message: Any, **options: Any) -> Response:
    async def collect() -> Response:
        events = [event async for event in agent.astream(message, **options)]
        assert isinstance(events[-1], Finished)
        return events[-1].response

    return async_to_sync(collect)()


def resume_plainly(agent: RemembersConversations, *args: Any, **options: Any) -> Response:
    return agent.resume(*args, **options)


def resume_in_a_task(agent: RemembersConversations, *args: Any, **options: Any) -> Response:
    return async_to_sync(agent.aresume)(*args, **options)


def resume_as_a_stream(agent: RemembersConversations, *args: Any, **options: Any) -> Response:
    *_, last = agent.stream_resume(*args, **options)
    assert isinstance(last, Finished)
    return last.response


def resume_as_a_stream_in_a_task(
    agent: RemembersConversations, *args: Any, **options: Any
) -> Response:
    async def collect() -> Response:
        events = [event async for event in agent.astream_resume(*args, **options)]
        assert isinstance(events[-1], Finished)
        return events[-1].response

    return async_to_sync(collect)()


@pytest.fixture
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def ask(way: str) -> Ask:
    return {
        "plain": ask_plainly,
        "task": ask_in_a_task,
        "stream": ask_for_a_stream,
        "stream in a task": ask_for_a_stream_in_a_task,
    }[way]


@pytest.fixture
def resume(way: str) -> Ask:
    return {
        "plain": resume_plainly,
        "task": resume_in_a_task,
        "stream": resume_as_a_stream,
        "stream in a task": resume_as_a_stream_in_a_task,
    }[way]


@pytest.fixture
def store(request: pytest.FixtureRequest, db: None) -> Iterator[ConversationStore]:
    with override_store(database_store() if request.param == "database" else None) as it:
        yield it


@pytest.fixture
def provider(scripted_provider: ScriptedProvider) -> ScriptedProvider:
    scripted_provider.extend([echo] * 20)
    return scripted_provider


@pytest.fixture
def user(db: None) -> User:
    return User.objects.create(pk=1, username="ada")


@pytest.fixture
def team(db: None) -> Team:
    return Team.objects.create(pk=1, name="Team")
