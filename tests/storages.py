"""The storages of Django in which attachments are tested."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import Storage, storages

from agent_memory.testing import override_agent_memory

S3 = "S3Storage"
BACKENDS = ("FileSystemStorage", "InMemoryStorage", pytest.param(S3, marks=pytest.mark.heavy))


@cache
def s3_address() -> str:
    """Start a server that speaks as S3 does, on loopback, and return its address."""
    pytest.importorskip("storages.backends.s3", reason="needs django-storages[s3]: --group s3")
    server = pytest.importorskip("moto.server", reason="needs moto[s3] and flask: --group s3")
    running = server.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    return f"http://{host}:{port}"


def options_of(backend: str, location: Path) -> dict[str, Any]:
    if backend != S3:
        return {"location": str(location)}
    return {
        "bucket_name": "attachments",
        "location": location.name,
        "endpoint_url": s3_address(),
        "region_name": "us-east-1",
        "access_key": "test",
        "secret_key": "test",
        "default_acl": "private",
    }


@contextmanager
def attachments_in(backend: str, location: Path, settings: Any) -> Iterator[Storage]:
    """Let ``ATTACHMENTS`` name a storage of a kind; there is another one beside it."""
    module = "storages.backends.s3" if backend == S3 else "django.core.files.storage"
    made = {"BACKEND": f"{module}.{backend}", "OPTIONS": options_of(backend, location)}
    settings.STORAGES = {**settings.STORAGES, "private": made, "former": made}
    storage: Any = storages["private"]
    if backend == S3:
        storage.connection.create_bucket(Bucket=storage.bucket_name)
    with override_agent_memory(ATTACHMENTS={"STORAGE": "private"}):
        yield storage
