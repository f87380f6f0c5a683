"""The store on Redis that the documentation shows keeps the contract of a store of three methods."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from agent_memory import Agent, RemembersConversations
from agent_memory.messages import ImagePart, Message, Turn
from agent_memory.testing import (
    AsyncBasicConversationStoreContract,
    BasicConversationStoreContract,
    ScriptedProvider,
)
from tests.pages import Page

redis = pytest.importorskip("redis", reason="needs the package redis")

PAGE = Path(__file__).parent.parent.parent / "docs" / "how-to" / "stores.md"
URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/15")


def shown() -> Any:
    """Return the class that the page shows."""
    (code,) = [
        compile("\n" * (block.line - 1) + block.source, str(PAGE), "exec")
        for block in Page(PAGE).blocks
        if "class RedisConversationStore" in block.source
    ]
    names: dict[str, Any] = {"__name__": __name__}
    exec(code, names)
    return names["RedisConversationStore"]


@pytest.fixture(autouse=True)
def prefix(request: pytest.FixtureRequest) -> Iterator[str]:
    """Have a part of a server to oneself; skip where there is none."""
    prefix = f"{uuid4()}:"
    with redis.Redis.from_url(URL) as client:
        try:
            client.ping()
        except redis.ConnectionError:
            pytest.skip(f"needs a Redis server at {URL}: REDIS_URL names another")
        if request.instance is not None:
            request.instance.prefix = prefix
        yield prefix
        for key in client.scan_iter(match=f"{prefix}*", count=1000):
            client.delete(key)


class OnRedis:
    prefix: str

    def make_store(self) -> Any:
        return shown()(url=URL, prefix=self.prefix)


class TestRedisConversationStore(OnRedis, BasicConversationStoreContract):
    pass


@pytest.mark.heavy
class TestAsyncRedisConversationStore(OnRedis, AsyncBasicConversationStoreContract):
    pass


def test_an_agent_remembers_on_redis_after_a_restart(prefix: str) -> None:
    class Coach(RemembersConversations, Agent):
        provider = ScriptedProvider(["Stored.", "Blue."])
        generate_titles = False

    image = ImagePart(data=b"\0\xff", media_type="image/png")
    for prompt in (Message(content=(image,)), "What did I say?"):
        store = shown()(url=URL, prefix=prefix)
        Coach(store=store, model="test", conversation_id="user-42").prompt(prompt)
    first, *rest = shown()(url=URL, prefix=prefix).load("user-42")
    assert first.content == (image,)
    assert [message.text for message in rest] == ["Stored.", "What did I say?", "Blue."]


def test_a_window_reads_no_more_than_its_turns(prefix: str) -> None:
    store = shown()(url=URL, prefix=prefix)
    turn = Turn(user=Message("user", "Hello"))
    store.append("one", turn)
    store.redis.lpush(f"{prefix}one", "not to be read")
    assert store.load("one", keep_last_turns=1) == turn.messages
