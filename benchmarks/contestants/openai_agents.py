"""The sessions of the OpenAI Agents SDK."""

from __future__ import annotations

import os
from typing import Any

from benchmarks.contestants.base import Asynchronous
from benchmarks.databases import PostgreSQL, SQLite
from benchmarks.turns import Turn


class Session(Asynchronous):
    """A session as ``Runner.run`` uses one: opened a request, read, added to."""

    def open(self) -> None:
        super().open()
        os.environ.setdefault("OPENAI_API_KEY", "none")
        self.sessions: dict[str, Any] = {}

    def shape(self, turn: Turn) -> Any:
        return turn.as_items()

    def session(self, conversation: str) -> Any:
        """Return a new session object."""
        raise NotImplementedError

    def opened(self, conversation: str) -> Any:
        """Return a session that is open already."""
        if conversation not in self.sessions:
            self.sessions[conversation] = self.session(conversation)
        return self.sessions[conversation]

    def append(self, conversation: str, messages: Any) -> None:
        self.run(self.opened(conversation).add_items(messages))

    def window(self, conversation: str, count: int = 10) -> Any:
        return self.run(self.opened(conversation).get_items(4 * count))

    def history(self, conversation: str) -> list[Any]:
        return [*self.run(self.opened(conversation).get_items())]

    def turn(self, conversation: str, messages: Any) -> None:
        self.run(self._turn(self.session(conversation), messages))

    async def _turn(self, session: Any, messages: Any) -> None:
        await session.get_items(40)
        await session.add_items(messages)
        if hasattr(session, "close"):
            session.close()

    pages = True

    def page(self, conversation: str, cursor: Any, size: int = 25) -> Any:
        """Read all newer messages too: a session has no other way back."""
        return self.run(self.opened(conversation).get_items(cursor + size))[:size]


class SQLiteSessions(Session):
    name = "openai-agents SQLiteSession"
    databases = ("sqlite",)
    needs = ("agents",)

    def session(self, conversation: str) -> Any:
        from agents import SQLiteSession

        assert isinstance(self.database, SQLite)
        return SQLiteSession(conversation, self.database.file("agents_sqlite"))

    def close(self) -> None:
        for session in self.sessions.values():
            session.close()
        super().close()


class SQLAlchemySessions(Session):
    name = "openai-agents SQLAlchemySession"
    needs = ("agents", "sqlalchemy", "aiosqlite", "asyncpg")

    def create(self) -> None:
        self.open()
        self.run(self._create())
        self.close()

    async def _create(self) -> None:
        from agents.extensions.memory import SQLAlchemySession

        await SQLAlchemySession("first", engine=self.engine, create_tables=True).get_items(1)

    def open(self) -> None:
        from sqlalchemy.ext.asyncio import create_async_engine

        super().open()
        if isinstance(self.database, SQLite):
            url = f"sqlite+aiosqlite:///{self.database.file('agents_sqlalchemy')}"
        else:
            assert isinstance(self.database, PostgreSQL)
            url = self.database.url("asyncpg")
        self.engine = create_async_engine(url)

    def close(self) -> None:
        self.run(self.engine.dispose())
        super().close()

    def session(self, conversation: str) -> Any:
        from agents.extensions.memory import SQLAlchemySession

        return SQLAlchemySession(conversation, engine=self.engine)

    def seed(self, conversation: str, count: int) -> None:
        """Add as many as a statement of asyncpg takes parameters for."""
        step = 500
        for first in range(0, count, step):
            items = [
                item
                for number in range(first, min(count, first + step))
                for item in Turn(f"{conversation}-{number}").as_items()
            ]
            self.append(conversation, items)
