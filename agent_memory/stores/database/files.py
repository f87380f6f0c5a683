"""
Attachments as files of a storage, where the settings name one.

A file is written under a random name before the row that names it is committed,
and removed after that row is gone. What a killed process leaves is swept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple
from uuid import uuid4

from django.core.files.base import ContentFile
from django.core.files.storage import Storage, storages
from django.db import transaction
from django.db.models import BinaryField
from django.db.models.functions import Substr
from django.db.models.signals import post_delete
from django.dispatch import receiver

from agent_memory import conf
from agent_memory.exceptions import AttachmentDoesNotExist
from agent_memory.messages import Message
from agent_memory.models import ConversationAttachment
from agent_memory.stores.attachments import files_of
from agent_memory.stores.database.retrying import retried

FOLDER = "agent_memory"
PIECE = 1 << 18
"""Bytes that are read at once of what is sent to somebody."""


class Place(NamedTuple):
    """Where a file is: the alias of its storage, and its name there; both empty for none."""

    storage: str
    name: str

    @property
    def backend(self) -> Storage:
        return storages[self.storage]

    def remove(self) -> None:
        """Remove the file; one that is gone is no error."""
        self.backend.delete(self.name)


def known_of(using: str, conversation_id: str, hashes: Collection[str]) -> set[str]:
    """Return the hashes of which a conversation has the bytes."""
    found = ConversationAttachment.objects.using(using).filter(
        conversation=conversation_id, sha256__in=[*hashes]
    )
    return set(found.values_list("sha256", flat=True))


@contextmanager
def written(
    using: str, conversation_id: str, messages: Iterable[Message], *, new: bool = False
) -> Iterator[Mapping[str, Place]]:
    """
    Write the bytes of messages that the conversation has not to the storage of the settings.

    Gives their places, by hash, to the block, whose transaction is to write the
    rows that name them. When it raises, what no row names is removed.
    """
    wanted = files_of(messages)
    alias = conf.attachment_storage() if wanted else None
    if alias is None:
        yield {}
        return
    known = set() if new else retried(using, partial(known_of, using, conversation_id, wanted))
    places: dict[str, Place] = {}
    try:
        for digest, part in wanted.items():
            if digest not in known:
                content = ContentFile(part.data or b"")
                name = storages[alias].save(f"{FOLDER}/{uuid4().hex}", content)
                places[digest] = Place(alias, name)
        yield places
    except BaseException:
        with suppress(Exception):  # The first error is the one to tell; a sweep finds the rest.
            _remove_unnamed(using, places.values())
        raise


def content(data: Any, place: Place) -> bytes | None:
    """Return bytes from their row or their file; ``None``: the file is gone."""
    if not place.name:
        return bytes(data)
    try:
        with place.backend.open(place.name, "rb") as file:
            read: bytes = file.read()
            return read
    except FileNotFoundError:
        return None


def pieces(row: ConversationAttachment) -> Iterator[bytes]:
    """
    Return the bytes of a row, or of its file, piece by piece, a statement each.

    Raises ``AttachmentDoesNotExist`` at once when the file is gone.
    """
    if not row.stored_name:
        return _pieces_of_row(row)
    try:
        file = Place(row.storage, row.stored_name).backend.open(row.stored_name, "rb")
    except FileNotFoundError:
        raise gone(row.public_id) from None
    return _pieces_of_file(file)


def _pieces_of_row(row: ConversationAttachment) -> Iterator[bytes]:
    found = ConversationAttachment.objects.using(row._state.db).filter(pk=row.pk)
    for start in range(1, row.size + 1, PIECE):
        piece = Substr("data", start, PIECE, output_field=BinaryField())
        yield bytes(found.values_list(piece, flat=True).get())


def _pieces_of_file(file: Any) -> Iterator[bytes]:
    with file:
        yield from file.chunks(PIECE)


def gone(public_id: str) -> AttachmentDoesNotExist:
    """Return what to raise where a row names a file that is not there."""
    return AttachmentDoesNotExist(f"The file of the attachment {public_id!r} is gone.")


def remove_after_commit(using: str, places: Iterable[Place]) -> None:
    """Remove files once the transaction that removed their rows is committed."""
    for place in places:
        if place.name:
            transaction.on_commit(place.remove, using=using, robust=True)


@receiver(post_delete, sender=ConversationAttachment, dispatch_uid="agent_memory")
def _remove_file_of_row(instance: ConversationAttachment, using: str, **kwargs: Any) -> None:
    remove_after_commit(using, [Place(instance.storage, instance.stored_name)])


def orphans(using: str, alias: str, before: datetime) -> Iterator[Place]:
    """
    Yield the files of a storage that were written before a moment, and that no row names.

    The moment is as the project keeps times.
    """
    storage = storages[alias]
    with suppress(FileNotFoundError):
        _, names = storage.listdir(FOLDER)
        found = {Place(alias, f"{FOLDER}/{name}") for name in names}
        for place in sorted(found - _named(using, alias)):
            with suppress(FileNotFoundError):
                if storage.get_modified_time(place.name) < before:
                    yield place


def _named(using: str, alias: str) -> set[Place]:
    named = ConversationAttachment.objects.using(using).filter(storage=alias)
    return {Place(alias, name) for name in named.values_list("stored_name", flat=True)}


def _remove_unnamed(using: str, places: Iterable[Place]) -> None:
    names = [place.name for place in places]
    found = ConversationAttachment.objects.using(using).filter(stored_name__in=names)
    named = {*found.values_list("storage", "stored_name")}
    for place in places:
        if place not in named:
            place.remove()
