"""The model behind an agent: one contract, and the project's ready provider."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from agent_memory import conf
from agent_memory.exceptions import InvalidProvider
from agent_memory.providers.base import Provider, ProviderReply, ProviderRequest, ToolSpec

__all__ = ["Provider", "ProviderReply", "ProviderRequest", "ToolSpec", "get_provider"]


def build_provider(path: str, options: dict[str, Any]) -> Provider:
    """Make a provider of a dotted path; raises ``InvalidProvider``."""
    from django.utils.module_loading import import_string

    try:
        provider = import_string(path)(**options)
    except (ImportError, TypeError) as error:
        raise InvalidProvider(f"The provider {path!r} cannot be loaded: {error}") from error
    if not isinstance(provider, Provider):
        raise InvalidProvider(f"{path!r} is not a subclass of agent_memory.providers.Provider.")
    return provider


_overriding: list[Provider] = []


@cache
def _default_provider() -> Provider:
    return build_provider(*conf.backend("PROVIDER"))


@cache
def _named_provider(path: str) -> Provider:
    default, _ = conf.backend("PROVIDER")
    return _default_provider() if path == default else build_provider(path, {})


def get_provider(provider: Provider | str | None = None) -> Provider:
    """
    Return a provider: the given one, the one at a dotted path, or the project's.

    Raises ``InvalidProvider``.
    """
    if _overriding:
        return _overriding[-1]
    if isinstance(provider, Provider):
        return provider
    if provider is None:
        return _default_provider()
    if not isinstance(provider, str):
        raise InvalidProvider(
            f"A provider is a Provider or the dotted path of one, not {provider!r:.80}."
        )
    return _named_provider(provider)


@contextmanager
def overriding(provider: Provider) -> Iterator[Provider]:
    """Let every agent use this provider, until the end of the block."""
    _overriding.append(provider)
    try:
        yield provider
    finally:
        _overriding.remove(provider)


def reset() -> None:
    """Forget the built providers; the next use reads the settings again."""
    _default_provider.cache_clear()
    _named_provider.cache_clear()
