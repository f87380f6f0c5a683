"""The databases that contestants are opened on: made anew for a run, durable, told apart by vendor."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar


@dataclass(frozen=True)
class Database:
    """
    A database of the run's own; ``folder`` is where files may be written.

    What was there under its name is dropped. A commit is on disk when it returns.
    """

    folder: Path

    vendor: ClassVar[str] = ""

    @property
    def name(self) -> str:
        raise NotImplementedError

    def create(self) -> None:
        """Make the database, empty."""
        raise NotImplementedError

    def drop(self) -> None:
        """Remove it."""
        raise NotImplementedError

    def connect(self) -> Any:
        """Return a connection of the driver, in autocommit mode."""
        raise NotImplementedError

    def django(self) -> dict[str, Any]:
        """Return the entry of Django's ``DATABASES``."""
        raise NotImplementedError

    def settle(self) -> None:
        """Have what was seeded written out and analysed, as it would be a day later."""

    def size(self) -> int:
        """Return the bytes of all tables and indexes, of all contestants."""
        raise NotImplementedError

    def version(self) -> str:
        raise NotImplementedError

    def one(self, statement: str) -> Any:
        """Return the first column of the first row."""
        connection = self.connect()
        try:
            cursor = connection.cursor()
            cursor.execute(statement)
            return cursor.fetchone()[0]
        finally:
            connection.close()


class SQLite(Database):
    """A file for each library and one for Django, all in WAL mode with ``synchronous=FULL``."""

    vendor = "sqlite"

    @property
    def name(self) -> str:
        return str(self.file("django"))

    def file(self, name: str) -> Path:
        """Return the path of a file; the mode of its journal is kept in it."""
        path = self.folder / f"{name}.sqlite3"
        if not path.exists():
            connection = sqlite3.connect(path)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.close()
        return path

    def create(self) -> None:
        self.drop()

    def drop(self) -> None:
        for path in self.folder.glob("*.sqlite3*"):
            path.unlink()

    def connect(self, name: str = "raw") -> Any:
        return sqlite3.connect(self.file(name), isolation_level=None, timeout=20)

    def django(self) -> dict[str, Any]:
        options = {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL",
        }
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": self.name, "OPTIONS": options}

    def size(self) -> int:
        total = 0
        for path in self.folder.glob("*.sqlite3"):
            connection = sqlite3.connect(path, timeout=20)
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            (free,) = connection.execute("PRAGMA freelist_count").fetchone()
            (each,) = connection.execute("PRAGMA page_size").fetchone()
            connection.close()
            total += (pages - free) * each
        return total

    def version(self) -> str:
        return f"SQLite {sqlite3.sqlite_version}, WAL, synchronous=FULL"


class Server(Database):
    """A database of a server, whose name is ``benchmark_`` and what the ``variable`` says."""

    variable: ClassVar[str]
    engine: ClassVar[str]
    encoding: ClassVar[str] = ""
    force: ClassVar[str] = ""
    options: ClassVar[dict[str, Any]] = {}
    """Of Django's connection, as docs/performance.md advises."""

    @property
    def name(self) -> str:
        return f"benchmark_{os.environ.get(self.variable, 'agent_memory')}"

    @property
    def address(self) -> dict[str, Any]:
        """Where the server is, as arguments of its driver."""
        raise NotImplementedError

    def create(self) -> None:
        self.drop()
        self._maintain(f"CREATE DATABASE {self.name} {self.encoding}")

    def drop(self) -> None:
        self._maintain(f"DROP DATABASE IF EXISTS {self.name} {self.force}")

    def _maintain(self, statement: str) -> None:
        raise NotImplementedError

    def django(self) -> dict[str, Any]:
        there = {name.upper(): value for name, value in self.address.items()}
        engine = f"django.db.backends.{self.engine}"
        return {"ENGINE": engine, "NAME": self.name, **there, "OPTIONS": self.options}


class PostgreSQL(Server):
    """Reached as ``PGHOST`` and the like say; by default on loopback as ``postgres``."""

    vendor = engine = "postgresql"
    variable = "PGDATABASE"
    options: ClassVar[dict[str, Any]] = {"server_side_binding": True, "prepare_threshold": 5}
    force = "WITH (FORCE)"

    @property
    def address(self) -> dict[str, Any]:
        return {
            "host": os.environ.get("PGHOST", "127.0.0.1"),
            "port": os.environ.get("PGPORT", "5432"),
            "user": os.environ.get("PGUSER", "postgres"),
        }

    def url(self, driver: str = "") -> str:
        scheme = f"postgresql+{driver}" if driver else "postgresql"
        there = self.address
        return f"{scheme}://{there['user']}@{there['host']}:{there['port']}/{self.name}"

    def _maintain(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(**self.address, dbname="postgres", autocommit=True) as connection:
            connection.execute(statement)

    def connect(self) -> Any:
        import psycopg

        return psycopg.connect(**self.address, dbname=self.name, autocommit=True)

    def settle(self) -> None:
        with self.connect() as connection:
            connection.execute("VACUUM ANALYZE")
            connection.execute("CHECKPOINT")

    def size(self) -> int:
        return int(
            self.one(
                "SELECT sum(pg_total_relation_size(oid)) FROM pg_class "
                "WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
            )
        )

    def version(self) -> str:
        server, fsync, commit = map(
            self.one, ("SHOW server_version", "SHOW fsync", "SHOW synchronous_commit")
        )
        return f"PostgreSQL {server.split()[0]}, fsync {fsync}, synchronous_commit {commit}"


class MariaDB(Server):
    """Reached as ``MYSQL_HOST`` and the like say; by default on loopback as ``root``."""

    vendor, engine = "mariadb", "mysql"
    variable = "MYSQL_DATABASE"
    encoding = "CHARACTER SET utf8mb4"

    @property
    def address(self) -> dict[str, Any]:
        return {
            "host": os.environ.get("MYSQL_HOST", "127.0.0.1"),
            "port": int(os.environ.get("MYSQL_PORT", "3306")),
            "user": os.environ.get("MYSQL_USER", "root"),
            "password": os.environ.get("MYSQL_PASSWORD", ""),
        }

    def _maintain(self, statement: str) -> None:
        import MySQLdb

        connection = MySQLdb.connect(**self.address)
        connection.cursor().execute(statement)
        connection.close()

    def connect(self) -> Any:
        import MySQLdb

        return MySQLdb.connect(
            **self.address, database=self.name, autocommit=True, charset="utf8mb4"
        )

    def settle(self) -> None:
        connection = self.connect()
        cursor = connection.cursor()
        cursor.execute("SHOW TABLES")
        for (table,) in cursor.fetchall():
            cursor.execute(f"ANALYZE TABLE `{table}`")
            cursor.fetchall()
        connection.close()

    def size(self) -> int:
        self.settle()
        return int(
            self.one(
                "SELECT sum(data_length + index_length) FROM information_schema.tables "
                "WHERE table_schema = database()"
            )
        )

    def version(self) -> str:
        flush = self.one("SELECT @@innodb_flush_log_at_trx_commit")
        return f"{self.one('SELECT version()')}, innodb_flush_log_at_trx_commit {flush}"


DATABASES: dict[str, type[Database]] = {each.vendor: each for each in (SQLite, PostgreSQL, MariaDB)}
