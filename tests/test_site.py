"""The documentation as it is built, by ``uv run --group docs pytest -m heavy tests/test_site.py``."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import agent_memory
from agent_memory import exceptions, testing
from tests.pages import Page

DOCS = Path(__file__).parent.parent / "docs"

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(find_spec("sphinx") is None, reason="the group docs is not installed"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the pages, with warnings as errors."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    done = subprocess.run(
        [*command, "-d", str(folder / "trees"), str(DOCS), str(folder / "html")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


def text_of(page: Path) -> str:
    """Return the words of a built page, each after one blank."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", page.read_text())).split())


def test_what_is_for_the_tests_of_a_page_is_not_shown(site: Path) -> None:
    checked = 0
    for path in DOCS.rglob("*.md"):
        page = Page(path)
        shown = " ".join(block.source for block in page.blocks if not block.hidden)
        built = site / path.relative_to(DOCS).with_suffix(".html")
        for block in page.blocks:
            for line in block.source.splitlines() if block.hidden else ():
                if line.startswith("assert ") and line not in shown:
                    assert " ".join(line.split()) not in text_of(built), f"{path}: {line}"
                    checked += 1
    assert checked > 50


def test_every_public_name_has_a_place_to_link_to(site: Path) -> None:
    from sphinx.util.inventory import InventoryFile

    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    names = {name.rpartition(".")[2] for kind in inventory.data.values() for name in kind}
    errors = {name for name in vars(exceptions) if name.endswith(("Error", "Exist", "Busy"))}
    told_in_prose = {"conversation_store"}
    assert {*agent_memory.__all__, *testing.__all__, *errors} - names == told_in_prose
