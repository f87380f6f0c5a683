"""What pydantic-ai's documentation has one write: the messages of a turn as one JSON text."""

from __future__ import annotations

from typing import Any

from benchmarks.contestants.base import Contestant
from benchmarks.databases import SQLite
from benchmarks.turns import Turn, image, turns


class PydanticAIRecipe(Contestant):
    """A row a turn in a table of one's own; no conversation, no positions, no owner."""

    name = "pydantic-ai recipe"
    kind = "recipe"
    needs = ("pydantic_ai",)

    def create(self) -> None:
        connection = self._connect()
        cursor = connection.cursor()
        key = "integer" if isinstance(self.database, SQLite) else "bigserial"
        cursor.execute(
            f"CREATE TABLE recipe_turn (id {key} PRIMARY KEY, conversation text NOT NULL, "
            "messages text NOT NULL)"
        )
        cursor.execute("CREATE INDEX recipe_conversation ON recipe_turn (conversation, id)")
        connection.close()

    def open(self) -> None:
        from pydantic_ai.messages import ModelMessagesTypeAdapter

        self.adapter = ModelMessagesTypeAdapter
        self.connection = self._connect()
        self.mark = "?" if isinstance(self.database, SQLite) else "%s"

    def _connect(self) -> Any:
        if isinstance(self.database, SQLite):
            return self.database.connect("pydantic_ai")
        return self.database.connect()

    def close(self) -> None:
        self.connection.close()

    def shape(self, turn: Turn) -> Any:
        from pydantic_ai import messages

        said: Any = turn.user
        if turn.pictured:
            said = [said, messages.BinaryContent(data=image(), media_type="image/png")]
        names = {"tool_name": "search", "tool_call_id": turn.call_id}
        return [
            messages.ModelRequest(parts=[messages.UserPromptPart(content=said)]),
            messages.ModelResponse(parts=[messages.ToolCallPart(args=turn.arguments, **names)]),
            messages.ModelRequest(parts=[messages.ToolReturnPart(content=turn.result, **names)]),
            messages.ModelResponse(parts=[messages.TextPart(content=turn.answer)]),
        ]

    def run(self, statement: str, values: Any) -> Any:
        return self.connection.cursor().execute(statement.replace("?", self.mark), values)

    def append(self, conversation: str, messages: Any) -> None:
        row = (conversation, self.adapter.dump_json(messages).decode())
        self.run("INSERT INTO recipe_turn (conversation, messages) VALUES (?,?)", row)

    def seed(self, conversation: str, count: int) -> None:
        rows = [
            (conversation, self.adapter.dump_json(self.shape(turn)).decode())
            for turn in turns(conversation, count)
        ]
        cursor = self.connection.cursor()
        cursor.execute("BEGIN")
        values = f"({self.mark},{self.mark})"
        cursor.executemany(
            f"INSERT INTO recipe_turn (conversation, messages) VALUES {values}", rows
        )
        cursor.execute("COMMIT")

    def _read(self, statement: str, values: Any) -> list[Any]:
        rows = self.run(statement, values).fetchall()
        return [message for (text,) in rows for message in self.adapter.validate_json(text)]

    def window(self, conversation: str, count: int = 10) -> Any:
        newest = "SELECT * FROM recipe_turn WHERE conversation = ? ORDER BY id DESC LIMIT ?"
        return self._read(
            f"SELECT messages FROM ({newest}) AS newest ORDER BY id", (conversation, count)
        )

    def history(self, conversation: str) -> list[Any]:
        statement = "SELECT messages FROM recipe_turn WHERE conversation = ? ORDER BY id"
        return self._read(statement, (conversation,))
