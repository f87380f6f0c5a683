"""Other stores, providers and settings for a block, a function or a test case."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, Generic, NoReturn, TypeVar

from django.test.utils import override_settings

from agent_memory import conf, providers, stores
from agent_memory.providers.base import Provider, ProviderReply, ProviderRequest
from agent_memory.responses import Event
from agent_memory.stores.base import ConversationStore
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.testing.decorating import Decorating
from agent_memory.testing.guards import forbidden, guarding

T = TypeVar("T")
P = TypeVar("P", bound=Provider)


class Override(Decorating, Generic[T]):
    """What ``override()`` opens, as a context manager and as a decorator, anew each time."""

    def __init__(self, override: Callable[[], AbstractContextManager[T]]) -> None:
        self._override = override
        self._open: list[AbstractContextManager[T]] = []

    def anew(self) -> AbstractContextManager[T]:
        return self._override()

    def __enter__(self) -> T:
        context = self.anew()
        value = context.__enter__()
        self._open.append(context)
        return value

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._open.pop().__exit__(error_type, error, traceback)


def override_store(store: ConversationStore | None = None) -> Override[ConversationStore]:
    """Let every agent use this store, by default a fresh one in memory."""
    if not isinstance(store, ConversationStore | None):
        raise TypeError(f"override_store() takes a ConversationStore, not {store!r:.80}.")
    return Override(
        lambda: stores.overriding(InMemoryConversationStore() if store is None else store)
    )


def override_provider(provider: P) -> Override[P]:
    """Let every agent use this provider, but for those whose class is faked."""
    if not isinstance(provider, Provider):
        raise TypeError(f"override_provider() takes a Provider, not {provider!r:.80}.")

    @contextmanager
    def overriding() -> Iterator[P]:
        with providers.overriding(lambda _: provider):
            yield provider

    return Override(overriding)


def forbid_provider_calls() -> Override[None]:
    """
    Let every call of a provider raise ``ProviderCallForbidden``.

    That is each call of an agent whose class is not faked, also of one that has a
    provider of its own, and each of a shipped provider that is called by hand.
    """

    @contextmanager
    def forbidding() -> Iterator[None]:
        with providers.overriding(_Forbidden), guarding(_refuse):
            yield

    return Override(forbidding)


def override_agent_memory(**keys: Any) -> Override[None]:
    """Override keys of ``AGENT_MEMORY``, and leave its others as they are."""

    @contextmanager
    def overriding() -> Iterator[None]:
        with override_settings(AGENT_MEMORY={**conf.user_settings(), **keys}):
            yield

    return Override(overriding)


def _refuse(provider: Provider, request: ProviderRequest) -> NoReturn:
    remedy = "Give this code a ScriptedProvider([...]) instead."
    raise forbidden(type(provider).__name__, request, remedy)


class _Forbidden(Provider):
    """The provider of an agent that may not call one."""

    name = "forbidden"

    def __init__(self, agent: type) -> None:
        super().__init__()
        self._agent = agent

    def complete(self, request: ProviderRequest) -> NoReturn:
        if self._agent is object:
            who, answer = "Somebody", "override_provider(ScriptedProvider([...]))"
        else:
            who = self._agent.__name__
            answer = f"{who}.fake([...])"
        raise forbidden(who, request, f"Answer it with {answer}.")

    async def acomplete(self, request: ProviderRequest) -> NoReturn:
        self.complete(request)

    def stream(self, request: ProviderRequest) -> Generator[Event | ProviderReply, None, None]:
        self.complete(request)

    def astream(self, request: ProviderRequest) -> AsyncGenerator[Event | ProviderReply, None]:
        self.complete(request)
