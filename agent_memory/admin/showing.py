"""Values as HTML: cut to what a page can hold, and harmless whatever they are."""

from __future__ import annotations

import json
from typing import Any

from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from agent_memory import markdown

MAX_SHOWN = 50_000
"""Characters of one text or value that a page shows; a download has the rest."""


def link(url: str, text: object) -> SafeString:
    return format_html('<a href="{}">{}</a>', url, text)


def cut(text: str) -> str:
    """Return as much of a text as a page shows."""
    if len(text) <= MAX_SHOWN:
        return text
    told = gettext("Cut here: %(count)d more characters are in the download.")
    return f"{text[:MAX_SHOWN]}\u2026\n\n[{told % {'count': len(text) - MAX_SHOWN}}]"


def written(text: str) -> SafeString:
    """Show a text as it was written."""
    return markdown.plain(cut(text))


def json_text(value: Any) -> str:
    """Return a value as JSON with indents, in which nothing hides: no mark, no lone surrogate."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return "".join(c if c == "\n" or c.isprintable() else json.dumps(c)[1:-1] for c in text)


def pretty(value: Any) -> SafeString:
    """Show JSON-able data as JSON with indents."""
    return written(json_text(value))


def pretty_json(text: str) -> SafeString:
    """Show JSON with indents, and what cannot be read as JSON as it is."""
    try:
        return pretty(json.loads(text))
    except (ValueError, RecursionError):
        return written(text)


def grouped(number: int) -> str:
    return number_format(number, force_grouping=True)


def tokens_text(row: Any) -> str:
    """Return the tokens of a conversation or a message in words; nothing for none."""
    counted = {
        gettext("%(count)s in"): row.input_tokens,
        gettext("%(count)s out"): row.output_tokens,
        gettext("%(count)s cached"): row.cached_tokens,
        gettext("%(count)s reasoning"): row.reasoning_tokens,
    }
    return ", ".join(text % {"count": grouped(count)} for text, count in counted.items() if count)
