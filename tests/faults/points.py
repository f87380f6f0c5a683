"""The named points of a turn, at one of which a worker stands still until it is killed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent_memory.providers.base import ProviderReply, ProviderRequest
from agent_memory.stores.database import DatabaseConversationStore
from tests.faults.clerks import ClerkProvider


class Points:
    """
    Reports each point that is reached, and stands still at one, until the file ``go`` is there.

    Without ``go`` it reports that it would stand still, and goes on.
    """

    def __init__(self, tell: Callable[..., None], stop: int | None, go: Path | None) -> None:
        self.tell, self.stop, self.go = tell, stop, go
        self.number, self.stage = 0, ""

    def at(self, name: str) -> None:
        self.tell(point=f"{self.stage}: {name}")
        reached, self.number = self.number, self.number + 1
        if reached == self.stop:
            self.tell(stopped=name)
            while self.go is not None and not self.go.exists():
                time.sleep(0.005)

    @contextmanager
    def during(self, stage: str) -> Iterator[None]:
        before, self.stage = self.stage, stage
        try:
            yield
        finally:
            self.stage = before


class StagedStore(DatabaseConversationStore):
    """Tells the points of what it does by the name of the method."""

    points: Points

    def reserve(self, *args: Any, **options: Any) -> Any:
        with self.points.during("reserve"):
            return super().reserve(*args, **options)

    def load(self, *args: Any, **options: Any) -> Any:
        with self.points.during("load"):
            return super().load(*args, **options)

    def journal(self, *args: Any, **options: Any) -> Any:
        with self.points.during("journal"):
            return super().journal(*args, **options)

    def settle(self, *args: Any, **options: Any) -> Any:
        with self.points.during("settle"):
            return super().settle(*args, **options)

    def append(self, *args: Any, **options: Any) -> Any:
        with self.points.during("append"):
            return super().append(*args, **options)


class StagedProvider(ClerkProvider):
    """Tells when it is asked."""

    points: Points

    def complete(self, request: ProviderRequest) -> ProviderReply:
        with self.points.during("model"):
            self.points.at("asked")
        return super().complete(request)
