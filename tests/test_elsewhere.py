"""What is promised holds in a second database, under other names, and for other user models."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def holds(settings: str, *selection: str) -> None:
    """Run tests in a process with settings of their own."""
    options = ("-q", "-n0", "--create-db", "-p", "no:cacheprovider", f"--ds={settings}")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *(str(TESTS / each) for each in selection)],
        cwd=TESTS.parent,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.heavy
@pytest.mark.parametrize("settings", ["tests.settings_two_databases", "tests.settings_renamed"])
def test_the_contract_holds_in_a_second_database_and_under_other_names(settings: str) -> None:
    holds(settings, "contract_elsewhere.py")


@pytest.mark.heavy
def test_conversations_and_their_owners_are_found_under_other_names() -> None:
    holds("tests.settings_renamed", "test_ownership.py", "test_querysets.py")


@pytest.mark.heavy
def test_a_user_model_of_the_projects_own_is_remembered() -> None:
    holds("tests.settings_custom_user", "custom_user.py")
