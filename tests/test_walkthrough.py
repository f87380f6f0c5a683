"""The runner of pages that lead through a project: what does not work when pasted is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages import Page, PageError
from tests.walkthrough import Walkthrough

SHELL = "import sys\nassert sys.argv[1] == 'shell'\nexec(sys.stdin.read())\n"

PROJECT = f"""
In `manage.py`:

'''python
{SHELL}
'''

In `said.py`:

'''python
word = "blue"
'''

Add to `said.py`:

'''python
word += "!"
'''

'''console
pip install something
export COUNT=2
ls *.py | wc -l
test $COUNT = 2
'''

'''output
2
'''

Open a shell:

<!-- invisible-code-block: python
1 / 0
-->

'''python
from said import word
print(word)
'''

'''output
blue!
'''

And a new one:

'''python
assert "word" not in vars()
'''

## Later

'''console
false
'''
"""


def follow(text: str, folder: Path, *, until: str | None = "## Later") -> None:
    (folder / "page.md").write_text(text.replace("'''", "```"))
    Walkthrough(Page(folder / "page.md"), folder).go(until=until)


def test_files_are_written_commands_run_and_what_is_printed_is_compared(tmp_path: Path) -> None:
    follow(PROJECT, tmp_path)
    assert (tmp_path / "said.py").read_text() == 'word = "blue"\n\nword += "!"\n'


@pytest.mark.parametrize(
    ("right", "wrong", "fault"),
    [
        ("'''output\n2", "'''output\n3", "it printed '2"),
        ("blue!\n'''", "red!\n'''", "it printed 'blue!"),
        ("print(word)", "print(words)", "NameError"),
        ("test $COUNT = 2", "test $COUNT = 3", "failed"),
        ("Add to `said.py`", "Add to `say.py`", "no say.py to add to"),
        ("And a new one:", "And on:", "AssertionError"),
    ],
)
def test_what_does_not_work_is_found(right: str, wrong: str, fault: str, tmp_path: Path) -> None:
    assert right in PROJECT
    with pytest.raises(PageError, match=fault):
        follow(PROJECT.replace(right, wrong), tmp_path)


def test_without_an_end_all_of_a_page_is_followed(tmp_path: Path) -> None:
    with pytest.raises(PageError, match="false failed"):
        follow(PROJECT, tmp_path, until=None)
