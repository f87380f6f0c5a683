"""A turn that waits survives its process: each part of it runs in one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.settings import TEST_DATABASE

pytestmark = pytest.mark.skipif(
    TEST_DATABASE != "sqlite", reason="the example has an SQLite file of its own: uv run pytest"
)

ROOT = Path(__file__).parent.parent

BEGINNING = """
import json, sys, django
django.setup()
from agent_memory import Agent, Approve, RemembersConversations, conversation_store, tool
from agent_memory.messages import ToolCall
from agent_memory.testing import ScriptedProvider, override_provider
from django.contrib.auth.models import User

@tool(needs_approval="Refunds need a manager.")
def refund(order: str, amount: int) -> str:
    "Pay an order back."
    with open(sys.argv[1], "a") as ledger:
        print(order, amount, file=ledger)
    return f"{amount} paid back"

class SupportCoach(RemembersConversations, Agent):
    tools = [refund]

"""

ASKING = """
user = User.objects.create_user("ada")
call = ToolCall(id="call_0", name="refund", arguments={"order": "A7", "amount": 40})
with override_provider(ScriptedProvider([call])):
    reply = SupportCoach().for_user(user).prompt("I want my money back.")
print(json.dumps([reply.status, reply.conversation_id]))
"""

DECIDING = """
manager = User.objects.create_user("grace", is_staff=True)
(waiting,) = conversation_store.pending_approvals_for(sys.argv[2])
left = conversation_store.decide(
    sys.argv[2], {waiting.id: Approve()}, decided_by=manager, note="Fine."
)
print(json.dumps([waiting.reason, waiting.arguments, len(left)]))
"""

GOING_ON = """
user = User.objects.get(username="ada")
with override_provider(ScriptedProvider(["Your 40 are on their way."])) as provider:
    reply = SupportCoach().continue_conversation(sys.argv[2], user, must_own=True).resume()
print(json.dumps([reply.text, reply.status, [m.text for m in reply.turn.messages]]))
"""


@pytest.mark.heavy
def test_a_refund_is_asked_for_allowed_and_paid_in_three_processes(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    env = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "example_project.settings",
        "EXAMPLE_DATABASE": str(tmp_path / "db.sqlite3"),
    }

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("manage.py", "migrate", "--verbosity", "0")
    status, conversation_id = json.loads(run("-c", BEGINNING + ASKING, str(ledger)))
    assert (status, ledger.exists()) == ("paused", False)
    told = json.loads(run("-c", BEGINNING + DECIDING, str(ledger), conversation_id))
    assert told == ["Refunds need a manager.", {"order": "A7", "amount": 40}, 0]
    assert not ledger.exists()
    text, status, messages = json.loads(
        run("-c", BEGINNING + GOING_ON, str(ledger), conversation_id)
    )
    assert (text, status) == ("Your 40 are on their way.", "completed")
    assert messages == ["I want my money back.", "", "40 paid back", text]
    assert ledger.read_text() == "A7 40\n"
