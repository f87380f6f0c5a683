"""A conversation as Markdown, to be read outside of the admin."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agent_memory.admin.exports import rows_of
from agent_memory.admin.pages import participant_text
from agent_memory.admin.said import outcome_of, said
from agent_memory.admin.transcript import OUTCOMES
from agent_memory.messages import (
    DocumentPart,
    ImagePart,
    ProviderToolCall,
    Reasoning,
    RefusalPart,
    TextPart,
    ToolCall,
)
from agent_memory.models import Conversation, ConversationMessage
from agent_memory.records import StoredAttachment, readable

WORDS = {
    "user": _("Somebody"),
    "assistant": _("Agent"),
    "turns": _("Turns"),
    "tokens": _("Tokens"),
    "participant": _("Participant"),
    "agent": _("Agent"),
    "opened_at": _("Opened"),
    "last_activity": _("Last activity"),
    "call": _("Tool call"),
    "hosted": _("Call that the provider ran"),
    "edited": _("Arguments that a person gave instead"),
    "result": _("Result"),
    "reasoning": _("Reasoning"),
    "refusal": _("Refusal"),
    "file": _("File"),
    "failed": _("This turn failed"),
    "paused": _("This turn waits for a person"),
    "unreadable": _("This message cannot be read by this version; the JSON has what is stored"),
}


class Prose:
    """
    A conversation as Markdown to be read.

    Words and times are those of the request: whoever sends the response has others.
    """

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.words = {name: str(word) for name, word in WORDS.items()}
        self.outcomes = {name: str(word) for name, word in OUTCOMES.items()}
        self.zone = timezone.get_current_timezone()

    def __iter__(self) -> Iterator[str]:
        yield from self.head()
        for row in rows_of(self.conversation, "participant"):
            yield from self.message(row)

    def head(self) -> Iterator[str]:
        row, words = self.conversation, self.words
        yield f"# {_line(row.title) or _line(row.pk)}\n\n"
        yield f"- Id: {_code(row.pk)}\n"
        facts = {
            "participant": self.speaker(row),
            "agent": row.agent,
            "opened_at": self.time(row.opened_at),
            "last_activity": self.time(row.last_activity),
            "turns": row.turn_count,
            "tokens": row.input_tokens + row.output_tokens,
        }
        yield from (f"- {words[name]}: {_line(fact)}\n" for name, fact in facts.items() if fact)

    def message(self, row: ConversationMessage) -> Iterator[str]:
        is_answer = row.role == "assistant"
        said_by = row.agent if is_answer else self.speaker(row)
        named = said_by or self.words.get(row.role, row.role)
        yield f"\n## {_listed(named, self.time(row.created_at), row.model)}\n"
        if row.status in ("failed", "paused"):
            yield f"\n*{_listed(self.words[row.status], row.error_code)}*\n"
        held = said(row)
        if held is None:
            yield f"\n*{self.words['unreadable']}*\n\n{row.content}\n"
            return
        for part in held.parts:
            yield f"\n{readable(self.item(part))}\n"
        for item, approval in held.items:
            if isinstance(item, ToolCall):
                text = self.call(item, outcome_of(item, row.status, approval))
            else:
                text = self.item(item)
            yield f"\n{readable(text)}\n"

    def item(self, item: Any) -> str:
        """Return a part of a message, or what of a step is no call of a tool."""
        words = self.words
        match item:
            case TextPart():
                return item.text
            case RefusalPart():
                return f"**{words['refusal']}**\n\n{item.text}"
            case Reasoning():
                quoted = item.text.replace("\n", "\n> ")
                return f"> **{words['reasoning']}**\n>\n> {quoted}"
            case ProviderToolCall():
                return f"**{words['hosted']}** {_code(item.name)}\n\n{_fenced(item.data)}"
            case StoredAttachment():
                name = _code(item.file_name or item.kind)
                kind = _line(item.media_type)
                return f"**{words['file']}** {name} ({kind}, {item.size} bytes, id {item.id})"
            case ImagePart() | DocumentPart():
                place = _code(item.url or item.file_id or "")
                return f"**{words['file']}** {_code(item.file_name or item.type)} ({place})"
        return ""

    def call(self, call: ToolCall, outcome: str) -> str:
        words = self.words
        arguments = call.arguments if call.raw_arguments is None else call.raw_arguments
        told = self.outcomes.get(outcome, outcome)
        text = f"**{words['call']}** {_code(call.name)} ({told})\n\n{_fenced(arguments)}"
        if call.edited is not None:
            text += f"\n\n**{words['edited']}**\n\n{_fenced(call.edited)}"
        if call.result is not None:
            text += f"\n\n**{words['result']}**\n\n{_fenced(call.result.value)}"
        return text

    def speaker(self, row: Any) -> str:
        return participant_text(row.participant, row.participant_type_id, row.participant_key)

    def time(self, moment: datetime | None) -> str:
        if moment is None:
            return ""
        if timezone.is_aware(moment):
            moment = timezone.localtime(moment, self.zone)
        return moment.isoformat(" ", "seconds")


def _line(text: object) -> str:
    return " ".join(readable(str(text)).split())


def _listed(*facts: str) -> str:
    return " \u00b7 ".join(_line(fact) for fact in facts if fact)


def _code(text: str) -> str:
    ticks = _longer_than_any(text, 1)
    return f"{ticks} {_line(text)} {ticks}" if "`" in text else f"`{_line(text)}`"


def _fenced(value: Any) -> str:
    """Return a value in a fence that nothing in it can close."""
    kind = "" if isinstance(value, str) else "json"
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    ticks = _longer_than_any(text, 3)
    return f"{ticks}{kind}\n{text}\n{ticks}"


def _longer_than_any(text: str, least: int) -> str:
    return "`" * max(least, *(len(run) + 1 for run in re.findall("`+", text)), 0)
