"""The plugin's fixtures hold for one test, and it loads where there are no settings."""

from __future__ import annotations

import subprocess
import sys

from agent_memory.messages import Message
from agent_memory.providers import ProviderRequest, get_provider
from agent_memory.stores import get_store
from agent_memory.testing.contract.base import plain_turn
from agent_memory.testing.pytest_plugin import agent_memory_store, scripted_provider

__all__ = ["agent_memory_store", "scripted_provider"]


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


PLAIN = """
def test_nothing_of_django_is_needed():
    import django.conf
    assert not django.conf.settings.configured
"""

FIXTURES = """
from django.conf import settings
settings.configure()

from django.test import SimpleTestCase
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.testing import ConversationStoreContract

def test_fixtures(agent_memory_store, scripted_provider):
    scripted_provider.extend(["Hello"])
    assert agent_memory_store.load("one") == ()

class Forgetful(InMemoryConversationStore):
    def load(self, *args, **kwargs):
        return ()

class StoreTests(ConversationStoreContract, SimpleTestCase):
    def make_store(self):
        return Forgetful()
"""


def run(tmp_path, program: str, *options: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "test_it.py").write_text(program)
    plugin = ("-p", "agent_memory.testing.pytest_plugin", "-p", "no:cacheprovider")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", *plugin, *options],
        cwd=tmp_path,
        env={
            "PYTHONPATH": ":".join(path or "." for path in sys.path),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_plugin_loads_in_a_project_without_settings(tmp_path):
    done = run(tmp_path, PLAIN)
    assert done.returncode == 0, done.stdout + done.stderr


def test_fixtures_and_contract_need_no_installed_app_and_failures_show_both_sides(tmp_path):
    done = run(tmp_path, FIXTURES, "-k", "fixtures or each_conversation_has_a_history")
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "assert () == (Message(" in done.stdout
