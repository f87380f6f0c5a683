"""A page of a conversation as bubbles: who said what when, and what it took."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agent_memory import markdown
from agent_memory.admin.pages import participant_text
from agent_memory.admin.said import outcome_of, said
from agent_memory.admin.showing import cut, pretty, pretty_json, tokens_text, written
from agent_memory.messages import (
    FilePart,
    ProviderToolCall,
    Reasoning,
    RefusalPart,
    StepItem,
    TextPart,
    ToolCall,
)
from agent_memory.models import Conversation, ConversationMessage, ToolApproval
from agent_memory.records import StoredAttachment, StoredPart, readable
from agent_memory.stores.database.readings import lower_ends
from agent_memory.views import AttachmentView

ROWS = 40
"""Messages of a page; an even number, so that a turn is never parted."""

MAX_THUMBNAIL = 5_000_000
"""Bytes of a picture that a page loads by itself."""

MAX_ADDRESS = 500
"""Characters shown of where a file is that somebody else keeps."""

USUAL = ("stop", "tool_calls")

OUTCOMES = {
    "done": _("done"),
    "failed": _("failed"),
    "denied": _("denied"),
    "pending": _("waits for approval"),
    "approved": _("approved, not run yet"),
    "expired": _("approval expired"),
    "claimed": _("approved, being run"),
    "interrupted": _("interrupted: it may or may not have run"),
    "unanswered": _("not run"),
}
"""What became of a tool call, in words."""


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a message: the name of its template, and what that shows."""

    kind: str
    shown: dict[str, Any] = field(default_factory=dict)

    @property
    def template(self) -> str:
        return f"admin/agent_memory/transcript/{self.kind}.html"


@dataclass(frozen=True, slots=True)
class Bubble:
    """A message and its blocks; ``side`` is ``user``, ``agent`` or ``leading``."""

    row: ConversationMessage
    side: str
    blocks: list[Block]
    models: str = ""

    @property
    def footer(self) -> list[str]:
        """What an answer took, and how it ended unless as usual."""
        row = self.row
        reason = "" if row.finish_reason in USUAL else row.finish_reason
        ended = reason and gettext("ended by %(reason)s") % {"reason": reason}
        return [fact for fact in (self.models, tokens_text(row), ended) if fact]

    @property
    def speaker(self) -> str:
        """Who spoke, as a page names them; empty for nobody in particular."""
        row = self.row
        if self.side == "agent":
            return row.agent.rpartition(".")[2] or row.agent
        if row.participant is not None:
            return str(row.participant)
        return participant_text(None, row.participant_type_id, row.participant_key)


@dataclass(frozen=True, slots=True)
class TranscriptPage:
    """
    Messages, oldest first.

    ``older`` and ``newer`` are the positions before which the pages beside it
    end; ``None``: there is none.
    """

    bubbles: list[Bubble]
    older: int | None = None
    newer: int | None = None


def page_before(conversation: Conversation, position: int | None = None) -> TranscriptPage:
    """Return the messages right before a position, by default the newest, at any length alike."""
    end = conversation.next_position
    position = end if position is None else min(position, end)
    rows = (
        ConversationMessage.objects.using(conversation._state.db)
        .filter(conversation=conversation.pk, position__lt=position)
        .order_by("-position")
        .defer("replay")
        .prefetch_related("participant", "approvals__decided_by")
    )
    for lowest in lower_ends(position, ROWS + 1):
        found = list(rows.filter(position__gte=lowest)[: ROWS + 1])
        if len(found) > ROWS:
            break
    shown = found[:ROWS]
    return TranscriptPage(
        [bubble(row) for row in reversed(shown)],
        older=shown[-1].position if len(found) > ROWS else None,
        newer=min(position + ROWS, end) if position < end else None,
    )


def bubble(row: ConversationMessage) -> Bubble:
    """Return a message as a bubble, whatever its row holds."""
    side = "agent" if row.role == "assistant" else "leading" if row.position < 0 else "user"
    held = said(row)
    if held is None:
        return Bubble(row, side, [Block("unreadable", {"text": written(row.content)})])
    blocks = [part_block(part) for part in held.parts]
    blocks += [item_block(item, row.status, approval) for item, approval in held.items]
    if held.error:
        blocks.append(Block("error", {"code": row.error_code, "error": pretty(held.error)}))
    return Bubble(row, side, blocks, readable(", ".join(held.models)))


def part_block(part: StoredPart) -> Block:
    """Return a piece of what a person wrote, which is shown as it was written."""
    match part:
        case TextPart() | RefusalPart():
            return Block("text", {"html": written(part.text)})
        case StoredAttachment():
            shown = {
                "id": part.id,
                "name": readable(part.file_name or part.media_type or part.kind),
                "media_type": readable(part.media_type),
                "size": part.size,
                "thumbnail": part.kind == "image"
                and part.media_type in AttachmentView.inline_types
                and part.size <= MAX_THUMBNAIL,
            }
            return Block("attachment", shown)
        case FilePart():
            place = readable((part.url or part.file_id or "")[:MAX_ADDRESS])
            name = readable(part.file_name or part.media_type or part.type)
            return Block("elsewhere", {"name": name, "place": place})


def item_block(item: StepItem, status: str, approval: ToolApproval | None) -> Block:
    """Return a piece of a step, with the approval that a call needed."""
    match item:
        case ToolCall():
            return call_block(item, status, approval)
        case ProviderToolCall():
            return Block("hosted_call", {"name": readable(item.name), "data": pretty(item.data)})
        case RefusalPart():
            return Block("refusal", {"html": written(item.text)})
        case Reasoning():
            return Block("reasoning", {"html": markdown.to_html(cut(item.text))})
        case TextPart():
            return Block("text", {"html": markdown.to_html(cut(item.text))})


def call_block(call: ToolCall, status: str, approval: ToolApproval | None) -> Block:
    """Return a call with its result, and with the approval that it needed."""
    raw, outcome = call.raw_arguments, outcome_of(call, status, approval)
    decided_by = approval and participant_text(
        approval.decided_by, approval.decided_by_type_id, approval.decided_by_key
    )
    shown = {
        "name": readable(call.name),
        "outcome": outcome,
        "told": OUTCOMES.get(outcome, outcome),
        "arguments": pretty(call.arguments) if raw is None else written(raw),
        "edited": None if call.edited is None else pretty(call.edited),
        "result": None if call.result is None else pretty_result(call.result.value),
        "reason": readable(call.approval_reason or ""),
        "approval": approval,
        "decided_by": decided_by,
    }
    return Block("call", shown)


def pretty_result(value: Any) -> SafeString:
    """Show what a tool returned; a text that is JSON is shown as such."""
    if not isinstance(value, str):
        return pretty(value)
    return pretty_json(value) if value[:1] in ("{", "[") else written(value)
