"""What ``agent_memory.testing`` exports, and what it does not bring along."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agent_memory import testing
from agent_memory.testing import ConversationAssertions, pytest_plugin
from tests.test_reference import public, rows

HOW_TO = Path(__file__).parent.parent.parent / "docs" / "how-to" / "testing.md"


def test_all_names_are_there_and_listed():
    for name in testing.__all__:
        assert getattr(testing, name).__name__ == name
        assert name in dir(testing)
    with pytest.raises(AttributeError, match="no attribute 'surprise'"):
        _ = testing.surprise


@pytest.mark.heavy
def test_neither_pytest_nor_settings_nor_models_are_needed():
    program = (
        "import sys\n"
        "from agent_memory.testing import *\n"
        "from django.conf import settings\n"
        "assert not settings.configured\n"
        "assert not {'pytest', '_pytest', 'agent_memory.models', 'openai'} & set(sys.modules)\n"
        "print(ConversationStoreContract.__name__, override_store.__name__)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={"PYTHONPATH": ":".join(path or "." for path in sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == ("ConversationStoreContract override_store", "")


def test_what_the_plugin_brings_is_in_the_reference():
    assert [row[0].strip("`") for row in rows("testing", "pytest")] == [
        pytest_plugin.agent_memory_store.__name__,
        pytest_plugin.scripted_provider.__name__,
        pytest_plugin.conversations.__name__,
        pytest_plugin.OPTION,
        f"@pytest.mark.{pytest_plugin.MARKER}",
        pytest_plugin.ALLOWED,
    ]


def test_every_assertion_about_conversations_is_in_the_guide():
    text = HOW_TO.read_text(encoding="utf-8")
    wanted = [name for name in public(ConversationAssertions) if name.startswith("assert_")]
    assert [name for name in wanted if f"| `{name}(" not in text] == []
