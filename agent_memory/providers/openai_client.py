"""The official ``openai`` client in both colours: built when first needed, then shared."""

from __future__ import annotations

import asyncio
import inspect
import threading
import weakref
from collections.abc import AsyncGenerator, Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from agent_memory.exceptions import InvalidProvider
from agent_memory.providers.openai_errors import OPTIONS

if TYPE_CHECKING:
    import openai

OWN_OPTIONS = ("request", "async_http_client")


class OpenAIClients:
    """
    The sync client, which all threads share, and an async one for each running event loop.

    The sync client is closed with this object. Connections belong to the loop
    that opened them, so an async client is closed when its loop shuts down its
    async generators, as ``asyncio.run()`` and ``async_to_sync`` do at their end.
    ``endpoint`` is the dotted path from a client to the resource whose
    ``create()`` is called; ``reserved`` are the arguments of ``create()`` that no
    setting may give.
    """

    def __init__(self, options: dict[str, Any], *, endpoint: str, reserved: frozenset[str]) -> None:
        self._options = options
        self._resource = attrgetter(endpoint)
        self._reserved = reserved
        self._lock = threading.Lock()
        self._client: openai.OpenAI | None = None
        self._async_clients: dict[
            asyncio.AbstractEventLoop, tuple[openai.AsyncOpenAI, AsyncGenerator[None, None]]
        ] = {}

    def create(self) -> Callable[..., Any]:
        """Return the sync ``create()`` that gives raw responses; raises ``InvalidProvider``."""
        if self._client is None:
            with self._lock:
                if self._client is None:
                    self._client = self._build("OpenAI")
                    if "http_client" not in self._options:
                        weakref.finalize(self, self._client.close)
        return self._raw_create(self._client)

    async def acreate(self) -> Callable[..., Any]:
        """See create()."""
        loop = asyncio.get_running_loop()
        if loop not in self._async_clients:
            client = await asyncio.to_thread(self._build, "AsyncOpenAI")
            await self._keep(loop, client)
        return self._raw_create(self._async_clients[loop][0])

    def _raw_create(self, client: Any) -> Callable[..., Any]:
        create: Callable[..., Any] = self._resource(client).with_raw_response.create
        return create

    async def _keep(self, loop: asyncio.AbstractEventLoop, client: openai.AsyncOpenAI) -> None:
        with self._lock:
            if loop in self._async_clients:  # another task of this loop was faster
                return
            for other in list(self._async_clients):
                if other.is_closed():
                    self._async_clients.pop(other, None)
            keeper = self._until_shutdown(loop, client)
            self._async_clients[loop] = client, keeper
        await anext(keeper)  # from here on the loop knows the generator and will close it

    async def _until_shutdown(
        self, loop: asyncio.AbstractEventLoop, client: openai.AsyncOpenAI
    ) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._async_clients.pop(loop, None)
            await client.close()

    def _build(self, kind: str) -> Any:
        import openai

        self._check_names()
        options = {key: value for key, value in self._options.items() if key not in OWN_OPTIONS}
        if kind == "AsyncOpenAI":
            options |= self._async_options()
        try:
            client = getattr(openai, kind)(**options)
        except openai.OpenAIError as error:
            if "Missing credentials" not in str(error):
                raise InvalidProvider(f"The OpenAI client cannot be built: {error}") from None
            raise InvalidProvider(
                "The OpenAI client has no key. Set OPENAI_API_KEY or "
                f'{OPTIONS}["api_key"]; a server that wants none takes any text.'
            ) from None
        except TypeError as error:
            raise InvalidProvider(f"The OpenAI client cannot be built: {error}") from None
        except Exception as error:
            raise InvalidProvider(
                f"The OpenAI client cannot be built: {type(error).__name__}. Check {OPTIONS} "
                f"({', '.join(options)}), OPENAI_BASE_URL and the environment's proxy variables."
            ) from None
        self._check(client)
        return client

    def _async_options(self) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if (make := self._options.get("async_http_client")) is not None:
            if not callable(make):
                raise InvalidProvider(
                    f'{OPTIONS}["async_http_client"] is a callable that makes an HTTP client, '
                    f"not {type(make).__name__}: each event loop needs one of its own."
                )
            options["http_client"] = make()
        elif "http_client" in self._options:
            raise InvalidProvider(
                f'{OPTIONS}["http_client"] is that of sync calls. For async calls give '
                '"async_http_client", a callable that makes one for each event loop.'
            )
        key = self._options.get("api_key")
        if callable(key) and not inspect.iscoroutinefunction(key):
            options["api_key"] = lambda: asyncio.to_thread(key)
        return options

    def _check_names(self) -> None:
        import openai

        known = [*inspect.signature(openai.OpenAI).parameters, *OWN_OPTIONS]
        for name in self._options:
            if name not in known or name.startswith("_"):
                raise InvalidProvider(
                    f"{OPTIONS} has no option {name!r}. Its options are the arguments of "
                    "openai.OpenAI (api_key, base_url, timeout, max_retries...), 'request' and "
                    "'async_http_client'."
                )

    def _check(self, client: Any) -> None:
        if client.base_url.scheme not in ("http", "https") or not client.base_url.host:
            raise InvalidProvider(
                f'OPENAI_BASE_URL or {OPTIONS}["base_url"] is no http:// or https:// address.'
            )
        key = str(client.api_key)
        if not (key.isascii() and key.isprintable() and key == key.strip()):
            raise InvalidProvider(
                f'OPENAI_API_KEY or {OPTIONS}["api_key"] holds characters that no header can '
                "carry, such as a line end or a blank at its end."
            )
        request = self._options.get("request") or {}
        _check_dict(request, f'{OPTIONS}["request"]')
        _check_dict(request.get("extra_body") or {}, f'{OPTIONS}["request"]["extra_body"]')
        known = inspect.signature(self._resource(client).create).parameters
        for name in request:
            if name not in known or name in self._reserved:
                raise InvalidProvider(
                    f'{OPTIONS}["request"] cannot set {name!r}: it is no argument of create(), or '
                    "one that is not for settings. What only your server knows goes into "
                    "'extra_body'."
                )


def _check_dict(value: Any, name: str) -> None:
    if not isinstance(value, dict):
        raise InvalidProvider(f"{name} is a dict, not {type(value).__name__}.")
