"""The files of messages, apart from their bytes and with them again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from uuid import uuid5

from agent_memory.exceptions import AttachmentDoesNotExist
from agent_memory.messages import DocumentPart, ImagePart, Message, Part, TextPart
from agent_memory.records import NAMESPACE, StoredAttachment, StoredPart

FilePart = ImagePart | DocumentPart

KINDS: dict[str, type[FilePart]] = {"image": ImagePart, "document": DocumentPart}


def attachment_id(conversation_id: str, digest: str) -> str:
    """Return the id of some content in a conversation: the same whenever it is stored there."""
    return str(uuid5(NAMESPACE, json.dumps([conversation_id, digest])))


def files_of(messages: Iterable[Message]) -> dict[str, FilePart]:
    """Return the first part of each content, by its hash."""
    files: dict[str, FilePart] = {}
    for message in messages:
        for part in message.content:
            if isinstance(part, FilePart) and part.data is not None:
                files.setdefault(part.sha256, part)
    return files


def set_aside(conversation_id: str, parts: Iterable[Part]) -> tuple[StoredPart, ...]:
    """Return the parts of a message without bytes."""
    return tuple(
        _stored(conversation_id, part)
        if isinstance(part, FilePart) and part.data is not None
        else part
        for part in parts
    )


def _stored(conversation_id: str, part: FilePart) -> StoredAttachment:
    return StoredAttachment(
        kind=part.type,
        id=attachment_id(conversation_id, part.sha256),
        sha256=part.sha256,
        size=part.size,
        media_type=part.media_type,
        file_name=part.file_name,
        provider_options=part.provider_options,
    )


def digests(said: Iterable[Iterable[StoredPart]]) -> set[str]:
    """Return the hashes of all that was set aside of messages."""
    return {part.sha256 for parts in said for part in parts if isinstance(part, StoredAttachment)}


def restored(parts: Iterable[StoredPart], contents: Mapping[str, bytes]) -> tuple[Part, ...]:
    """Return parts with their bytes, which are found by hash; what is gone is told in words."""
    return tuple(
        _restored(part, contents.get(part.sha256)) if isinstance(part, StoredAttachment) else part
        for part in parts
    )


def _restored(part: StoredAttachment, data: bytes | None) -> Part:
    if data is None:
        name = part.file_name or part.media_type
        return TextPart(text=f"[Here stood a file of type {part.kind} that is gone: {name}]")
    return KINDS[part.kind](
        data=data,
        media_type=part.media_type,
        file_name=part.file_name,
        provider_options=part.provider_options,
    )


def unknown(attachment_id: object) -> AttachmentDoesNotExist:
    """Return what to raise for an id that is none of the conversation's."""
    return AttachmentDoesNotExist(f"The conversation has no attachment {attachment_id!r:.80}.")
