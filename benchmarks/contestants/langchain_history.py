"""langchain-postgres's message history."""

from __future__ import annotations

import uuid
from typing import Any

from benchmarks.contestants.base import Contestant
from benchmarks.databases import PostgreSQL
from benchmarks.turns import Turn

TABLE = "langchain_history"


class LangChainHistory(Contestant):
    name = "langchain-postgres history"
    databases = ("postgresql",)
    needs = ("langchain_postgres",)

    def create(self) -> None:
        self.open()
        self.history_class.create_tables(self.connection, TABLE)
        self.close()

    def open(self) -> None:
        import psycopg
        from langchain_postgres import PostgresChatMessageHistory

        assert isinstance(self.database, PostgreSQL)
        self.history_class = PostgresChatMessageHistory
        self.connection = psycopg.connect(self.database.url())

    def close(self) -> None:
        self.connection.close()

    def shape(self, turn: Turn) -> Any:
        return turn.as_langchain()

    def _of(self, conversation: str) -> Any:
        session = str(uuid.uuid5(uuid.NAMESPACE_URL, conversation))
        return self.history_class(TABLE, session, sync_connection=self.connection)

    def append(self, conversation: str, messages: Any) -> None:
        self._of(conversation).add_messages(messages)

    def window(self, conversation: str, count: int = 10) -> Any:
        return self.last(self.history(conversation), count)

    def history(self, conversation: str) -> list[Any]:
        messages = self._of(conversation).get_messages()
        self.connection.commit()  # it leaves its transaction open
        return [*messages]
