"""The bytes of attachments: written with their turn, once, and read by whoever needs them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from django.db.models import Exists, OuterRef

from agent_memory.attachments import readable_name
from agent_memory.messages import Message, Part
from agent_memory.models import ConversationAttachment, ConversationMessage
from agent_memory.records import StoredPart, readable
from agent_memory.stores.attachments import (
    FilePart,
    attachment_id,
    digests,
    files_of,
    restored,
    unknown,
)
from agent_memory.stores.database import files, queries
from agent_memory.stores.database.files import Place
from agent_memory.stores.database.retrying import retried

NOWHERE: Mapping[str, Place] = {}


def keep(
    using: str,
    conversation_id: str,
    messages: Iterable[Message],
    moment: datetime,
    places: Mapping[str, Place] = NOWHERE,
    *,
    new: bool = False,
) -> None:
    """
    Write the bytes of messages that are not there yet, in a transaction of the conversation.

    ``places`` are the files that hold some of them. ``new``: nothing can be there.
    """
    wanted = files_of(messages)
    if not wanted:
        return
    known = () if new else files.known_of(using, conversation_id, wanted)
    rows = [
        _row(conversation_id, digest, part, moment, places.get(digest))
        for digest, part in wanted.items()
        if digest not in known
    ]
    if rows:
        queries.attachments(len(rows)).run(using, *rows)


def _row(
    conversation_id: str, digest: str, part: FilePart, moment: datetime, place: Place | None
) -> dict[str, Any]:
    return {
        "conversation_id": conversation_id,
        "sha256": digest,
        "public_id": attachment_id(conversation_id, digest),
        "media_type": readable(part.media_type)[:255],
        "file_name": readable_name(part.file_name),
        "size": part.size,
        "data": part.data if place is None else None,
        "storage": place.storage if place else "",
        "stored_name": place.name if place else "",
        "created_at": moment,
    }


def with_bytes(
    using: str, conversation_id: str, said: Sequence[tuple[StoredPart, ...]]
) -> list[tuple[Part, ...]]:
    """Return the parts of messages with their bytes; one statement, none without files."""
    wanted = digests(said)
    read = partial(_contents, using, conversation_id, wanted)
    contents = retried(using, read) if wanted else {}
    return [restored(parts, contents) for parts in said]


def _contents(using: str, conversation_id: str, hashes: Collection[str]) -> dict[str, bytes]:
    found = _all(using).filter(conversation=conversation_id, sha256__in=[*hashes])
    contents = {
        digest: files.content(data, Place(*place))
        for digest, data, *place in found.values_list("sha256", "data", "storage", "stored_name")
    }
    return {digest: data for digest, data in contents.items() if data is not None}


def read(using: str, conversation_id: str, public_id: str) -> bytes:
    """Return the bytes of an attachment; raises ``AttachmentDoesNotExist``."""
    found = _all(using).filter(conversation=conversation_id, public_id=public_id)
    row = found.values_list("data", "storage", "stored_name").first()
    data = None if row is None else files.content(row[0], Place(*row[1:]))
    if data is None:
        raise unknown(public_id) if row is None else files.gone(public_id)
    return data


def drop_unused(using: str, conversation_id: str) -> None:
    """Remove what no message of a conversation uses, in a transaction of it; two statements."""
    users = ConversationMessage.objects.filter(
        conversation=OuterRef("conversation"), parts__contains=OuterRef("sha256")
    )
    _all(using).filter(~Exists(users), conversation=conversation_id).delete()


def _all(using: str) -> Any:
    return ConversationAttachment.objects.using(using)
