"""The broken stores, each with the promises that must catch it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from agent_memory.stores.base import ConversationStore

S = TypeVar("S", bound=type[ConversationStore])

BROKEN: list[tuple[type[ConversationStore], str]] = []


def breaks(*promises: str) -> Callable[[S], S]:
    """Note a store as one that breaks these promises."""

    def note(store: S) -> S:
        BROKEN.extend((store, promise) for promise in promises)
        return store

    return note
