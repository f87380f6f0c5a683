"""No request of a shipped provider leaves past a guard, whoever makes it and in whichever way."""

from __future__ import annotations

import pytest

from agent_memory import AnonymousAgent
from agent_memory.exceptions import ProviderUnavailable
from agent_memory.messages import Message
from agent_memory.providers import Provider, ProviderRequest
from agent_memory.testing import ProviderCallForbidden, forbid_provider_calls
from agent_memory.testing.guards import guarding, outside
from tests.agents import ask, in_every_way
from tests.providers.asking import ask as ask_provider
from tests.providers.conftest import BOTH, KEY

NOWHERE = "http://127.0.0.1:1/v1"
REQUEST = ProviderRequest(model="test-model", messages=(Message("user", "Hello"),))


@pytest.fixture(params=BOTH, ids=lambda kind: kind.__name__)
def provider(request) -> Provider:
    return request.param(api_key=KEY, base_url=NOWHERE, max_retries=0)


@pytest.fixture(params=["complete", "acomplete", "stream", "astream"])
def way(request) -> str:
    return request.param


def test_a_provider_that_is_called_by_hand_is_forbidden_in_each_way(provider, way):
    with forbid_provider_calls(), pytest.raises(ProviderCallForbidden) as caught:
        ask_provider(provider, REQUEST, way)
    told = str(caught.value)
    assert told.startswith(f"{type(provider).__name__} called a model")
    for part in ("test-model", "Hello", "ScriptedProvider"):
        assert part in told
    assert KEY not in told
    with pytest.raises(ProviderUnavailable):
        ask_provider(provider, REQUEST, way)


@in_every_way
def test_an_agent_with_a_provider_of_its_own_is_forbidden_by_name(way, provider):
    with forbid_provider_calls(), pytest.raises(ProviderCallForbidden) as caught:
        ask(way, AnonymousAgent("Be short.", provider=provider, model="tiny"), "Hello")
    told = str(caught.value)
    assert told.startswith("AnonymousAgent called a model")
    for part in ("model: tiny", "Be short.", "Hello", "AnonymousAgent.fake([...])"):
        assert part in told


def test_guards_may_be_nested_and_end_in_any_order(provider):
    asked: list[str] = []
    outer = guarding(lambda *_: asked.append("outer"))
    inner = guarding(lambda *_: asked.append("inner"))
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    with pytest.raises(ProviderUnavailable):
        provider.complete(REQUEST)
    inner.__exit__(None, None, None)
    with pytest.raises(ProviderUnavailable):
        provider.complete(REQUEST)
    assert asked == ["inner"]


@pytest.mark.parametrize(
    ("base_url", "host"),
    [
        ("https://api.openai.com/v1", "api.openai.com"),
        ("http://model.internal:8080/v1", "model.internal"),
        ("http://10.0.0.5/v1", "10.0.0.5"),
        ("http://[2001:db8::1]/v1", "2001:db8::1"),
        ("http://127.0.0.1:8080/v1", None),
        ("http://127.9.9.9/v1", None),
        ("http://[::1]:8080/v1", None),
        ("http://LOCALHOST/v1", None),
        ("http://model.localhost/v1", None),
        ("http://[oops/v1", None),
        ("no address", None),
    ],
)
def test_what_is_no_address_of_this_machine_is_outside(base_url, host, monkeypatch):
    for kind in BOTH:
        monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
        assert outside(kind(base_url=base_url)) == host
        monkeypatch.setenv("OPENAI_BASE_URL", base_url)
        assert outside(kind()) == host


def test_a_provider_without_an_address_calls_outside(monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert {outside(kind()) for kind in BOTH} == {"api.openai.com"}
