"""The runner of the documentation's pages: what is wrong on a page is found."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pages import Page, PageError

Write = Callable[[str], Page]


@pytest.fixture
def page(tmp_path: Path) -> Write:
    def write(text: str) -> Page:
        path = tmp_path / "page.md"
        path.write_text(text.replace("'''", "```"))
        return Page(path)

    return write


def test_blocks_of_a_page_share_their_names_and_run_in_order(page: Write) -> None:
    seen: list[int] = []
    text = "'''python\nx = 1\n'''\nThen:\n\n- in a list\n\n  '''python\n  if x:\n      add(x + 1)\n  '''\n"
    assert page(text).run({"add": seen.append}) == 2
    assert seen == [2]


def test_two_pages_share_nothing(page: Write) -> None:
    page("'''python\nx = 1\n'''\n").run({})
    with pytest.raises(NameError):
        page("'''python\nx\n'''\n").run({})
    assert "page_page" not in sys.modules


def test_a_wrong_block_fails_and_names_its_place(page: Write) -> None:
    wrong = page("# Title\n\n'''python\nx = 1\nassert x == 2\n'''\n")
    with pytest.raises(AssertionError) as caught:
        wrong.run({})
    assert caught.value.__notes__ == [f"in the block at {wrong.path}:4"]
    frame = caught.traceback[-1]
    assert (frame.path, frame.lineno + 1) == (wrong.path, 5)


def test_a_block_that_is_no_python_fails(page: Write) -> None:
    with pytest.raises(SyntaxError):
        page("'''python\nx = \n'''\n").run({})


def test_a_block_may_await(page: Write) -> None:
    seen: list[str] = []
    text = "'''python\nasync def answer():\n    return 'blue'\nadd(await answer())\n'''\n"
    page(text).run({"add": seen.append})
    assert seen == ["blue"]


def test_a_hidden_block_is_run(page: Write) -> None:
    seen: list[int] = []
    text = "<!-- invisible-code-block: python\nx = 3\n-->\n'''python\nadd(x)\n'''\n"
    assert page(text).run({"add": seen.append}) == 2
    assert seen == [3]


def test_type_hints_of_a_page_can_be_read(page: Write) -> None:
    text = (
        "'''python\nfrom __future__ import annotations\nfrom typing import get_type_hints\n"
        "class Box:\n    size: Size\nclass Size: ...\n"
        "assert get_type_hints(Box) == {'size': Size}\n'''\n"
    )
    assert page(text).run({}) == 1


def test_what_a_block_prints_is_what_the_page_shows(page: Write) -> None:
    assert page("'''python\nprint('blue')\n'''\n\n'''output\nblue\n'''\n").run({}) == 1
    with pytest.raises(PageError, match=r":6: .*printed 'blue"):
        page("'''python\nprint('blue')\n'''\n\n'''output\nred\n'''\n").run({})


def test_a_setting_that_does_not_exist_is_found(page: Write) -> None:
    assert page("'''python\nAGENT_MEMORY = {'MODEL': 'm'}\n'''\n").run({}) == 1
    with pytest.raises(PageError, match="AGENT_MEMORY has no MODLE"):
        page("'''python\nAGENT_MEMORY = {'MODLE': 'm'}\n'''\n").run({})


def test_a_skip_with_a_reason_leaves_one_block_out(page: Write) -> None:
    skip = "<!-- skip: next \"asks a real model\" -->\n'''python\n1 / 0\n'''\n"
    assert page(skip + "'''python\nx = 1\n'''\n").run({}) == 1
    with pytest.raises(ZeroDivisionError):
        page(skip + "'''python\n1 / 0\n'''\n").run({})


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("<!-- skip: next -->\n'''python\n1 / 0\n'''\n", ":1: a skip needs its reason"),
        ("\n'''python no-run\n1 / 0\n'''\n", ":2: 'python no-run' is no block"),
        ("'''py\n1 / 0\n'''\n", ":1: call this block 'python'"),
        ("'''python\n1 / 0\n", ":1: this block does not end"),
    ],
)
def test_no_block_escapes_by_its_form(page: Write, text: str, fault: str) -> None:
    with pytest.raises(PageError, match=fault):
        page(text)


def test_commands_are_found_in_shell_blocks(page: Write) -> None:
    text = (
        "'''console\n$ uv run manage.py demo --model local && echo done\nIt's done.\n'''\n"
        "'''bash\nX=1 python manage.py migrate | tee log  # once\n'''\n"
        "'''text\npython manage.py nothing\n'''\n"
    )
    assert list(page(text).commands()) == [
        (2, ["demo", "--model", "local"]),
        (6, ["migrate"]),
    ]


def test_anchors_are_those_that_github_makes(page: Write) -> None:
    text = "# One `prompt()`, twice!\n## [Same](x.md)\n## Same\n'''\n# no heading\n'''\n<a id='here'></a>\n"
    assert page(text).anchors() == {"one-prompt-twice", "same", "same-1", "here"}


@pytest.mark.parametrize(
    "link",
    ["[a](page.md)", "[a](#title)", "[a]: page.md#title", "![a](page.md)", "[a](<page.md>)"],
)
def test_a_link_that_leads_somewhere_is_no_fault(page: Write, link: str) -> None:
    assert page(f"# Title\n\n{link}\n").broken_links() == []


@pytest.mark.parametrize("link", ["[a](gone.md)", "[a](#gone)", "[a]: page.md#gone", "![a](b.png)"])
def test_a_link_that_leads_nowhere_is_found(page: Write, link: str) -> None:
    written = page(f"# Title\n\n{link}\n")
    assert len(written.broken_links()) == 1
    assert written.broken_links()[0].startswith(f"{written.path}:3: ")


def test_code_and_the_web_hold_no_links_to_check(page: Write) -> None:
    text = "`[a](gone.md)` [b](https://example.com/gone)\n'''\n[c](gone.md)\n'''\n"
    assert page(text).broken_links() == []
