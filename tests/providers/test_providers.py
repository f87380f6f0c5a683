"""The project's provider: built once, named by a path or given, and never a wrong thing."""

from __future__ import annotations

import pytest

from agent_memory.exceptions import InvalidProvider
from agent_memory.providers import Provider, get_provider, overriding
from agent_memory.providers.openai_chat import OpenAIChatProvider
from agent_memory.providers.openai_responses import OpenAIResponsesProvider
from agent_memory.testing import ScriptedProvider, override_agent_memory

CHAT = "agent_memory.providers.openai_chat.OpenAIChatProvider"


def test_the_default_speaks_the_responses_api_and_is_built_once():
    assert type(get_provider()) is OpenAIResponsesProvider
    assert get_provider() is get_provider()


def test_the_setting_names_another_with_its_options():
    named = {"BACKEND": CHAT, "OPTIONS": {"base_url": "http://127.0.0.1:1/v1"}}
    with override_agent_memory(PROVIDER=named):
        provider = get_provider()
        assert type(provider) is OpenAIChatProvider
        assert provider.options == named["OPTIONS"]
        assert get_provider(CHAT) is provider
    assert type(get_provider()) is OpenAIResponsesProvider


def test_a_path_is_built_once_and_without_options_of_the_setting():
    assert get_provider(CHAT) is get_provider(CHAT)
    assert get_provider(CHAT).options == {}


def test_a_ready_provider_is_taken_as_it_is():
    provider = ScriptedProvider()
    assert get_provider(provider) is provider


def test_while_overridden_every_agent_gets_the_same():
    first, second = ScriptedProvider(), ScriptedProvider()
    with overriding(lambda _: first):
        with overriding(lambda _: second):
            assert get_provider() is get_provider(CHAT) is get_provider(first) is second
        assert get_provider() is get_provider(agent=Provider) is first


def test_what_overrides_the_nearest_base_of_an_agent_goes_before():
    class Base: ...

    class Coach(Base): ...

    everybodys, bases, own = ScriptedProvider(), ScriptedProvider(), ScriptedProvider()
    with overriding(lambda _: own, Coach), overriding(lambda _: bases, Base):
        assert get_provider(everybodys) is everybodys
        with overriding(lambda _: everybodys):
            assert get_provider(agent=Coach) is own
            assert get_provider(agent=Base) is bases
            assert get_provider(agent=Provider) is everybodys


@pytest.mark.parametrize(
    "wrong",
    ["no.such.Provider", "agent_memory.providers.NoProvider", "builtins.dict", 7, ScriptedProvider],
    ids=repr,
)
def test_what_is_no_provider_is_refused_by_name(wrong):
    with pytest.raises(InvalidProvider):
        get_provider(wrong)


def test_a_provider_that_lacks_a_method_names_it():
    class Half(Provider):
        pass

    for method in ("complete", "stream", "astream"):
        with pytest.raises(NotImplementedError, match=rf"Half must define {method}\(\)"):
            getattr(Half(), method)(None)
