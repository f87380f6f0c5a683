"""What ``agent_memory.testing`` exports, and what it does not bring along."""

from __future__ import annotations

import subprocess
import sys

import pytest

from agent_memory import testing


def test_all_names_are_there_and_listed():
    for name in testing.__all__:
        assert getattr(testing, name).__name__ == name
        assert name in dir(testing)
    with pytest.raises(AttributeError, match="no attribute 'surprise'"):
        _ = testing.surprise


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
