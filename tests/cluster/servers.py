"""
Servers of a cluster: on loopback and free ports, in one folder that goes with them.

A script builds a cluster with ``Servers`` and passes it to ``serve()``, which
tells on stdout where the servers are and obeys commands on stdin until that
ends. A server dies with its script, however the script dies; its folder is
removed by the script, or by who started it (``clusters.running``).
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

PREFIX = "agent-memory-cluster-"
PORTS = range(20_000, 32_000)
"""Below those that Linux gives to outgoing connections."""

START_SECONDS = 60
STOP_SECONDS = 20
PR_SET_PDEATHSIG = 1

libc = ctypes.CDLL(None)


# The clients of the servers read these, and they may name others of the developer's.
OWN_ENVIRONMENT = {
    name: value for name, value in os.environ.items() if not name.startswith(("PG", "MYSQL"))
}


class Server:
    """A process that is started, stopped and killed; its output is in ``log``."""

    def __init__(
        self,
        servers: Servers,
        name: str,
        command: Sequence[object],
        *,
        ready: Callable[[], bool],
        stop_signal: signal.Signals = signal.SIGTERM,
    ) -> None:
        self.servers, self.name, self.command = servers, name, list(map(str, command))
        self.ready, self.stop_signal = ready, stop_signal
        self.log = servers.folder / f"{name}.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *arguments: str) -> None:
        """Start it without waiting for it."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.command, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.servers.folder,
                start_new_session=True,
                preexec_fn=_die_with_parent,
                **self.servers.identity,
            )

    def wait(self) -> None:
        """Wait until it is ready; raises ``RuntimeError`` with the end of its log."""
        assert self.process is not None
        until = time.monotonic() + START_SECONDS
        while not self.ready():
            if self.process.poll() is not None or time.monotonic() > until:
                end = self.log.read_text(errors="replace")[-4000:]
                raise RuntimeError(f"{self.name} does not start:\n{end}")
            time.sleep(0.1)

    def kill(self) -> None:
        """End it at once, as a power failure does, with what it has started."""
        if self.process is None:
            return
        self.process.kill()
        self.process.wait()
        _kill_session(self.process.pid)
        self.process = None

    def stop(self) -> None:
        """End it in good order, and at once if that takes long."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(self.stop_signal)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_SECONDS)
        self.kill()


class Servers:
    """The servers of a cluster and their folder, owned by a system user."""

    def __init__(self, user: str) -> None:
        self.user = user if os.geteuid() == 0 else None
        self.folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        if self.user:
            shutil.chown(self.folder, self.user)
        self.all: dict[str, Server] = {}

    @property
    def identity(self) -> dict[str, Any]:
        """What ``subprocess`` is told of the user, whom database servers want not to be root."""
        if self.user is None:
            return {}
        group = pwd.getpwnam(self.user).pw_gid
        return {"user": self.user, "group": group, "extra_groups": ()}

    def run(self, *command: object) -> None:
        """Run a command to its end; raises ``RuntimeError`` with what it printed."""
        done = subprocess.run(
            list(map(str, command)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.folder,
            env=OWN_ENVIRONMENT,
            check=False,
            **self.identity,
        )
        if done.returncode:
            raise RuntimeError(f"{command[0]} failed:\n{done.stdout.decode(errors='replace')}")

    def add(self, name: str, command: Sequence[object], **options: Any) -> Server:
        self.all[name] = Server(self, name, command, **options)
        return self.all[name]

    def __enter__(self) -> Servers:
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Stop all, the last one first, and remove the folder."""
        try:
            for server in reversed(self.all.values()):
                server.stop()
        finally:
            for server in self.all.values():
                server.kill()
            shutil.rmtree(self.folder)


def serve(
    servers: Servers, facts: Mapping[str, Any], commands: Mapping[str, Callable[..., None]]
) -> None:
    """Print the facts as a line of JSON, then obey: a command a line, answered by a line."""
    print(json.dumps({"folder": str(servers.folder), **facts}), flush=True)  # noqa: T201
    for line in sys.stdin:
        name, *arguments = line.split()
        commands[name](*arguments)
        print(json.dumps({"done": line.strip()}), flush=True)  # noqa: T201


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Leave the block in good order on SIGTERM and SIGHUP too."""

    def leave(number: int, frame: object) -> None:
        signal.signal(number, signal.SIG_IGN)  # once is enough
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)
    with contextlib.suppress(KeyboardInterrupt):
        yield


def free_ports(count: int) -> list[int]:
    """Return so many ports of loopback on which nothing listens."""
    found: list[int] = []
    while len(found) < count:
        port = random.choice(PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            if port not in found:
                found.append(port)
    return found


def answers(port: int) -> bool:
    """Tell whether something listens on a port of loopback."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def _die_with_parent() -> None:
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _kill_session(session: int) -> None:
    """Kill what a server has started and left behind, as the copier of a joining node."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.getsid(int(name)) == session:
                    os.kill(int(name), signal.SIGKILL)
