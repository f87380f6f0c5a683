"""What the tests of the providers share."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agent_memory.providers import Provider
from agent_memory.providers.openai_chat import OpenAIChatProvider
from agent_memory.providers.openai_responses import OpenAIResponsesProvider
from tests.providers.scripted import ScriptedServer, serving

KEY = "sk-very-secret-key"

BOTH = (OpenAIResponsesProvider, OpenAIChatProvider)


@pytest.fixture(scope="session")
def no_certificates(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return an empty folder: plain HTTP needs no certificates, and reading them is slow."""
    return str(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, no_certificates: str) -> None:
    for name in ("API_KEY", "ADMIN_KEY", "BASE_URL", "ORG_ID", "PROJECT_ID", "CUSTOM_HEADERS"):
        monkeypatch.delenv(f"OPENAI_{name}", raising=False)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", no_certificates)


@pytest.fixture(autouse=True, scope="module")
def no_socket_left_open() -> Iterator[None]:
    """Collect garbage, so that a socket that nobody closed fails the module that left it."""
    yield
    gc.collect()


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Hold garbage collection back: a finalizer fails if it runs at the limit of recursion."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with serving() as server:
        yield server
    assert server.faults == []


@pytest.fixture
def build(server: ScriptedServer) -> Callable[..., Provider]:
    """Build a provider that asks the scripted server and does not retry."""

    def build(kind: type[Provider], **options: Any) -> Provider:
        return kind(**{"api_key": KEY, "base_url": server.url, "max_retries": 0, **options})

    return build
