"""How a template shows what was said."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from django import template

from agent_memory.markdown import to_html
from agent_memory.messages import ToolCall
from agent_memory.records import readable

register = template.Library()
register.filter("markdown", to_html)
register.filter("readable", readable)


@register.filter
def pretty(value: Any) -> str:
    """Show arguments or a result: text as it is, all else as indented JSON."""
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    return readable(text)  # JSON may hold lone surrogates, and a page cannot


@register.filter
def pairs(arguments: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return names and values; ``.items`` in a template would be an argument of that name."""
    return list(arguments.items())


@register.filter
def waits(call: ToolCall, pending: Iterable[Any]) -> bool:
    """Tell whether a call is one of those that wait for a decision."""
    return call.result is None and any(each.id == call.id for each in pending)
