"""A whole conversation as a file, written while it is read: page by page, never whole in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.http import HttpRequest, StreamingHttpResponse
from django.utils.http import content_disposition_header
from django.utils.text import slugify

from agent_memory.admin.pages import TOKENS
from agent_memory.models import Conversation, ConversationMessage, ToolApproval
from agent_memory.stores import codec
from agent_memory.stores.database.rows import participant_value
from agent_memory.views import HEADERS, as_sent

FORMAT = "agent_memory.conversation"
VERSION = 1

ROWS = 50
"""Messages that are in memory at once."""


def rows_of(conversation: Conversation, *related: str) -> Iterator[ConversationMessage]:
    """Yield the messages that are there now, oldest first, stretch by stretch."""
    messages = ConversationMessage.objects.using(conversation._state.db)
    found = messages.filter(conversation=conversation.pk)
    found = found.defer("replay").order_by("position").prefetch_related("approvals", *related)
    end = conversation.next_position
    for first in range(0, max(1, end), ROWS):
        stretch = Q(position__gte=first) if first else Q()  # some lead, at positions below 0
        page = list(found.filter(stretch, position__lt=min(first + ROWS, end)))
        yield from page
        # A row and what was prefetched for it hold each other: let go now, not by a collection.
        for row in page:
            vars(row)["_prefetched_objects_cache"].clear()


def as_json(conversation: Conversation) -> Iterator[str]:
    """Yield a conversation as JSON, a line each message; files are named by their id and hash."""
    using = conversation._state.db
    head = {
        "format": FORMAT,
        "version": VERSION,
        "id": conversation.pk,
        "title": conversation.title,
        "title_source": conversation.title_source,
        "participant": _who(conversation, "participant", using),
        "agent": conversation.agent,
        "opened_at": _moment(conversation.opened_at),
        "last_activity": _moment(conversation.last_activity),
        "turns": conversation.turn_count,
        "usage": _usage(conversation),
        "metadata": _loaded(conversation.metadata),
    }
    yield f'{json.dumps(head)[:-1]}, "messages": ['
    comma = ""
    for row in rows_of(conversation):
        yield f"{comma}\n{json.dumps(_message(row, using))}"
        comma = ","
    yield "\n]}\n"


def _message(row: ConversationMessage, using: str | None) -> dict[str, Any]:
    return {
        "position": row.position,
        "role": row.role,
        "status": row.status,
        "created_at": _moment(row.created_at),
        "finished_at": _moment(row.finished_at),
        "participant": _who(row, "participant", using),
        "agent": row.agent,
        "provider": row.provider,
        "model": row.model,
        "finish_reason": row.finish_reason,
        "error_code": row.error_code,
        "usage": _usage(row),
        "content": row.content,
        "parts": _loaded(codec.whole_parts((row.parts, row.content))),
        "steps": _loaded(codec.whole_steps((row.steps, row.content))),
        "meta": _loaded(row.meta),
        "approvals": [_approval(each, using) for each in row.approvals.all()],
    }


def _approval(row: ToolApproval, using: str | None) -> dict[str, Any]:
    return {
        "step": row.step,
        "index": row.index,
        "tool": row.tool,
        "reason": row.reason,
        "status": row.status,
        "arguments_used": _loaded(row.arguments_used or "null"),
        "denial": _loaded(row.denial or "null"),
        "decided_by": _who(row, "decided_by", using),
        "decided_at": _moment(row.decided_at),
        "note": row.note,
        "expires_at": _moment(row.expires_at),
    }


def _who(row: Any, name: str, using: str | None) -> dict[str, str] | None:
    number, key = getattr(row, f"{name}_type_id"), getattr(row, f"{name}_key")
    found = participant_value(number, key, using or "default")
    return None if found is None else {"type": found.type, "key": found.key}


def _usage(row: Any) -> dict[str, int]:
    return {name: getattr(row, name) for name in TOKENS}


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _loaded(text: str) -> Any:
    """Return stored JSON as data, and as text what is none."""
    try:
        return json.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        return text


def download(
    request: HttpRequest, conversation: Conversation, suffix: str, content_type: str, pieces: Any
) -> StreamingHttpResponse:
    """Return a response that is written while it is read, under a name that any system takes."""
    name = slugify(conversation.title, allow_unicode=True)[:60].strip("-_") or "conversation"
    told = f"{name}-{slugify(conversation.pk)[:40] or 'export'}.{suffix}"
    parts = (piece.encode() for piece in pieces)
    response = StreamingHttpResponse(
        as_sent(request, parts), content_type=f"{content_type}; charset=utf-8", headers=HEADERS
    )
    response["Content-Disposition"] = str(content_disposition_header(True, told))
    return response
