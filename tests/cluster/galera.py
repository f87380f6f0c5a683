"""
A MariaDB Galera cluster of three nodes on loopback, apart from the machine's own server.

``python -m tests.cluster.galera`` builds it and prints a line of JSON: the
folder, the SQL port of each node, and where HAProxy is installed that of a
proxy before them. It goes on until its stdin ends, and obeys ``kill 3`` (at
once, by ``kill -9``) and ``heal`` (killed nodes come back) on it.

Needs Debian's packages mariadb-server, galera-4 and rsync.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.cluster.servers import Server, Servers, answers, ended_by_signals, free_ports, serve

PROVIDERS = ("/usr/lib/galera/libgalera_smm.so", "/usr/lib64/galera-4/libgalera_smm.so")
PROGRAMS = ("mariadbd", "mariadb-install-db", "rsync")
NODES = (1, 2, 3)
DATABASE = "memory"

PROXY = """
defaults
    mode tcp
    timeout connect 1s
    timeout client 10m
    timeout server 10m
listen galera
    bind 127.0.0.1:{port}
    balance roundrobin
    option redispatch
    default-server check inter 300ms fall 2 rise 2 on-marked-down shutdown-sessions
"""

FAST_FAILURE_DETECTION = (
    "evs.keepalive_period=PT0.3S;evs.inactive_check_period=PT0.3S;evs.suspect_timeout=PT2S;"
    "evs.inactive_timeout=PT3S;evs.install_timeout=PT3S"
)


def provider() -> str | None:
    return next((path for path in PROVIDERS if Path(path).exists()), None)


def missing() -> list[str]:
    """Return the names of what this machine lacks for a cluster."""
    lacking = [name for name in PROGRAMS if program(name) is None]
    return lacking if provider() else [*lacking, "galera-4"]


def program(name: str) -> str | None:
    """Return the path of a program, which may be for administrators alone."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin")


class Cluster:
    """Three nodes; any of them takes writes."""

    def __init__(self, servers: Servers) -> None:
        self.servers = servers
        *ports, proxy = free_ports(4 * len(NODES) + 1)
        self.sql, self.group, self.copy, self.catch_up = (
            dict(zip(NODES, ports[start : start + 3], strict=True)) for start in (0, 3, 6, 9)
        )
        self.nodes = {number: self.make(number) for number in NODES}
        self.proxy = proxy if program("haproxy") else None

    def make(self, number: int) -> Server:
        data = self.servers.folder / str(number)
        self.servers.run("mkdir", data)
        return self.servers.add(
            str(number), self.command(number, data), ready=lambda: self.is_synced(number)
        )

    def command(self, number: int, data: Path) -> list[object]:
        members = ",".join(f"127.0.0.1:{port}" for port in self.group.values())
        return [
            program("mariadbd"),
            "--no-defaults",
            f"--datadir={data}",
            f"--tmpdir={data}",
            f"--socket={data}/socket",
            f"--pid-file={data}/pid",
            f"--port={self.sql[number]}",
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            "--binlog-format=ROW",
            "--default-storage-engine=InnoDB",
            "--innodb-autoinc-lock-mode=2",
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-buffer-pool-size=32M",
            "--innodb-log-file-size=16M",
            "--character-set-server=utf8mb4",
            "--wsrep-on=ON",
            f"--wsrep-provider={provider()}",
            "--wsrep-cluster-name=agent-memory",
            f"--wsrep-cluster-address=gcomm://{members}",
            f"--wsrep-node-name=n{number}",
            "--wsrep-node-address=127.0.0.1",
            "--wsrep-sst-method=rsync",
            f"--wsrep-sst-receive-address=127.0.0.1:{self.copy[number]}",
            f"--wsrep-provider-options={self.options(number)}",
        ]

    def options(self, number: int) -> str:
        """Return what the replication library is told."""
        group, catch_up = self.group[number], self.catch_up[number]
        return (
            f"base_host=127.0.0.1;base_port={group};gmcast.listen_addr=tcp://127.0.0.1:{group};"
            f"ist.recv_addr=127.0.0.1:{catch_up};gcache.size=16M;pc.recovery=false;"
            f"{FAST_FAILURE_DETECTION}"
        )

    def start(self) -> None:
        """Make the first node; the others begin with a copy of it."""
        first, *joining = self.nodes.values()
        self.servers.run(
            program("mariadb-install-db"),
            "--no-defaults",
            f"--datadir={self.servers.folder}/1",
            f"--tmpdir={self.servers.folder}/1",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        )
        first.start("--wsrep-new-cluster")
        first.wait()
        for node in joining:
            node.start()
        for node in joining:
            node.wait()

    def start_proxy(self) -> None:
        settings = self.servers.folder / "haproxy.cfg"
        nodes = "".join(f"    server n{n} 127.0.0.1:{port}\n" for n, port in self.sql.items())
        settings.write_text(PROXY.format(port=self.proxy) + nodes)
        assert self.proxy is not None
        port = self.proxy
        self.servers.add(
            "proxy", [program("haproxy"), "-f", settings], ready=lambda: answers(port)
        ).start()
        self.servers.all["proxy"].wait()

    def heal(self) -> None:
        """Start the nodes that were killed; they have what they missed when this returns."""
        for node in self.nodes.values():
            if node.process is None:
                node.start()
                node.wait()

    def is_synced(self, number: int) -> bool:
        import MySQLdb

        try:
            connection = MySQLdb.connect(host="127.0.0.1", port=self.sql[number], user="root")
        except MySQLdb.OperationalError:
            return False
        try:
            with connection.cursor() as cursor:
                cursor.execute("SHOW STATUS LIKE 'wsrep_local_state_comment'")
                return bool(cursor.fetchone() == ("wsrep_local_state_comment", "Synced"))
        except MySQLdb.OperationalError:
            return False
        finally:
            connection.close()

    def create_database(self) -> None:
        import MySQLdb

        connection = MySQLdb.connect(host="127.0.0.1", port=self.sql[1], user="root")
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {DATABASE}")
        connection.close()


def main() -> None:
    with ended_by_signals(), Servers("mysql") as servers:
        cluster = Cluster(servers)
        cluster.start()
        cluster.create_database()
        if cluster.proxy:
            cluster.start_proxy()
        serve(
            servers,
            {
                "ports": list(cluster.sql.values()),
                "proxy": cluster.proxy,
                "database": DATABASE,
            },
            {
                "kill": lambda number: cluster.nodes[int(number)].kill(),
                "heal": cluster.heal,
            },
        )


if __name__ == "__main__":
    main()
