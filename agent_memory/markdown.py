"""
Markdown that a model or a person wrote, as HTML that can do nothing but be read.

Needs the extra ``markdown``; without it texts are shown as they were written.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from agent_memory.records import readable

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

MAX_LENGTH = 40_000
"""Characters; longer texts are shown as they were written: the worst take seconds to parse."""

MAX_NESTING = 30
"""Lists and quotes within each other; the parser drops what is deeper, so that is shown as text."""

SCHEMES = {"http", "https", "mailto"}
TOP_HEADING = 4
"""The level of ``#``: headings of a message stand below those of the page."""

TAGS = {
    *("a", "blockquote", "br", "code", "del", "em", "hr", "li", "ol", "p", "pre", "s", "strong"),
    *("h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td", "ul"),
}
ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}, "th": {"align"}, "td": {"align"}}


def to_html(text: str) -> SafeString:
    """
    Return Markdown as HTML without scripts, styles, pictures or anything else that is loaded.

    Raw HTML is shown as it was written. Pictures become links, and links lead to
    ``http``, ``https`` and ``mailto`` alone; others are shown as text.
    """
    text = readable(text)
    if len(text) > MAX_LENGTH or not (find_spec("markdown_it") and find_spec("nh3")):
        return plain(text)
    import nh3

    parser = _parser()
    tokens = parser.parse(text)
    if any(token.level >= MAX_NESTING - 1 for token in tokens):
        return plain(text)
    html = nh3.clean(
        parser.renderer.render(tokens, parser.options, {}),
        tags=TAGS,
        attributes=ATTRIBUTES,
        set_tag_attribute_values={"table": {"tabindex": "0"}},
        url_schemes=SCHEMES,
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(html) if html.strip() else plain(text)  # noqa: S308  nh3 has cleaned it


def plain(text: str) -> SafeString:
    """Return text as a block that shows it as it was written."""
    return format_html('<pre class="agent-memory-text">{}</pre>', readable(text))


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "breaks": True, "maxNesting": MAX_NESTING})
    parser.enable(["table", "strikethrough"])
    parser.validateLink = _may_lead_there  # type: ignore[method-assign]  # its documented hook
    parser.core.ruler.push("tame", _tame)
    return parser


def _may_lead_there(url: str) -> bool:
    try:
        return urlsplit(url).scheme in SCHEMES
    except ValueError:
        return False


def _tame(state: StateCore) -> None:
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + TOP_HEADING - 1, 6)}"
        elif token.type in ("th_open", "td_open") and "style" in token.attrs:
            token.attrs = {"align": str(token.attrs["style"]).removeprefix("text-align:")}
        elif token.type == "inline":
            token.children = list(_without_pictures(token.children or []))


def _without_pictures(tokens: list[Token]) -> Iterator[Token]:
    """Yield tokens with pictures as links, and no link that has nothing to click on."""
    from markdown_it.token import Token

    target, named = "", False
    for token in tokens:
        if token.type == "link_open":
            target, named = str(token.attrs["href"]), False
        elif token.type == "link_close":
            if not named:
                yield Token("text", "", 0, content=target)
            target = ""
        named = named or token.type == "image" or bool(token.content.strip())
        if token.type != "image":
            yield token
            continue
        source = str(token.attrs["src"])
        text = Token("text", "", 0, content=token.content.strip() or source)
        if target:
            yield text
        else:
            yield Token("link_open", "a", 1, attrs={"href": source})
            yield text
            yield Token("link_close", "a", -1)
