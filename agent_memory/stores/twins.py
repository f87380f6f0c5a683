"""The async twins of a store's methods."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar

from asgiref.sync import sync_to_async

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="Twinned")


def twin(
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """Return the async twin of a store's method: one hop to the thread of the caller's ORM."""

    async def atwin(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = await self.hop(getattr(self, method.__name__), *args, **kwargs)
        return result

    atwin.__name__ = f"a{method.__name__}"
    atwin.__qualname__ = f"ConversationStore.{atwin.__name__}"
    atwin.__doc__ = f"See {method.__name__}()."
    return atwin


class Twinned:
    """Base of what has methods in both colours."""

    async def hop(self, work: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        """Run work on the thread of the caller's ORM."""
        return await sync_to_async(work)(*args, **kwargs)

    def _missing(self, name: str) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__} must define {name}() for this.")
