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

from tests.faults.databases import place, until

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


class Process:
    """A process of ``tests.faults.worker``, which forks workers or, ``alone``, is one."""

    def __init__(self, *arguments: str) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.faults.worker", *arguments],
            cwd=ROOT,
            env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, order: dict[str, Any]) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write(json.dumps(order) + "\n")
        self.popen.stdin.flush()

    def answer(self) -> str:
        assert self.popen.stdout is not None
        return self.popen.stdout.readline().strip()

    def wait(self) -> int:
        with self.popen:
            return self.popen.wait()

    def kill(self) -> None:
        self.popen.kill()
        self.wait()


class Workers:
    """
    Starts workers: mostly by forking a process in which Django is ready, so that each is cheap.

    ``start_alone()`` gives each an interpreter of its own, as servers do.
    """

    def __init__(self, folder: Path, forking: Process) -> None:
        self.folder, self._numbers = folder, count()
        self._forking = forking
        self._forked: set[int] = set()
        self._alone: dict[int, Process] = {}

    def start(self, kind: str, **order: Any) -> Worker:
        report = self._report()
        self._forking.tell(self._order(kind, report, order))
        pid = int(self._forking.answer())
        self._forked.add(pid)
        return Worker(self, pid, report)

    def start_alone(self, kind: str, orders: list[dict[str, Any]]) -> list[Worker]:
        """Start an interpreter for each order; all begin once the last one is ready."""
        processes = [Process("alone") for _ in orders]
        self._alone |= {process.popen.pid: process for process in processes}
        assert all(process.answer() == "ready" for process in processes)
        begun = []
        for process, order in zip(processes, orders, strict=True):
            report = self._report()
            process.tell(self._order(kind, report, order))
            begun.append(Worker(self, process.popen.pid, report))
        return begun

    def wait(self, pid: int) -> int:
        """Wait until a worker has ended; return its exit status."""
        if pid in self._alone:
            return self._alone.pop(pid).wait()
        self._forking.tell({"wait": pid})
        self._forked.remove(pid)
        return int(self._forking.answer())

    def _report(self) -> Path:
        return self.folder / f"report-{next(self._numbers)}"

    def _order(self, kind: str, report: Path, order: dict[str, Any]) -> dict[str, Any]:
        return {"kind": kind, "report": str(report), "database": place(), **order}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for pid in [*self._forked]:
            os.kill(pid, signal.SIGKILL)
            self.wait(pid)
        for process in self._alone.values():
            process.kill()
