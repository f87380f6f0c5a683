"""The kit in a small project of its own, run by ``django-admin test``, without pytest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

SETTINGS = """
SECRET_KEY = "tests"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "agent_memory"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AGENT_MEMORY = {"MODEL": "gpt-dear"}
"""

TESTS = """
import sys
from types import SimpleNamespace

from django.contrib.auth.models import User
from django.test import SimpleTestCase, TestCase

from agent_memory import Agent, Approve, RemembersConversations, tool
from agent_memory.testing import (
    ConversationAssertions, ProviderCallForbidden, calls, forbid_provider_calls, override_store,
)


@tool(needs_approval="Money leaves.")
def refund(order: int) -> str:
    "Pay an order back."
    return f"{order} is paid."


class SupportCoach(RemembersConversations, Agent):
    instructions = "Keep replies short."
    tools = [refund]


@override_store()
class WithoutDatabaseTests(ConversationAssertions, SimpleTestCase):
    def test_the_coach_remembers(self):
        user = SimpleNamespace(id=7)
        with SupportCoach.fake(["Stored: blue.", "Recalled: blue."]) as fake:
            SupportCoach().for_user(user).prompt("Remember: blue.")
            again = SupportCoach().continue_last_conversation(user).prompt("What did I say?")
        fake.assert_remembered("blue")
        self.assert_remembered(again, "Remember: blue.")
        self.assert_roles(again, ["user", "assistant"] * 2)

    @SupportCoach.fake(["Stored: blue."])
    async def test_async(self):
        reply = await SupportCoach().for_user(SimpleNamespace(id=7)).aprompt("Remember: blue.")
        self.assert_message_count(reply, 2)

    @forbid_provider_calls()
    def test_nobody_asks_a_model(self):
        with self.assertRaises(ProviderCallForbidden):
            SupportCoach().prompt("Hello")


class DatabaseTests(ConversationAssertions, TestCase):
    @SupportCoach.fake([calls(("refund", {"order": 1})), "Paid."])
    def test_a_refund_waits_for_a_person(self):
        coach = SupportCoach().for_user(User.objects.create_user("ada"))
        paused = coach.prompt("I want my money back.")
        self.assert_pending_approvals(paused, ["refund"])
        done = coach.resume({"call-1": Approve()})
        self.assert_decided(done, "call-1", "approved")
        self.assertEqual(done.text, "Paid.")

    @SupportCoach.fake(["Unused."])
    def test_fails(self):
        self.assert_nothing_stored(None)


class NothingElseTests(SimpleTestCase):
    def test_pytest_is_not_needed(self):
        self.assertNotIn("pytest", sys.modules)
"""


@pytest.mark.heavy
def test_djangos_own_runner_needs_nothing_else(tmp_path):
    (tmp_path / "settings.py").write_text(SETTINGS)
    (tmp_path / "tests.py").write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "django", "test", "--settings=settings"],
        cwd=tmp_path,
        env={
            **{name: value for name, value in os.environ.items() if "DJANGO" not in name},
            "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Ran 6 tests" in done.stderr, done.stderr
    assert "FAILED (failures=1)" in done.stderr, done.stderr
    assert "1 of 1 scripted replies were not used; the next is 'Unused.'" in done.stderr
