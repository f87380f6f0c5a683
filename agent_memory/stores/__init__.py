"""Where conversations are kept: one contract, and the project's ready store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

from agent_memory import conf
from agent_memory.exceptions import InvalidStore
from agent_memory.stores.base import ConversationStore

__all__ = ["ConversationStore", "conversation_store", "get_store"]

_overriding: list[ConversationStore] = []


def build_store(path: str, options: dict[str, Any]) -> ConversationStore:
    """Make a store of a dotted path; raises ``InvalidStore``."""
    from django.utils.module_loading import import_string

    try:
        store = import_string(path)(**options)
    except (ImportError, TypeError) as error:
        raise InvalidStore(f"The store {path!r} cannot be loaded: {error}") from error
    if not isinstance(store, ConversationStore):
        raise InvalidStore(f"{path!r} is not a subclass of agent_memory.stores.ConversationStore.")
    return store


@cache
def _default_store() -> ConversationStore:
    return build_store(*conf.backend("STORE"))


@cache
def _named_store(path: str) -> ConversationStore:
    default, _ = conf.backend("STORE")
    return _default_store() if path == default else build_store(path, {})


def get_store(store: ConversationStore | str | None = None) -> ConversationStore:
    """
    Return a store: the given one, the one at a dotted path, or the project's.

    Raises ``InvalidStore``.
    """
    if _overriding:
        return _overriding[-1]
    if isinstance(store, ConversationStore):
        return store
    if store is None:
        return _default_store()
    if not isinstance(store, str):
        raise InvalidStore(
            f"A store is a ConversationStore or the dotted path of one, not {store!r:.80}."
        )
    return _named_store(store)


@contextmanager
def overriding(store: ConversationStore) -> Iterator[ConversationStore]:
    """Let every agent and ``conversation_store`` use this store, until the end of the block."""
    _overriding.append(store)
    try:
        yield store
    finally:
        _overriding.remove(store)


def reset() -> None:
    """Forget the built stores; the next use reads the settings again."""
    _default_store.cache_clear()
    _named_store.cache_clear()


class _ProjectStore:
    """The project's store, looked up at each use, so that it may be imported at any time."""

    def __getattr__(self, name: str) -> Any:
        return getattr(get_store(), name)

    def __repr__(self) -> str:
        return "<agent_memory.conversation_store>"


conversation_store = cast("ConversationStore", _ProjectStore())
