"""The contract of a contestant."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from itertools import chain
from typing import Any, ClassVar, Literal

from benchmarks.databases import Database
from benchmarks.turns import MESSAGES, Turn, turns

Kind = Literal["floor", "recipe", "peer", "ours"]

DEFAULT_USER, HEAVY_USER, LEFT_USER = 1, 7, 8
"""Who has most conversations, who has many among others, and who had as many before them."""


class Contestant:
    """
    A store of conversations, driven through its own public API.

    ``conversation`` is a name; each maps it to a key of its own. ``shape()`` is
    outside the clock, so that nobody pays for another one's types.
    """

    name: ClassVar[str]
    kind: ClassVar[Kind] = "peer"
    databases: ClassVar[tuple[str, ...]] = ("sqlite", "postgresql")
    needs: ClassVar[tuple[str, ...]] = ()
    """The modules that must be installed."""
    longest: ClassVar[int] = 100_000
    """Messages of the longest conversation that it is timed at."""
    disk_turns: ClassVar[int] = 1000
    """Turns of which it can write its size on disk in reasonable time."""
    only: ClassVar[frozenset[str]] = frozenset()
    """The works that it takes part in, where that is not all."""
    pages: ClassVar[bool] = False
    finds_latest: ClassVar[bool] = False

    def __init__(self, database: Database) -> None:
        self.database = database

    @classmethod
    def obstacle(cls, database: Database) -> str:
        """Return why it cannot take part, or nothing."""
        if database.vendor not in cls.databases:
            return f"does not know {database.vendor}"
        missing = [name for name in cls.needs if find_spec(name.split(".")[0]) is None]
        return f"{', '.join(missing)} is not installed" if missing else ""

    def create(self) -> None:
        """Make the tables, in one process, before it is opened."""

    def open(self) -> None:
        """Connect."""

    def close(self) -> None:
        """Disconnect."""

    def shape(self, turn: Turn) -> Any:
        """Return the messages of a turn as its own types."""
        return turn.as_plain()

    def append(self, conversation: str, messages: Any) -> None:
        """Store messages durably."""
        raise NotImplementedError

    def window(self, conversation: str, count: int = 10) -> Any:
        """Return the messages of the last ``count`` turns, as its own types."""
        raise NotImplementedError

    def turn(self, conversation: str, messages: Any) -> None:
        """Do all that a request does around the model's call, from the conversation's name on."""
        self.window(conversation)
        self.append(conversation, messages)

    def history(self, conversation: str) -> list[Any]:
        """Return all messages, as its own types or as text."""
        raise NotImplementedError

    def seed(self, conversation: str, count: int) -> None:
        """Store so many turns of a new conversation."""
        shaped = (self.shape(turn) for turn in turns(conversation, count))
        self.append(conversation, list(chain.from_iterable(shaped)))

    def page(self, conversation: str, cursor: Any, size: int = 25) -> Any:
        """Return a page of messages, newest first."""
        raise NotImplementedError

    def cursor(self, conversation: str, number: int, size: int = 25) -> Any:
        """Return what names a page, counted from 1; outside the clock."""
        return (number - 1) * size

    def seed_conversations(self, owners: list[int]) -> None:
        """Store a conversation of each of these participants, the last one the newest."""
        raise NotImplementedError

    def latest(self, participant: int) -> Any:
        """Return the conversation that a participant used last."""
        raise NotImplementedError

    @staticmethod
    def last(messages: list[Any], count: int) -> list[Any]:
        """Return the last turns of a whole history, for who cannot read less."""
        return messages[-count * MESSAGES :]


class Asynchronous(Contestant):
    """A contestant whose library is async; it has an event loop that stays."""

    def open(self) -> None:
        super().open()
        self.loop = asyncio.new_event_loop()

    def close(self) -> None:
        super().close()
        self.run(self.loop.shutdown_default_executor())
        self.loop.close()

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)
