"""LangGraph's checkpoint savers."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.contestants.base import Contestant
from benchmarks.databases import PostgreSQL, SQLite
from benchmarks.turns import Turn


class LangGraphSaver(Contestant):
    """
    A turn is one ``update_state``: one checkpoint, the cheapest public way.

    ``invoke()`` writes one a superstep. "Latest" is ``list()`` with a filter on the metadata.
    """

    name = "langgraph checkpoints"
    needs = ("langgraph", "langgraph.checkpoint")
    disk_turns = 100
    finds_latest = True

    def create(self) -> None:
        self.open()
        self.saver.setup()
        self.close()

    def open(self) -> None:
        self.saver = self._saver()
        self.graph = _graph(self.saver)

    def _saver(self) -> Any:
        if isinstance(self.database, SQLite):
            import sqlite3

            from langgraph.checkpoint.sqlite import SqliteSaver

            path = self.database.file("langgraph")
            self.connection: Any = sqlite3.connect(path, check_same_thread=False, timeout=20)
            return SqliteSaver(self.connection)
        import psycopg
        from langgraph.checkpoint.postgres import PostgresSaver
        from psycopg.rows import dict_row

        assert isinstance(self.database, PostgreSQL)
        self.connection = psycopg.connect(
            self.database.url(), autocommit=True, prepare_threshold=0, row_factory=dict_row
        )
        return PostgresSaver(self.connection)

    def close(self) -> None:
        self.connection.close()

    def shape(self, turn: Turn) -> Any:
        return turn.as_langchain()

    def _thread(self, conversation: str) -> Any:
        return {"configurable": {"thread_id": conversation}}

    def append(self, conversation: str, messages: Any) -> None:
        self.graph.update_state(self._thread(conversation), {"messages": messages}, "agent")

    def window(self, conversation: str, count: int = 10) -> Any:
        return self.last(self.history(conversation), count)

    def history(self, conversation: str) -> list[Any]:
        state = self.graph.get_state(self._thread(conversation))
        return [*state.values.get("messages", ())]

    pages = True

    def page(self, conversation: str, cursor: Any, size: int = 25) -> Any:
        messages = self.history(conversation)
        end = len(messages) - cursor
        return messages[end - size : end]

    def seed_conversations(self, owners: list[int]) -> None:
        """Copy the row of a real checkpoint, with the owner in its metadata."""
        config = {**self._thread("owned"), "metadata": {"user_id": "0"}}
        self.graph.update_state(config, {"messages": []}, "agent")
        rows = [(f"owned-{n}", f"1f000000-{n:012x}", str(owner)) for n, owner in enumerate(owners)]
        columns = "thread_id, checkpoint_ns, checkpoint_id, type, checkpoint, metadata"
        into = f"INSERT INTO checkpoints ({columns})"
        cursor = self.connection.cursor()
        if isinstance(self.database, SQLite):
            changed = "CAST(json_set(CAST(metadata AS TEXT), '$.user_id', ?) AS BLOB)"
            marks = "?"
        else:
            changed = "metadata || jsonb_build_object('user_id', %s::text)"
            marks = "%s"
        new = f"SELECT {marks}, '', {marks}, type, checkpoint, {changed}"
        cursor.executemany(f"{into} {new} FROM checkpoints WHERE thread_id = 'owned'", rows)
        if isinstance(self.database, SQLite):
            self.connection.commit()
        assert json.dumps(self.latest(owners[-1]).metadata)

    def latest(self, participant: int) -> Any:
        return next(iter(self.saver.list(None, filter={"user_id": str(participant)}, limit=1)))


def _graph(saver: Any) -> Any:
    from typing import Annotated, TypedDict

    from langgraph.graph import END, START, StateGraph
    from langgraph.graph.message import add_messages

    state = TypedDict("state", {"messages": Annotated[list, add_messages]})  # noqa: UP013  add_messages is imported late
    graph = StateGraph(state)
    graph.add_node("agent", lambda _: {})
    graph.add_edge(START, "agent")
    graph.add_edge("agent", END)
    return graph.compile(checkpointer=saver)
