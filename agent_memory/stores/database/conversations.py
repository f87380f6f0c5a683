"""The conversation itself: opened on purpose, told, renamed, listed, forgotten."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from django.db import IntegrityError, models, transaction
from django.db.models import F

from agent_memory.exceptions import ConversationConflict, ConversationDoesNotExist
from agent_memory.messages import Message, Usage
from agent_memory.models import Conversation, ConversationMessage
from agent_memory.records import (
    NO_USAGE,
    ConversationPage,
    Heading,
    Page,
    StoredConversation,
    TitleSource,
)
from agent_memory.stores import cursors
from agent_memory.stores.database import attachments, files, queries, reserving, rows


def opened(using: str) -> models.QuerySet[Conversation]:
    """Return all conversations but those that are merely reserved for a first turn."""
    return Conversation.objects.using(using).filter(opened_at__isnull=False)


def create(using: str, heading: Heading, leading: Sequence[Message]) -> StoredConversation:
    """Open a conversation; raises ``ConversationConflict`` when its id is taken."""
    with files.written(using, heading.id, leading, new=True) as places:
        return _create(using, heading, leading, places)


def _create(
    using: str, heading: Heading, leading: Sequence[Message], places: Mapping[str, files.Place]
) -> StoredConversation:
    now = rows.local(datetime.now(UTC))
    for _ in range(2):
        try:
            with transaction.atomic(using):
                row = rows.conversation_row(heading, using, moment=now, opened=True)
                queries.conversation.run(using, row)
                attachments.keep(using, heading.id, leading, now, places, new=True)
                ConversationMessage.objects.using(using).bulk_create(
                    ConversationMessage(**rows.leading_row(heading.id, position, message, now))
                    for position, message in enumerate(leading, start=-len(leading))
                )
        except IntegrityError:
            if not reserving.drop_dead_placeholder(using, heading.id):
                break
        else:
            return StoredConversation(
                heading.id,
                heading.participant,
                heading.agent,
                heading.title,
                heading.title_source,
                opened_at=rows.aware(now),
                last_activity=rows.aware(now),
                turns=0,
            )
    raise ConversationConflict(
        heading.id, message=f"There is a conversation {heading.id!r} already."
    )


def get(using: str, conversation_id: str) -> StoredConversation | None:
    """Return a conversation, or ``None`` for an unknown id."""
    row = opened(using).filter(id=conversation_id).values_list(*rows.CONVERSATION).first()
    return None if row is None else rows.stored_conversation(row, using)


def rename(
    using: str,
    conversation_id: str,
    title: str,
    source: TitleSource = "person",
    usage: Usage = NO_USAGE,
) -> None:
    """
    Give a conversation another title, and count the tokens that it took.

    Raises ``ConversationDoesNotExist``.
    """
    took = {name: F(name) + count for name, count in rows.totals([usage]).items() if count}
    found = opened(using).filter(id=conversation_id)
    if not found.update(title=title, title_source=source, **took):
        raise ConversationDoesNotExist(conversation_id)


def listed(
    found: models.QuerySet[Conversation], size: int, after: tuple[datetime, str] | None
) -> ConversationPage:
    """Return a page of conversations, latest activity first, from behind a place."""
    if after is not None:
        moment, conversation_id = rows.local(after[0]), after[1]
        found = found.filter(
            models.Q(last_activity__lt=moment)
            | models.Q(last_activity=moment, id__lt=conversation_id)
        )
    found = found.order_by("-last_activity", "-id")[: size + 1]
    conversations = [
        rows.stored_conversation(row, found.db) for row in found.values_list(*rows.CONVERSATION)
    ]
    return Page.of(conversations, size, cursors.conversation_cursor)


def clear(using: str, conversation_id: str, tell: Callable[[], object]) -> None:
    """
    Forget a conversation, at any length.

    Its files go, and ``tell`` is called, once that is committed.
    """
    with transaction.atomic(using):
        if queries.lock.run(using, id=conversation_id) is None:
            return
        places = queries.places.rows(using, id=conversation_id)
        files.remove_after_commit(using, [files.Place(*place) for place in places])
        for delete in queries.everything:
            delete.run(using, id=conversation_id)
        transaction.on_commit(tell, using=using, robust=True)
