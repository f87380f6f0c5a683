"""Page cursors: short texts that only a page gives out, and page sizes."""

from __future__ import annotations

import base64
import json
import re
from datetime import UTC, datetime, timedelta

from agent_memory import conf
from agent_memory.conf import MAX_PER_PAGE
from agent_memory.exceptions import InvalidConversationId, InvalidCursor
from agent_memory.records import StoredConversation, StoredMessage, check_conversation_id


def check_per_page(per_page: int | None) -> int:
    """Return a page size, ``None`` meaning the setting; raises ``ValueError`` outside 1 to 1000."""
    size = conf.setting("MESSAGES_PER_PAGE") if per_page is None else per_page
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MAX_PER_PAGE:
        raise ValueError(f"per_page is a whole number from 1 to {MAX_PER_PAGE}, not {size!r}.")
    return size


def message_cursor(message: StoredMessage) -> str:
    """Return the cursor of the page that follows this message."""
    return str(message.position)


def read_message_cursor(cursor: str | None) -> int | None:
    """Return the position below which a page begins; raises ``InvalidCursor``."""
    if cursor is None:
        return None
    if not isinstance(cursor, str) or not re.fullmatch(r"-?[0-9]{1,9}", cursor, re.ASCII):
        raise _invalid(cursor)
    return int(cursor)


def conversation_cursor(conversation: StoredConversation) -> str:
    """Return the cursor of the page that follows this conversation."""
    text = json.dumps([conversation.last_activity.astimezone(UTC).isoformat(), conversation.id])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_conversation_cursor(cursor: str | None) -> tuple[datetime, str] | None:
    """Return the last activity and id after which a page begins; raises ``InvalidCursor``."""
    if cursor is None:
        return None
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        last_activity, conversation_id = json.loads(base64.b64decode(padded, b"-_", validate=True))
        moment = datetime.fromisoformat(last_activity)
        if moment.utcoffset() != timedelta() or not 1970 <= moment.year < 9999:
            raise ValueError("Databases and time zones have no form for it.")
        return moment, check_conversation_id(conversation_id)
    except (AttributeError, TypeError, ValueError, RecursionError, InvalidConversationId) as error:
        raise _invalid(cursor) from error


def _invalid(cursor: object) -> InvalidCursor:
    return InvalidCursor(
        f"{cursor!r:.80} is no page cursor: pass a page's next_cursor, or None for the first page."
    )
