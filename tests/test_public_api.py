"""What the app promises to importers: its names, when they may be imported, and a test a module."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import agent_memory
from tests.pages import Page

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "agent_memory"

NAMES = [
    "Agent",
    "AnonymousAgent",
    "Approve",
    "Deny",
    "Edit",
    "Message",
    "Participant",
    "RemembersConversations",
    "Tool",
    "ToolContext",
    "conversation_store",
    "load_file",
    "load_image",
    "load_pdf",
    "tool",
]

IMPORTED_EARLY = """
import sys
from agent_memory import *
from django.apps import apps
from django.conf import settings

assert not settings.configured, "the settings were read"
assert not apps.apps_ready
print(*sorted(sys.modules))
"""

SET_UP = """
import sys
import django
from django.conf import settings

apps = ["django.contrib.contenttypes", "django.contrib.auth", "agent_memory"]
settings.configure(INSTALLED_APPS=apps)
django.setup()
print(*sorted(sys.modules))
"""

TESTED_BY = {
    "admin/conversations.py": "admin/test_admin.py",
    "admin/messages.py": "admin/test_admin.py",
    "admin/pages.py": "admin/test_admin.py",
    "admin/prose.py": "admin/test_exports.py",
    "admin/said.py": "admin/test_transcript.py",
    "admin/showing.py": "admin/test_transcript.py",
    "admin/states.py": "admin/test_admin_lists.py",
    "__init__.py": "test_public_api.py",
    "providers/base.py": "providers/test_openai_errors.py",
    "providers/openai_calls.py": "providers/test_openai_chat_answers.py",
    "providers/openai_chunks.py": "providers/test_openai_chat_answers.py",
    "providers/openai_provider.py": "providers/test_openai_errors.py",
    "reserving.py": "test_holding.py",
    "storable.py": "test_records.py",
    "stores/__init__.py": "stores/test_loading.py",
    "stores/holding.py": "stores/test_base.py",
    "stores/keeping.py": "stores/test_catalogue.py",
    "stores/participants.py": "stores/test_base.py",
    "stores/said.py": "stores/test_transcript.py",
    "stores/twins.py": "stores/test_base.py",
    "testing/__init__.py": "testing/test_names.py",
    "testing/contract": "testing/test_store_contract.py",
    "testing/stores.py": "testing/test_store_contract.py",
    "urls.py": "test_views.py",
}
"""The modules whose tests have another name than theirs."""


def units() -> list[str]:
    """
    Return what wants a test module of its name: modules with code, migrations left out.

    A package inside a room, such as ``stores/database``, counts as one.
    """
    found = {
        Path(*path.relative_to(PACKAGE).parts[:2])
        for path in PACKAGE.rglob("*.py")
        if "migrations" not in path.parts and path.read_text().strip()
    }
    return sorted(str(path) for path in found)


def twins(unit: str) -> list[str]:
    """Return the test modules that carry a unit's name, such as test_agents or test_agents_async."""
    path = Path(unit)
    name = path.parent.name if path.stem == "__init__" else path.stem
    folder = ROOT / "tests" / path.parent
    return [
        str(found)
        for found in folder.glob("test_*.py")
        if f"{found.stem}_".startswith(f"test_{name}_")
    ]


def test_the_package_exports_exactly_the_names_that_it_promises() -> None:
    assert sorted(agent_memory.__all__) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_in_the_documentation(name: str) -> None:
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
    code = "\n".join(block.source for path in pages for block in Page(path).blocks)
    assert re.search(rf"\b{name}\b", code)


def loaded_by(source: str) -> set[str]:
    """Return the modules that a process prints."""
    done = subprocess.run(
        [sys.executable, "-c", source],
        cwd=ROOT,
        env={"PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_the_public_names_can_be_imported_before_settings_and_apps_are_ready() -> None:
    loaded = loaded_by(IMPORTED_EARLY)
    assert "agent_memory.agents" in loaded
    assert not loaded & {"openai", "agent_memory.models", "django.contrib.contenttypes.models"}


def test_a_process_that_calls_no_agent_loads_neither_agents_nor_stores_nor_what_they_need() -> None:
    loaded = loaded_by(SET_UP)
    assert {"agent_memory.models", "agent_memory.checks"} <= loaded
    ours = {"agent_memory.agents", "agent_memory.stores"}
    assert not loaded & {*ours, "filelock", "openai", "puremagic", "pydantic", "uuid_utils"}


@pytest.mark.parametrize("unit", units())
def test_every_module_has_a_test_module_of_its_name_or_a_named_one(unit: str) -> None:
    named = TESTED_BY.get(unit)
    if named is None:
        assert twins(unit)
    else:
        assert (ROOT / "tests" / named).exists()
        assert not twins(unit), f"{unit} is no exception any more"


def test_every_exception_names_a_module_that_exists() -> None:
    assert set(TESTED_BY) <= set(units())
