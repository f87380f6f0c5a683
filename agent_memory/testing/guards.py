"""Calls of the shipped providers that a test does not allow, whoever makes them."""

from __future__ import annotations

import ipaddress
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

from agent_memory.providers.base import Provider, ProviderRequest
from agent_memory.providers.openai_provider import OpenAIProvider
from agent_memory.testing.descriptions import request_lines

Check = Callable[[Provider, ProviderRequest], None]

OPENAI = "https://api.openai.com/v1"

_checks: list[Check] = []
_lock = threading.Lock()


class ProviderCallForbidden(AssertionError):
    """A provider was called where a test allows no such call."""


def forbidden(who: str, request: ProviderRequest, remedy: str) -> ProviderCallForbidden:
    """Return the error of a call that is not allowed: who called, what was asked, what to do."""
    told = f"{who} called a model, and no call of a provider is allowed here:"
    return ProviderCallForbidden("\n".join([told, *request_lines(request), remedy]))


@contextmanager
def guarding(check: Check) -> Iterator[None]:
    """
    Call ``check(provider, request)`` before a request of a shipped provider leaves; it may raise.

    It holds in every thread, until the end of the block.
    """
    with _lock:
        if not _checks:
            _patch.start()
        _checks.append(check)
    try:
        yield
    finally:
        with _lock:
            _checks.remove(check)
            if not _checks:
                _patch.stop()


def outside(provider: Provider) -> str | None:
    """
    Return the host that a shipped provider calls, or ``None`` if it is this machine.

    What is no address at all is told by the provider itself.
    """
    base_url = provider.options.get("base_url") or os.environ.get("OPENAI_BASE_URL") or OPENAI
    try:
        host = urlsplit(str(base_url)).hostname
    except ValueError:
        return None
    if host is None or host == "localhost" or host.endswith(".localhost"):
        return None
    try:
        return None if ipaddress.ip_address(host).is_loopback else host
    except ValueError:
        return host


# The last that a shipped provider does before a request leaves, in all four ways to ask.
_LAST = "_arguments"
_original: Callable[..., dict[str, Any]] = vars(OpenAIProvider)[_LAST]


@wraps(_original)
def _guarded(provider: Provider, request: ProviderRequest, **options: Any) -> dict[str, Any]:
    arguments = _original(provider, request, **options)
    for check in reversed(_checks):
        check(provider, request)
    return arguments


_patch = mock.patch.object(OpenAIProvider, _LAST, _guarded)
