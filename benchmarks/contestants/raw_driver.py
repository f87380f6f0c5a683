"""The floor: hand-written SQL on the bare driver, for one table layout and nothing more."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import Any

from benchmarks.contestants.base import DEFAULT_USER, Contestant
from benchmarks.turns import image, turns

TABLES = """
CREATE TABLE raw_conversation (id {serial}, name varchar(100) UNIQUE, participant bigint NOT NULL,
    last_position bigint NOT NULL, updated_at double precision NOT NULL);
CREATE INDEX raw_latest ON raw_conversation (participant, updated_at);
CREATE TABLE raw_message (conversation_id bigint NOT NULL, position bigint NOT NULL,
    role varchar(20) NOT NULL, body {text} NOT NULL, created_at double precision NOT NULL,
    PRIMARY KEY (conversation_id, position)) {clustered};
CREATE TABLE raw_image (conversation_id bigint NOT NULL, position bigint NOT NULL,
    data {blob} NOT NULL, PRIMARY KEY (conversation_id, position))
"""
TYPES = {
    "sqlite": {"serial": "integer PRIMARY KEY", "blob": "blob", "clustered": "WITHOUT ROWID"},
    "postgresql": {"serial": "bigserial PRIMARY KEY", "blob": "bytea"},
    "mariadb": {
        "serial": "bigint AUTO_INCREMENT PRIMARY KEY",
        "blob": "longblob",
        "text": "longtext",
    },
}
BEGIN = {"sqlite": "BEGIN IMMEDIATE", "postgresql": "BEGIN", "mariadb": "BEGIN"}
ROW = "(%s,%s,%s,%s,%s)"


class RawDriver(Contestant):
    """
    One ``UPDATE`` that allocates positions, one ``INSERT`` of four rows, one range read.

    A conversation's key is looked up once a process and kept.
    """

    name = "raw driver"
    kind = "floor"
    databases = ("sqlite", "postgresql", "mariadb")
    pages = finds_latest = True

    def create(self) -> None:
        types = {"text": "text", "clustered": ""} | TYPES[self.database.vendor]
        connection = self.database.connect()
        for statement in TABLES.format(**types).split(";"):
            connection.cursor().execute(statement)
        connection.close()

    def open(self) -> None:
        self.vendor = self.database.vendor
        self.connection = self.database.connect()
        self.keys: dict[str, int] = {}

    def close(self) -> None:
        self.connection.close()

    def run(self, statement: str, values: Iterable[Any] = ()) -> Any:
        if self.vendor == "sqlite":
            return self.connection.execute(statement.replace("%s", "?"), [*values])
        cursor = self.connection.cursor()
        cursor.execute(statement, [*values])
        return cursor

    def key(self, conversation: str) -> int | None:
        if conversation not in self.keys:
            statement = "SELECT id FROM raw_conversation WHERE name = %s"
            found = self.run(statement, [conversation]).fetchone()
            if found is None:
                return None
            self.keys[conversation] = found[0]
        return self.keys[conversation]

    def append(self, conversation: str, messages: Any) -> None:
        key, count, now = self.key(conversation), len(messages), time.time()
        self.run(BEGIN[self.vendor])
        if key is None:
            key, last = self._insert(conversation, count, now), count
        else:
            last = self._count_in(key, count, now)
        values: list[Any] = []
        for position, message in enumerate(messages, last - count + 1):
            values += (key, position, message["role"], json.dumps(message), now)
        self.run(f"INSERT INTO raw_message VALUES {','.join([ROW] * count)}", values)
        if "image" in messages[0]:
            self.run("INSERT INTO raw_image VALUES (%s,%s,%s)", (key, last - count + 1, image()))
        self.run("COMMIT")
        self.keys[conversation] = key

    def _insert(self, conversation: str, last: int, now: float) -> int:
        statement = (
            "INSERT INTO raw_conversation (name, participant, last_position, updated_at) "
            "VALUES (%s,%s,%s,%s) RETURNING id"
        )
        found = self.run(statement, (conversation, DEFAULT_USER, last, now)).fetchone()
        return int(found[0])

    def _count_in(self, key: int, count: int, now: float) -> int:
        last = "last_position + %s"
        returning = " RETURNING last_position"
        if self.vendor == "mariadb":
            last, returning = f"last_insert_id({last})", ""
        statement = f"UPDATE raw_conversation SET last_position = {last}, updated_at = %s"
        cursor = self.run(f"{statement} WHERE id = %s{returning}", (count, now, key))
        return int(cursor.fetchone()[0] if returning else cursor.lastrowid)

    def window(self, conversation: str, count: int = 10) -> Any:
        key = self.key(conversation)
        statement = (
            "SELECT body, position FROM raw_message WHERE conversation_id = %s "
            "ORDER BY position DESC LIMIT %s"
        )
        rows = self.run(statement, (key, count * 4)).fetchall()
        messages = [json.loads(body) for body, _ in reversed(rows)]
        if any("image" in message for message in messages):
            statement = "SELECT data FROM raw_image WHERE conversation_id = %s AND position >= %s"
            return messages, self.run(statement, (key, rows[-1][1])).fetchall()
        return messages

    def history(self, conversation: str) -> list[Any]:
        statement = "SELECT body FROM raw_message WHERE conversation_id = %s ORDER BY position"
        return [body for (body,) in self.run(statement, [self.key(conversation)]).fetchall()]

    def seed(self, conversation: str, count: int) -> None:
        key = self._insert(conversation, 4 * count, 0)
        self._many(
            f"INSERT INTO raw_message VALUES {ROW}",
            [
                (key, 4 * number + place + 1, message["role"], json.dumps(message), 0)
                for number, turn in enumerate(turns(conversation, count))
                for place, message in enumerate(turn.as_plain())
            ],
        )

    def _many(self, statement: str, rows: list[Any]) -> None:
        self.run(BEGIN[self.vendor])
        marked = statement.replace("%s", "?") if self.vendor == "sqlite" else statement
        self.connection.cursor().executemany(marked, rows)
        self.run("COMMIT")

    def cursor(self, conversation: str, number: int, size: int = 25) -> Any:
        statement = "SELECT max(position) FROM raw_message WHERE conversation_id = %s"
        (last,) = self.run(statement, [self.key(conversation)]).fetchone()
        return last + 1 - (number - 1) * size

    def page(self, conversation: str, cursor: Any, size: int = 25) -> Any:
        statement = (
            "SELECT body FROM raw_message WHERE conversation_id = %s AND position < %s "
            "ORDER BY position DESC LIMIT %s"
        )
        rows = self.run(statement, (self.key(conversation), cursor, size)).fetchall()
        return [json.loads(body) for (body,) in rows]

    def seed_conversations(self, owners: list[int]) -> None:
        self._many(
            "INSERT INTO raw_conversation (name, participant, last_position, updated_at) "
            "VALUES (%s,%s,0,%s)",
            [(f"owned-{number}", owner, number) for number, owner in enumerate(owners)],
        )

    def latest(self, participant: int) -> Any:
        statement = (
            "SELECT name FROM raw_conversation WHERE participant = %s "
            "ORDER BY updated_at DESC LIMIT 1"
        )
        return self.run(statement, [participant]).fetchone()
