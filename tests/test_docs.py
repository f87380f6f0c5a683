"""The documentation: its code runs, its commands exist, its links lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, get_commands, load_command_class
from django.core.signals import request_finished
from django.db import close_old_connections

from agent_memory.testing import ScriptedProvider, override_provider
from tests.pages import Page
from tests.settings import TEST_DATABASE
from tests.walkthrough import Walkthrough

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("docs/**/*.md"))]

PROJECTS = {"docs/quickstart.md": "## A real model", "docs/tutorial.md": None}
"""Pages that lead through a project, and the heading from which they need a model."""

ALONE = {"docs/tutorial.md"}
"""Pages of which no part runs without their project."""

COSTLY = {"docs/how-to/stores.md"}
"""Pages that take seconds: this one runs the whole contract of stores three times."""

on_sqlite = pytest.mark.skipif(
    TEST_DATABASE != "sqlite", reason="no other database has a part in it"
)


def fault_of_command(name: str, *arguments: str) -> str | None:
    """Return what ``manage.py`` would say against a call."""
    known = get_commands()
    if name not in known:
        return f"manage.py has no command {name!r}"
    command: Any = load_command_class(known[name], name)
    parser = command.create_parser("manage.py", name)
    for action in parser._actions:
        if action.dest == "database":
            action.choices = None  # a reader's project may have others than the tests
    try:
        parser.parse_args(arguments)
    except CommandError as error:
        return f"manage.py {name}: {error}"
    return None


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    assert Page(path).broken_links() == []


def test_every_command_exists_with_its_options() -> None:
    calls = [(path, *call) for path in PAGES for call in Page(path).commands()]
    assert calls, "the README names no command"
    faults = [(path, line, fault_of_command(*arguments)) for path, line, arguments in calls]
    assert [f"{path}:{line}: {fault}" for path, line, fault in faults if fault] == []


def test_a_wrong_command_would_be_found() -> None:
    assert fault_of_command("migrate", "--plan") is None
    assert fault_of_command("migrat") == "manage.py has no command 'migrat'"
    fault = "manage.py migrate: Error: unrecognized arguments: --plna"
    assert fault_of_command("migrate", "--plna") == fault


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
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.heavy, on_sqlite] if name in COSTLY else [])
        for name in map(name_of, PAGES)
        if name not in ALONE
    ],
)
def test_every_python_block_runs(name: str, folder: Path) -> None:
    run(Page(ROOT / name))


@pytest.mark.heavy
@on_sqlite
@pytest.mark.parametrize("name", PROJECTS)
def test_a_page_that_leads_through_a_project_works_when_it_is_pasted(
    name: str, tmp_path: Path
) -> None:
    Walkthrough(Page(ROOT / name), tmp_path).go(until=PROJECTS[name])


def test_what_stands_alone_or_is_costly_is_there() -> None:
    assert {*map(name_of, PAGES)} >= {*PROJECTS, *COSTLY}
    assert {*PROJECTS} >= ALONE


@pytest.mark.parametrize("path", sorted(ROOT.glob("docs/**/index.md")), ids=name_of)
def test_every_page_is_on_an_index(path: Path) -> None:
    beside = {each for each in PAGES if each.is_relative_to(path.parent)} - {path}
    listed = {
        (path.parent / target.partition("#")[0]).resolve() for _, target in Page(path).links()
    }
    deeper = {each.parent for each in beside if each.name == "index.md"}
    assert [
        name_of(each)
        for each in beside - listed
        if each.parent not in deeper and each.parent.name != "changelog.d"
    ] == []


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
