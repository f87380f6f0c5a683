"""The plugin's fixtures hold for one test, its guard lets no test call a model elsewhere."""

from __future__ import annotations

import pytest

from agent_memory import Agent, RemembersConversations
from agent_memory.messages import Message
from agent_memory.providers import ProviderRequest, get_provider
from agent_memory.stores import get_store
from agent_memory.testing.contract.base import plain_turn
from agent_memory.testing.pytest_plugin import (
    agent_memory_store,
    conversations,
    scripted_provider,
)

pytest_plugins = ["pytester"]

__all__ = ["agent_memory_store", "conversations", "scripted_provider"]


class Coach(RemembersConversations, Agent):
    pass


# Fixtures.


def test_the_store_is_fresh_and_everybodys(agent_memory_store):
    assert get_store() is agent_memory_store
    assert agent_memory_store.load("one") == ()
    agent_memory_store.append("one", plain_turn())


def test_the_store_of_another_test_is_gone(agent_memory_store):
    assert agent_memory_store.load("one") == ()


def test_the_provider_answers_what_the_test_writes(scripted_provider):
    scripted_provider.extend(["Hello"])
    request = ProviderRequest(model="test-model", messages=(Message("user", "Hi"),))
    assert get_provider().complete(request).step.text == "Hello"
    scripted_provider.assert_exhausted()


def test_conversations_asserts_what_the_store_in_use_holds(conversations, agent_memory_store):
    with Coach.fake(["Stored: blue."]):
        reply = Coach().for_participant(None).prompt("Remember: blue.")
    conversations.assert_roles(reply, ["user", "assistant"])
    agent_memory_store.clear(reply.conversation_id)
    with pytest.raises(AssertionError, match="0 messages, not 2"):
        conversations.assert_message_count(reply, 2)


# In a project of somebody else's.


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """An empty folder whose tests have the plugin and pytest-django, by name."""
    for name in ("DJANGO_SETTINGS_MODULE", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(pytester._request.config.rootpath))
    return pytester


def run(project: pytest.Pytester, *options: str) -> pytest.RunResult:
    plugin = ("-p", "agent_memory.testing.pytest_plugin", "-p", "no:cacheprovider")
    return project.runpytest_subprocess("-W", "error", "--strict-markers", *plugin, *options)


@pytest.mark.heavy
def test_the_plugin_loads_in_a_project_without_settings_and_imports_nothing_of_the_app(project):
    project.makepyfile(
        """
        import sys

        def test_nothing_of_django_is_needed():
            import django.conf
            assert not django.conf.settings.configured
            assert "agent_memory.models" not in sys.modules
            assert "agent_memory.providers" not in sys.modules
        """
    )
    run(project).assert_outcomes(passed=1)


@pytest.mark.heavy
def test_fixtures_and_contract_need_no_installed_app_and_failures_show_both_sides(project):
    project.makepyfile(
        """
        from django.conf import settings
        settings.configure(AGENT_MEMORY={"MODEL": "test-model"})

        from django.test import SimpleTestCase
        from agent_memory import Agent, RemembersConversations
        from agent_memory.stores.inmemory import InMemoryConversationStore
        from agent_memory.testing import ConversationStoreContract

        class Coach(RemembersConversations, Agent):
            generate_titles = False

        def test_the_kit(agent_memory_store, scripted_provider, conversations):
            scripted_provider.extend(["Hello"])
            reply = Coach().for_participant(None).prompt("Hi")
            conversations.assert_roles(reply, ["user", "assistant"])

        class Forgetful(InMemoryConversationStore):
            def load(self, *args, **kwargs):
                return ()

        class StoreTests(ConversationStoreContract, SimpleTestCase):
            def make_store(self):
                return Forgetful()
        """
    )
    result = run(project, "-k", "the_kit or each_conversation_has_a_history")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*assert () == (Message(*"])


# The guard.

ELSEWHERE = """
import httpx
import pytest
from django.conf import settings
from django.test import SimpleTestCase

def refuse(request):
    raise httpx.ConnectError("off the line")

OPTIONS = {
    "api_key": "sk-secret",
    "base_url": "http://192.0.2.1/v1",
    "max_retries": 0,
    "http_client": httpx.Client(transport=httpx.MockTransport(refuse)),
}
PROVIDER = "agent_memory.providers.openai_chat.OpenAIChatProvider"
settings.configure(
    AGENT_MEMORY={"MODEL": "gpt-dear", "PROVIDER": {"BACKEND": PROVIDER, "OPTIONS": OPTIONS}}
)

from agent_memory import Agent
from agent_memory.exceptions import ProviderUnavailable
from agent_memory.providers.openai_chat import OpenAIChatProvider

class Coach(Agent):
    instructions = "Be short."
"""

PROMPTS = """
def test_prompt():
    with pytest.raises(ProviderUnavailable):
        Coach().prompt("What did I say?")
"""


@pytest.mark.heavy
def test_a_test_that_would_call_a_model_elsewhere_fails_by_name(project):
    project.makepyfile(
        ELSEWHERE
        + PROMPTS
        + """
@pytest.fixture(scope="module")
def reply():
    return Coach().prompt("Hello")

def test_reply(reply): ...

class CoachTests(SimpleTestCase):
    def test_case(self):
        Coach().prompt("Hello")
"""
    )
    result = run(project)
    result.assert_outcomes(failed=2, errors=1)
    result.stdout.fnmatch_lines_random(
        [
            "*ProviderCallForbidden: OpenAIChatProvider in *.py::test_prompt called a model*",
            "*model: gpt-dear",
            "*instructions: Be short.",
            "*prompt: What did I say?",
            "*192.0.2.1*Coach.fake*--allow-provider-calls*allow_provider_calls*",
            "*ProviderCallForbidden: OpenAIChatProvider in *.py::test_reply called a model*",
            "*ProviderCallForbidden: OpenAIChatProvider in *.py::CoachTests::test_case called*",
        ]
    )
    assert "sk-secret" not in "\n".join(line for line in result.outlines if line.startswith("E "))


@pytest.mark.heavy
def test_a_mark_a_server_on_this_machine_and_a_fake_need_no_leave(project):
    project.makepyfile(
        ELSEWHERE
        + PROMPTS.replace("def test", "@pytest.mark.allow_provider_calls\ndef test")
        + """
def test_server():
    near = OpenAIChatProvider(**OPTIONS | {"base_url": "http://127.0.0.1:1/v1"})
    with pytest.raises(ProviderUnavailable):
        Coach(provider=near).prompt("What did I say?")

def test_fake():
    with Coach.fake(["Blue."]):
        assert Coach().prompt("What did I say?").text == "Blue."
"""
    )
    run(project).assert_outcomes(passed=3)


@pytest.mark.heavy
@pytest.mark.parametrize(
    "options",
    [["--allow-provider-calls"], ["-o", "agent_memory_allow_provider_calls=true"]],
    ids=["run", "project"],
)
def test_calls_can_be_allowed_for_a_run_and_for_a_project(project, options):
    project.makepyfile(ELSEWHERE + PROMPTS)
    run(project, *options).assert_outcomes(passed=1)
