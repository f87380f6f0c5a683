"""The database connections of a thread that is nobody else's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections


@contextmanager
def closed_afterwards() -> Iterator[None]:
    """Close what this thread has opened, or give it back to its pool, when the block ends."""
    try:
        yield
    finally:
        connections.close_all()
