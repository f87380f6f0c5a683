"""Other stores, providers and settings for a block, a function or a test case."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Generic, NoReturn, TypeVar, cast

from django.test.utils import TestContextDecorator, override_settings

from agent_memory import conf, providers, stores
from agent_memory.providers.base import Provider, ProviderReply, ProviderRequest
from agent_memory.responses import Event
from agent_memory.stores.base import ConversationStore
from agent_memory.stores.inmemory import InMemoryConversationStore

T = TypeVar("T")
P = TypeVar("P", bound=Provider)


class ProviderCallForbidden(AssertionError):
    """A provider was called where a test allows no such call."""


class _Override(TestContextDecorator, Generic[T]):
    """
    What ``override()`` opens, as a context manager and as a decorator.

    It decorates functions, coroutine functions and ``unittest.TestCase``
    classes, and opens anew each time.
    """

    def __init__(self, override: Callable[[], AbstractContextManager[T]]) -> None:
        super().__init__()
        self._override = override
        self._open: list[AbstractContextManager[T]] = []

    def enable(self) -> T:
        context = self._override()
        value = context.__enter__()
        self._open.append(context)
        return value

    def disable(self) -> None:
        self._open.pop().__exit__(None, None, None)

    def __enter__(self) -> T:  # type: ignore[override]
        return self.enable()


def override_store(store: ConversationStore | None = None) -> _Override[ConversationStore]:
    """Let every agent use this store, by default a fresh one in memory."""
    if not isinstance(store, ConversationStore | None):
        raise TypeError(f"override_store() takes a ConversationStore, not {store!r:.80}.")
    return _Override(
        lambda: stores.overriding(InMemoryConversationStore() if store is None else store)
    )


def override_provider(provider: P) -> _Override[P]:
    """Let every agent use this provider."""
    if not isinstance(provider, Provider):
        raise TypeError(f"override_provider() takes a Provider, not {provider!r:.80}.")
    return _Override(lambda: cast("AbstractContextManager[P]", providers.overriding(provider)))


def forbid_provider_calls() -> _Override[Provider]:
    """Let every call of a provider raise ``ProviderCallForbidden``."""
    return _Override(lambda: providers.overriding(_Forbidden()))


def override_agent_memory(**keys: Any) -> _Override[None]:
    """Override keys of ``AGENT_MEMORY``, and leave its others as they are."""

    @contextmanager
    def overriding() -> Iterator[None]:
        with override_settings(AGENT_MEMORY={**conf.user_settings(), **keys}):
            yield

    return _Override(overriding)


class _Forbidden(Provider):
    name = "forbidden"

    def complete(self, request: ProviderRequest) -> NoReturn:
        raise ProviderCallForbidden(
            f"No call of a provider is allowed here; model {request.model!r} was asked. Use "
            "override_provider(ScriptedProvider([...])) to answer it."
        )

    async def acomplete(self, request: ProviderRequest) -> NoReturn:
        self.complete(request)

    def stream(self, request: ProviderRequest) -> Generator[Event | ProviderReply, None, None]:
        self.complete(request)

    def astream(self, request: ProviderRequest) -> AsyncGenerator[Event | ProviderReply, None]:
        self.complete(request)
