"""Turns that people have decided on are run on by the example's command, and as tasks."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import django
import pytest
from django.core.management import call_command

from agent_memory import Approve, Deny, conversation_store
from agent_memory.exceptions import ProviderUnavailable
from agent_memory.models import Conversation
from agent_memory.signals import approval_decided
from agent_memory.testing import ScriptedProvider, calls, override_agent_memory, override_provider
from example_project.chat import tasks
from example_project.chat.agents import SupportCoach
from example_project.chat.management.commands.resume_decided import Command
from example_project.chat.models import Refund

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).resolve().parents[2]

has_tasks = pytest.mark.skipif(django.VERSION < (6, 0), reason="Django has tasks from 6.0 on")


@pytest.fixture
def provider(db: None) -> Iterator[ScriptedProvider]:
    with (
        override_agent_memory(VERIFY_OWNERSHIP=True),
        override_provider(ScriptedProvider()) as provider,
    ):
        yield provider


def pause(provider: ScriptedProvider, user: Any, order: str = "A7") -> str:
    """Let the coach ask for a refund that waits."""
    provider.extend([calls(("refund", {"order": order, "amount": "40.00"}))])
    reply = SupportCoach().for_user(user).prompt(f"Refund order {order}.")
    assert reply.status == "paused"
    assert reply.conversation_id is not None
    return reply.conversation_id


def resume_decided() -> tuple[str, str]:
    """Run the command once; return what it wrote."""
    out, err = io.StringIO(), io.StringIO()
    call_command(Command(), once=True, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_the_command_runs_on_what_is_decided_and_leaves_what_waits(
    provider: ScriptedProvider, user: Any
) -> None:
    one, two = pause(provider, user, "A7"), pause(provider, user, "B2")
    provider.extend(["Your 40.00 are on their way."])
    assert resume_decided() == ("", "")
    conversation_store.decide(one, {"*": Approve()})
    assert resume_decided() == (f"{one}: completed\n", "")
    assert resume_decided() == ("", "")
    assert list(Refund._default_manager.values_list("order", flat=True)) == ["A7"]
    assert [waiting.arguments["order"] for waiting in waiting_in(two)] == ["B2"]
    assert conversation_store.load(one)[-1].text == "Your 40.00 are on their way."


def waiting_in(conversation_id: str) -> Any:
    return conversation_store.pending_approvals_for(conversation_id)


def test_a_turn_that_fails_does_not_stop_the_others_and_is_tried_again(
    provider: ScriptedProvider, user: Any
) -> None:
    one, two = sorted([pause(provider, user), pause(provider, user)])
    for each in (one, two):
        conversation_store.decide(each, {"*": Approve()})
    provider.extend([ProviderUnavailable("Down."), "Done."])
    out, err = resume_decided()
    assert (out.count("completed"), err.count("ProviderUnavailable: Down.")) == (1, 1)
    provider.extend(["Done."])
    assert "completed" in resume_decided()[0]
    assert Refund._default_manager.count() == 2


def test_a_turn_that_another_worker_runs_is_left_to_it(
    provider: ScriptedProvider, user: Any
) -> None:
    one = pause(provider, user)
    conversation_store.decide(one, {"*": Approve()})
    conversation_store.reserve(one, resume=True, participant=user)
    assert resume_decided() == (f"{one}: running\n", "")
    assert tasks.run_on("unknown") == "not decided"


def test_a_turn_of_an_agent_that_is_not_known_is_told(
    provider: ScriptedProvider, user: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = pause(provider, user)
    conversation_store.decide(one, {"*": Deny("No.")})
    monkeypatch.setattr(tasks, "AGENTS", {})
    assert resume_decided()[1].startswith(f"{one}: KeyError")


@has_tasks
def test_a_task_runs_a_turn_on_when_its_last_call_is_decided(
    provider: ScriptedProvider, user: Any, django_capture_on_commit_callbacks: Any, settings: Any
) -> None:
    settings.TASKS = {"default": {"BACKEND": "django.tasks.backends.immediate.ImmediateBackend"}}
    one = pause(provider, user)
    provider.extend(["Done."])
    approval_decided.connect(tasks.enqueue_decided)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            conversation_store.decide(one, {"*": Approve()})
    finally:
        approval_decided.disconnect(tasks.enqueue_decided)
    assert Refund._default_manager.count() == 1
    assert not Conversation.objects.filter(paused_position__isnull=False).exists()


@has_tasks
def test_a_task_can_be_enqueued_by_a_program_of_its_own(
    provider: ScriptedProvider, user: Any
) -> None:
    one = pause(provider, user)
    conversation_store.decide(one, {"*": Deny()})
    result = tasks.resume_turn.enqueue(one)
    assert result.return_value == "completed"


WITHOUT_TASKS = """
import sys
sys.modules["django.tasks"] = None
import django
django.setup()
from example_project.chat import tasks
from django.core.management import load_command_class
load_command_class("example_project.chat", "resume_decided")
assert not hasattr(tasks, "resume_turn")
"""


@pytest.mark.heavy
def test_the_command_works_where_django_has_no_tasks() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TASKS],
        cwd=ROOT,
        env={"DJANGO_SETTINGS_MODULE": "example_project.settings"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
