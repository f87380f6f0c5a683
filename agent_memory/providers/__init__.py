"""The model behind an agent: one contract, and the project's ready provider."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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


_overriding: list[tuple[type, Callable[[type], Provider]]] = []


@cache
def _default_provider() -> Provider:
    return build_provider(*conf.backend("PROVIDER"))


@cache
def _named_provider(path: str) -> Provider:
    default, _ = conf.backend("PROVIDER")
    return _default_provider() if path == default else build_provider(path, {})


def get_provider(provider: Provider | str | None = None, agent: type = object) -> Provider:
    """
    Return a provider: the given one, the one at a dotted path, or the project's.

    What overrides the class of the agent that asks goes before, or else what
    overrides the nearest of its bases. Raises ``InvalidProvider``.
    """
    for base in agent.__mro__ if _overriding else ():
        for overridden, choose in reversed(_overriding):
            if overridden is base:
                return choose(agent)
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
def overriding(choose: Callable[[type], Provider], agent: type = object) -> Iterator[None]:
    """
    Let agents of this class get their provider from ``choose(class)``, until the end of the block.

    It holds in every thread: what a test calls may run in others.
    """
    entry = agent, choose
    _overriding.append(entry)
    try:
        yield
    finally:
        _overriding.remove(entry)


def reset() -> None:
    """Forget the built providers; the next use reads the settings again."""
    _default_provider.cache_clear()
    _named_provider.cache_clear()
