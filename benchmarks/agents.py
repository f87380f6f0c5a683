"""An agent of ours and the bare client, asking the same model on loopback."""

from __future__ import annotations

import asyncio
import gc
import random
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from asgiref.sync import ThreadSensitiveContext

from benchmarks import project
from benchmarks.contestants.base import DEFAULT_USER
from benchmarks.contestants.ours import LABEL, OurStore
from benchmarks.databases import Database
from benchmarks.model_server import MODEL
from benchmarks.turns import turns

POOL = 4
TURNS = 10
"""How long the conversations are, and what is sent of them."""


@dataclass
class Heard:
    """When a streamed answer's first and last token came, in seconds from the question."""

    first: float
    last: float
    tokens: int


class Asker:
    """Asks one question, streamed, through the async client."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def tokens(self, conversation: str) -> AsyncIterator[Any]:
        """Yield whatever stands for a token."""
        raise NotImplementedError
        yield

    async def ask(self, conversation: str) -> Heard:
        begun = time.perf_counter()
        first, count = 0.0, 0
        async for _ in self.tokens(conversation):
            first = first or time.perf_counter() - begun
            count += 1
        return Heard(first, time.perf_counter() - begun, count)


class BareClient(Asker):
    """The official client, without a memory: it sends the question alone."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        from openai import AsyncOpenAI

        self.client = AsyncOpenAI(base_url=url, api_key="none")

    def input(self) -> Any:
        """Return what the model is sent."""
        return "Hello"

    async def tokens(self, conversation: str) -> AsyncIterator[Any]:
        stream = await self.client.responses.create(model=MODEL, input=self.input(), stream=True)
        async for event in stream:
            if event.type == "response.output_text.delta":
                yield event


class WithHistory(BareClient):
    """The official client, which is given the ten turns that ours reads from its store."""

    def input(self) -> Any:
        """See BareClient.input()."""
        told = [item for turn in turns("told", TURNS) for item in turn.as_items()]
        return [*told, {"role": "user", "content": "Hello"}]


class OurAgent(Asker):
    """``astream()`` of an agent that goes on with a conversation of ten turns, as in a request."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        from agent_memory import Agent, Participant, RemembersConversations
        from agent_memory.providers.openai_responses import OpenAIResponsesProvider

        class Coach(RemembersConversations, Agent):
            label = LABEL
            keep_last_turns = TURNS

        self.coach = Coach(provider=OpenAIResponsesProvider(base_url=url, api_key="none"))
        self.speaker = Participant("auth.user", str(DEFAULT_USER))

    async def tokens(self, conversation: str) -> AsyncIterator[Any]:
        from agent_memory.responses import TextDelta

        bound = self.coach.continue_conversation(conversation, self.speaker, must_own=True)
        async with ThreadSensitiveContext():  # Django's handler gives each request a thread
            async for event in bound.astream("Hello"):
                if isinstance(event, TextDelta):
                    yield event


ASKERS: dict[str, type[Asker]] = {
    "bare client": BareClient,
    "bare client, sent ten turns": WithHistory,
    "agent_memory": OurAgent,
}


def configure(database: Database) -> None:
    """Set this process up as a project that serves async views would."""
    if database.vendor == "postgresql":
        pool = {"pool": {"min_size": 1, "max_size": POOL}}
        project.configure(database, OPTIONS=database.django()["OPTIONS"] | pool)
    else:
        project.configure(database)


def in_turn(
    database: Database, url: str, conversations: list[str], rounds: int, together: bool
) -> dict[str, list[tuple[float, list[Heard]]]]:
    """
    Ask in all conversations, at once or one after the other, each way in each round.

    Returns for each way the seconds of each round, and what was heard in it.
    """
    configure(database)
    return asyncio.run(_in_turn(url, conversations, rounds, together))


async def _in_turn(
    url: str, conversations: list[str], rounds: int, together: bool
) -> dict[str, list[tuple[float, list[Heard]]]]:
    askers = {name: kind(url) for name, kind in ASKERS.items()}
    heard: dict[str, list[tuple[float, list[Heard]]]] = {name: [] for name in askers}
    order = list(askers)
    for number in range(-1, rounds):
        random.shuffle(order)
        for name in order:
            asker = askers[name]
            asked = conversations if number >= 0 else conversations[:2]
            gc.collect()  # what the way before left is looked through on nobody's clock
            begun = time.perf_counter()
            if together:
                answers = await asyncio.gather(*map(asker.ask, asked))
            else:
                answers = [await asker.ask(each) for each in asked]
            if number >= 0:
                heard[name].append((time.perf_counter() - begun, answers))
    return heard


def seed(database: Database, count: int, name: str) -> list[str]:
    """Seed so many conversations of ten turns; return their names."""
    store = OurStore(database)
    store.open()
    names = [f"{name}-{number}" for number in range(count)]
    for each in names:
        store.seed(each, TURNS)
    return names
