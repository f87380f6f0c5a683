"""The storages of Django in which attachments are tested."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.files.storage import Storage, storages

from agent_memory.testing import override_agent_memory

BACKENDS = ("FileSystemStorage", "InMemoryStorage")


@contextmanager
def attachments_in(backend: str, location: Path, settings: Any) -> Iterator[Storage]:
    """Let ``ATTACHMENTS`` name a storage of a kind; there is another one beside it."""
    made = {
        "BACKEND": f"django.core.files.storage.{backend}",
        "OPTIONS": {"location": str(location)},
    }
    settings.STORAGES = {**settings.STORAGES, "private": made, "former": made}
    with override_agent_memory(ATTACHMENTS={"STORAGE": "private"}):
        yield storages["private"]
