"""Workers in processes of their own, which can be watched and killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.faults.databases import as_json, until

ROOT = Path(__file__).parent.parent.parent


class Worker:
    """A process that works on one order, and reports in a file."""

    def __init__(self, workers: Workers, pid: int, report: Path) -> None:
        self.workers, self.pid, self.report = workers, pid, report
        self._read = 0
        self._told: list[dict[str, Any]] = []

    def told(self, what: str = "") -> list[dict[str, Any]]:
        """Return what it has reported so far, or what it has reported of one kind."""
        if self.report.exists():
            with self.report.open("rb") as file:
                file.seek(self._read)
                text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._read += len(whole)
            self._told += [json.loads(line) for line in whole.splitlines()]
        broken = [fact["broken"] for fact in self._told if "broken" in fact]
        assert not broken, broken[0]
        return [fact for fact in self._told if what in fact] if what else self._told

    def until(self, what: str) -> dict[str, Any]:
        """Wait until it reports something of a kind; return the latest."""
        until(lambda: self.told(what))
        return self.told(what)[-1]

    def kill(self) -> None:
        """End it at once, wherever it is, if it has not just ended; wait until it is gone."""
        os.kill(self.pid, signal.SIGKILL)
        assert self.workers.wait(self.pid) in (-signal.SIGKILL, 0)

    def stall(self) -> None:
        """Have it do nothing at all, with all its threads."""
        os.kill(self.pid, signal.SIGSTOP)

    def wake(self) -> None:
        """Have it go on from where it stands still."""
        self.report.with_name(self.report.name + ".go").touch()
        os.kill(self.pid, signal.SIGCONT)

    def join(self) -> None:
        """Wait until it has done its work."""
        status = self.workers.wait(self.pid)
        self.told()
        assert status == 0


class Workers:
    """Starts workers by forking a process in which Django is ready, so that each is cheap."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._numbers = folder, count()
        self._running: set[int] = set()
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.faults.worker"],
            cwd=ROOT,
            env={
                **os.environ,
                "DJANGO_SETTINGS_MODULE": "tests.faults.settings",
                "FAULTS_DATABASE": as_json(),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, kind: str, **order: Any) -> Worker:
        report = self.folder / f"report-{next(self._numbers)}"
        pid = self._ask({"kind": kind, "report": str(report), **order})
        self._running.add(pid)
        return Worker(self, pid, report)

    def wait(self, pid: int) -> int:
        """Wait until a worker has ended; return its exit status."""
        status = self._ask({"wait": pid})
        self._running.remove(pid)
        return status

    def _ask(self, order: dict[str, Any]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for pid in self._running:
            os.kill(pid, signal.SIGKILL)
        with self._process:
            self._process.communicate()
