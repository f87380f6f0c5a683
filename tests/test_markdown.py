"""Markdown as HTML that can do nothing but be read."""

from __future__ import annotations

import re
import sys

import pytest
from django.utils.safestring import SafeString
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_memory import markdown
from agent_memory.markdown import MAX_LENGTH, plain, to_html
from tests.admin.talks import HOSTILE, MARKDOWN

TAG = re.compile(r"<(/?)(\w+)([^>]*)>")


def tags(html: str) -> set[str]:
    return {name for _, name, _ in TAG.findall(html)}


def links(html: str) -> list[str]:
    return re.findall(r'href="([^"]*)"', html)


def test_markdown_becomes_html() -> None:
    html = to_html(MARKDOWN)
    assert isinstance(html, SafeString)
    assert "<strong>blue chair</strong>" in html
    assert '<td align="right">49.90</td>' in html
    assert "<em>Kiel</em>" in html
    assert "<code>DHL-17</code>" in html
    assert "return price * count  # &lt;b&gt;no markup&lt;/b&gt;" in html
    assert links(html) == ["https://shop.example/terms"]


def test_a_line_break_stays_one() -> None:
    assert to_html("one\ntwo") == "<p>one<br>\ntwo</p>\n"


def test_headings_stand_below_those_of_the_page() -> None:
    assert tags(to_html("# a\n\n## b\n\n###### c")) == {"h4", "h5", "h6"}


def test_raw_html_is_shown_as_it_was_written() -> None:
    html = to_html('a <script>alert(1)</script> <b onclick="x">b</b>\n\n<div>c</div>\n<!-- d -->')
    assert tags(html) == {"p", "br"}
    for shown in (
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        '&lt;b onclick="x"&gt;b&lt;/b&gt;',
        "&lt;div&gt;c&lt;/div&gt;",
        "&lt;!-- d --&gt;",
    ):
        assert shown in html


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "java&#x73;cript:alert(1)",
        "data:text/html,x",
        "vbscript:x",
        "file:///etc/passwd",
        "//evil.example",
        "/admin/logout/",
        "?delete=1",
        "#end",
        "https&#58;//[",
    ],
)
@pytest.mark.parametrize("form", ["[a]({})", "![a]({})", "<{}>", "[a][b]\n\n[b]: {}"])
def test_an_address_that_is_neither_web_nor_mail_is_no_link(url: str, form: str) -> None:
    html = to_html(form.format(url))
    assert links(html) == []
    assert "<img" not in html


@pytest.mark.parametrize(
    "url", ["http://a.example", "https://a.example/?b=c", "mailto:a@b.example"]
)
def test_a_link_tells_the_other_side_nothing(url: str) -> None:
    (link,) = re.findall(r"<a [^>]*>", to_html(f'[a]({url} "t")'))
    assert f'href="{url}"' in link
    assert 'rel="noopener noreferrer nofollow"' in link


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("![A chair](https://a.example/c.png)", '<a href="https://a.example/c.png"{}>A chair</a>'),
        ("![](https://a.example/c)", '<a href="https://a.example/c"{}>https://a.example/c</a>'),
        ("[![c](https://a.example/c)](https://b.example)", '<a href="https://b.example"{}>c</a>'),
        ("[ ](https://b.example)", '<a href="https://b.example"{}> https://b.example</a>'),
    ],
)
def test_a_picture_becomes_a_link_and_a_link_has_words(text: str, html: str) -> None:
    assert html.format(' rel="noopener noreferrer nofollow"') in to_html(text)


@pytest.mark.parametrize("depth", [1, 10, 28, 29, 30, 31, 100, 5000])
@pytest.mark.parametrize("form", ["> ", "- ", "1. "])
def test_nothing_is_hidden_by_its_depth(form: str, depth: int) -> None:
    assert "secret" in to_html(f"{form * depth}secret")


def test_what_would_show_nothing_is_shown_as_it_was_written() -> None:
    assert "hidden words" in to_html("[a]: https://a.example 'hidden words'")


def test_lone_surrogates_and_nul_become_a_sign_that_can_be_sent() -> None:
    for html in (to_html("a\ud800**b**\0"), plain("a\ud800\0")):
        assert html.encode()
        assert html.count("\ufffd") == 2


def test_long_texts_are_shown_as_they_were_written() -> None:
    text = "**a** " * MAX_LENGTH
    assert to_html(text) == plain(text)


@pytest.mark.parametrize("missing", ["markdown_it", "nh3"])
def test_without_the_extra_texts_are_shown_as_they_were_written(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    found = markdown.find_spec
    monkeypatch.setattr(markdown, "find_spec", lambda name: name != missing and found(name))
    monkeypatch.setitem(sys.modules, missing, None)
    html = to_html("**a**\n<b>")
    assert html == '<pre class="agent-memory-text">**a**\n&lt;b&gt;</pre>'


marks = st.sampled_from(
    [*"*_`~#>|[]()!<>&\"'\\:/-= \n\t", "https:", "javascript:", "data:", HOSTILE]
)


@settings(max_examples=100, deadline=None)
@given(st.lists(marks | st.text(max_size=5), max_size=40).map("".join))
def test_whatever_is_written_nothing_of_it_runs_or_is_loaded(text: str) -> None:
    html = to_html(text)
    assert html.encode()
    assert tags(html) <= markdown.TAGS
    for _, name, attributes in TAG.findall(html):
        names = set(re.findall(r'([\w-]+)="', re.sub(r'="[^"]*"', '="', attributes)))
        assert names <= markdown.ATTRIBUTES.get(name, set()) | {"rel", "tabindex", "class"}
    assert all(re.match("https?:|mailto:", url) for url in links(html))
