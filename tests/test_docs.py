"""The documentation: its code runs, its commands exist, its links lead somewhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.signals import request_finished
from django.db import close_old_connections

from agent_memory.testing import ScriptedProvider, override_provider
from tests.pages import Page

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("docs/**/*.md"))]

COMMANDS = """
import json, sys, django
django.setup()
from django.core.management import CommandError, get_commands, load_command_class

def fault(name, *arguments):
    if name not in get_commands():
        return f"manage.py has no command {name!r}"
    parser = load_command_class(get_commands()[name], name).create_parser("manage.py", name)
    for action in parser._actions:
        if action.dest == "database":
            action.choices = None  # a reader's project may have others than the example
    try:
        parser.parse_args(arguments)
    except CommandError as error:
        return f"manage.py {name}: {error}"

print(json.dumps([fault(*call) for call in json.load(sys.stdin)]))
"""


def faults_of_commands(calls: list[list[str]]) -> list[str | None]:
    """Return what the example project's ``manage.py`` would say against each call."""
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "example_project.settings"},
        input=json.dumps(calls),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    faults: list[str | None] = json.loads(done.stdout)
    return faults


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    assert Page(path).broken_links() == []


def test_every_command_exists_with_its_options() -> None:
    calls = [(path, *call) for path in PAGES for call in Page(path).commands()]
    assert calls, "the README names no command"
    faults = faults_of_commands([arguments for _, _, arguments in calls])
    assert [
        f"{path}:{line}: {fault}"
        for (path, line, _), fault in zip(calls, faults, strict=True)
        if fault
    ] == []


def test_a_wrong_command_would_be_found() -> None:
    right, *wrong = faults_of_commands([["migrate", "--plan"], ["migrat"], ["migrate", "--plna"]])
    assert right is None
    assert wrong == [
        "manage.py has no command 'migrat'",
        "manage.py migrate: Error: unrecognized arguments: --plna",
    ]


def run(page: Page) -> int:
    """
    Run a page's blocks, every agent answered from a script; return how many there were.

    A page starts with ``user``, a saved user, and with ``answers(...)``, which
    tells, mostly in a hidden block, what the model is to answer next. All of it
    must be used.
    """
    provider = ScriptedProvider()
    names = {
        "user": User.objects.create_user("ada"),
        "answers": lambda *replies: provider.extend(replies),
    }
    with override_provider(provider):
        count = page.run(names)
    provider.assert_exhausted()
    return count


@pytest.fixture
def answered() -> Iterator[None]:
    """Let a response that ends leave the test's connection open, as Django's test client does."""
    request_finished.disconnect(close_old_connections)
    yield
    request_finished.connect(close_old_connections)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run a test in an empty folder, so that a page may write files."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.django_db
@pytest.mark.usefixtures("answered")
@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_python_block_runs(path: Path, folder: Path) -> None:
    run(Page(path))


def test_the_readme_has_code_that_runs() -> None:
    assert any(block.info == "python" for block in Page(ROOT / "README.md").blocks)


PROMPT = """
<!-- invisible-code-block: python
answers("Stored: blue.")
-->
```python
from agent_memory import Agent, RemembersConversations

class Coach(RemembersConversations, Agent):
    instructions = "Keep replies short."

reply = Coach().for_user(user).prompt("Remember: blue.")
print(reply.text)
```
```output
Stored: blue.
```
"""


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (PROMPT.replace("Stored: blue.\n```", "Stored: red.\n```"), "printed 'Stored: blue"),
        (PROMPT.replace("reply.text", "reply.txt"), "has no attribute 'txt'"),
        (PROMPT.replace("Coach()", "Coach(colour='blue')"), "no attribute 'colour' to set"),
        (PROMPT.replace('answers("Stored', 'answers("Never asked.", "Stored'), "printed 'Never"),
        (PROMPT.replace('blue.")\n-->', 'blue.", "Unused.")\n-->'), "not used"),
        (PROMPT.replace('answers("Stored: blue.")', ""), "its script has 0"),
    ],
)
def test_a_page_that_does_not_hold_fails(text: str, fault: str, folder: Path) -> None:
    (folder / "right.md").write_text(PROMPT)
    assert run(Page(folder / "right.md")) == 2
    User.objects.all().delete()
    (folder / "wrong.md").write_text(text)
    with pytest.raises(Exception, match=fault):
        run(Page(folder / "wrong.md"))


def test_a_changelog_fragment_says_what_kind_of_change_it_is() -> None:
    names = {path.name for path in ROOT.glob("docs/changelog.d/*")} - {"README.md"}
    kinds = "added|changed|deprecated|removed|fixed|security"
    assert [name for name in names if not re.fullmatch(rf"[\w-]+\.({kinds})\.md", name)] == []
