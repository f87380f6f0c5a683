"""
A PostgreSQL server with a streaming replica on loopback, apart from the machine's own.

``python -m tests.cluster.streaming`` builds it and prints a line of JSON: the
folder and the ports of ``primary``, ``replica`` and, where it is installed,
``pgbouncer``, which pools transactions of the primary. It goes on until its
stdin ends, and obeys ``synchronous`` (a commit waits for the replica from now
on), ``kill primary`` (at once, by ``kill -9``) and ``promote`` (the replica
becomes a primary) on it.

Needs Debian's package postgresql.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
from pathlib import Path

from tests.cluster.servers import Server, Servers, answers, ended_by_signals, free_ports, serve

PROGRAMS = ("initdb", "postgres", "pg_basebackup", "pg_ctl", "pg_isready", "psql")
USER = "postgres"
POOLED_CONNECTIONS = 2


def program(name: str) -> str | None:
    """Return the path of a program; Debian keeps those of the server out of the usual ones."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: path.parent.name)
    found = [path for folder in folders[::-1] if (path := shutil.which(name, path=str(folder)))]
    return found[0] if found else shutil.which(name)


def pgbouncer() -> str | None:
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


def missing() -> list[str]:
    """Return the names of what this machine lacks for a cluster."""
    return [name for name in PROGRAMS if program(name) is None]


class Cluster:
    """A primary that sends what it writes to a replica."""

    def __init__(self, servers: Servers) -> None:
        self.servers = servers
        names = ["primary", "replica"] + (["pgbouncer"] if pgbouncer() else [])
        self.ports = dict(zip(names, free_ports(len(names)), strict=True))

    def start(self) -> None:
        folder, port = self.servers.folder, self.ports["primary"]
        self.servers.run(
            program("initdb"), f"--pgdata={folder}/primary", "--auth=trust", "--no-sync",
            f"--username={USER}", "--encoding=UTF8", "--locale=C",
        )  # fmt: skip
        self.make("primary").start()
        self.servers.all["primary"].wait()
        self.servers.run(
            program("pg_basebackup"), f"--pgdata={folder}/replica", "--write-recovery-conf",
            "--wal-method=stream", "--checkpoint=fast", "--no-sync",
            "--host=127.0.0.1", f"--port={port}", f"--username={USER}",
        )  # fmt: skip
        self.make("replica").start()
        self.servers.all["replica"].wait()
        if "pgbouncer" in self.ports:
            self.make_pgbouncer().start()
            self.servers.all["pgbouncer"].wait()

    def make(self, name: str) -> Server:
        port, isready = self.ports[name], program("pg_isready")

        def ready() -> bool:
            with contextlib.suppress(RuntimeError):
                self.servers.run(isready, "--quiet", "--host=127.0.0.1", f"--port={port}")
                return True
            return False

        return self.servers.add(
            name,
            [
                program("postgres"), "-D", self.servers.folder / name, "-h", "127.0.0.1",
                "-p", port, "-k", "", "-c", "fsync=off", "-c", "shared_buffers=16MB",
                "-c", "wal_receiver_status_interval=1",
            ],
            ready=ready,
            stop_signal=signal.SIGINT,
        )  # fmt: skip

    def make_pgbouncer(self) -> Server:
        port, settings = self.ports["pgbouncer"], self.servers.folder / "pgbouncer.ini"
        settings.write_text(
            f"""
            [databases]
            * = host=127.0.0.1 port={self.ports["primary"]} user={USER}
            [pgbouncer]
            listen_addr = 127.0.0.1
            listen_port = {port}
            unix_socket_dir =
            auth_type = any
            pool_mode = transaction
            default_pool_size = {POOLED_CONNECTIONS}
            ignore_startup_parameters = extra_float_digits
            """.replace(" " * 12, "")
        )
        return self.servers.add(
            "pgbouncer",
            [pgbouncer(), settings],
            ready=lambda: answers(port),
            stop_signal=signal.SIGINT,
        )

    def wait_for_the_replica(self) -> None:
        """Let a commit be told when the replica has it too."""
        for command in (
            "ALTER SYSTEM SET synchronous_standby_names = '*'",
            "SELECT pg_reload_conf()",
            # The servers read their settings a moment later, and the replica may connect late.
            """
            DO $$ BEGIN
                WHILE NOT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync') LOOP
                    PERFORM pg_sleep(0.05), pg_stat_clear_snapshot();
                END LOOP;
            END $$
            """,
        ):
            self.servers.run(
                program("psql"), "--host=127.0.0.1", f"--port={self.ports['primary']}",
                f"--username={USER}", "--dbname=postgres", f"--command={command}",
            )  # fmt: skip

    def promote(self) -> None:
        """Make a primary of the replica."""
        data = self.servers.folder / "replica"
        self.servers.run(program("pg_ctl"), "promote", f"--pgdata={data}", "--wait")


def main() -> None:
    with ended_by_signals(), Servers("postgres") as servers:
        cluster = Cluster(servers)
        cluster.start()
        serve(
            servers,
            {"ports": cluster.ports, "database": "postgres"},
            {
                "synchronous": cluster.wait_for_the_replica,
                "kill": lambda name: servers.all[name].kill(),
                "promote": cluster.promote,
            },
        )


if __name__ == "__main__":
    main()
