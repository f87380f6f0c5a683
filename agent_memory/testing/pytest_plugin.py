"""Fixtures for pytest, and a guard against calls of a real model."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from agent_memory.providers import Provider, ProviderRequest
    from agent_memory.stores import ConversationStore
    from agent_memory.testing import ConversationAssertions, ScriptedProvider

ALLOWED = "agent_memory_allow_provider_calls"
MARKER = "allow_provider_calls"
OPTION = "--allow-provider-calls"

pytest.register_assert_rewrite("agent_memory.testing.contract")


def pytest_addoption(parser: pytest.Parser) -> None:
    allows = "allow tests to call a model on another machine"
    parser.getgroup("agent_memory").addoption(OPTION, action="store_true", help=allows)
    parser.addini(ALLOWED, allows, type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARKER}: may call a model on another machine")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    with _guard(item):
        return (yield)


def _guard(item: pytest.Item) -> AbstractContextManager[None]:
    config = item.config
    if config.getoption(OPTION) or config.getini(ALLOWED) or item.get_closest_marker(MARKER):
        return nullcontext()
    # A project without settings has no agents, and pays for no import.
    conf = sys.modules.get("django.conf")
    if conf is None or not conf.settings.configured:
        return nullcontext()
    from agent_memory.testing.guards import forbidden, guarding, outside

    def refuse(provider: Provider, request: ProviderRequest) -> None:
        if (host := outside(provider)) is not None:
            remedy = (
                f"The call goes to {host}. Answer it with Coach.fake([...]), or allow it: "
                f"pytest {OPTION}, @pytest.mark.{MARKER}, or {ALLOWED} = true in the "
                "configuration of pytest."
            )
            raise forbidden(f"{type(provider).__name__} in {item.nodeid}", request, remedy)

    return guarding(refuse)


@pytest.fixture
def agent_memory_store() -> Iterator[ConversationStore]:
    """Let every agent use a fresh store in memory, and return it."""
    from agent_memory.testing import override_store

    with override_store() as store:
        yield store


@pytest.fixture
def scripted_provider() -> Iterator[ScriptedProvider]:
    """Let every agent use a provider whose script the test ``extend()``s, and return it."""
    from agent_memory.testing import ScriptedProvider, override_provider

    provider = ScriptedProvider()
    with override_provider(provider):
        yield provider


@pytest.fixture
def conversations() -> ConversationAssertions:
    """Return assertions about the conversations in the store that agents use."""
    from agent_memory.testing import ConversationAssertions

    return ConversationAssertions()
