"""Clusters and Django processes that use them, from the side of a test."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parent.parent.parent
STOP_SECONDS = 60

START = """
import json, sys, django
django.setup()
from django.db import connections
from tests.cluster.{module} import main
main(*map(json.loads, sys.argv[1:]))
connections.close_all()
"""


class ClusterError(RuntimeError):
    """A script or a process of a cluster broke off; the text is what it printed."""


@dataclass
class Cluster:
    """A cluster that runs; ``facts`` is what its script told."""

    process: subprocess.Popen[str]
    errors: IO[str]
    facts: dict[str, Any]

    def tell(self, command: str) -> None:
        """Give its script a command and wait until it is done; raises ``ClusterError``."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # there is no answer then
            self.process.stdin.write(f"{command}\n")
            self.process.stdin.flush()
        self.answer()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            raise ClusterError(self.errors.read())
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextlib.contextmanager
def running(script: str) -> Iterator[Cluster]:
    """Run a cluster by its script; afterwards no process and no file of it is left."""
    command = [sys.executable, "-m", f"tests.cluster.{script}"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, cwd=ROOT, stderr=errors, **pipes) as process,
    ):
        cluster = Cluster(process, errors, {})
        try:
            cluster.facts = cluster.answer()
            yield cluster
        finally:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if "folder" in cluster.facts:
                shutil.rmtree(cluster.facts["folder"], ignore_errors=True)


@dataclass
class Project:
    """The settings of a project that uses a cluster, and its processes."""

    settings: dict[str, Any]

    def run(self, module: str, *orders: Any) -> Any:
        """Run a module of this package to its end and return what it told, as JSON."""
        with self.started(module, *orders) as process:
            return process.told()[-1]

    @contextlib.contextmanager
    def started(self, module: str, *orders: Any) -> Iterator[DjangoProcess]:
        """Run a module of this package beside; it is killed when the block is left early."""
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.cluster.settings",
            "CLUSTER_SETTINGS": json.dumps(self.settings),
        }
        arguments = [json.dumps(order) for order in orders]
        with (
            tempfile.TemporaryFile("w+") as told,
            tempfile.TemporaryFile("w+") as errors,
            subprocess.Popen(
                [sys.executable, "-W", "error", "-c", START.format(module=module), *arguments],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=told,
                stderr=errors,
            ) as process,
        ):
            try:
                yield DjangoProcess(process, told, errors)
            finally:
                process.kill()


@dataclass
class DjangoProcess:
    """A process that tells what it does, a line of JSON each."""

    process: subprocess.Popen[bytes]
    output: IO[str]
    errors: IO[str]

    def so_far(self) -> list[Any]:
        """Return what it has told up to now."""
        # The file's place is shared with the process, which writes at it.
        with open(f"/proc/self/fd/{self.output.fileno()}") as output:
            lines = output.read().split("\n")[:-1]
        return [json.loads(line) for line in lines]

    def told(self) -> list[Any]:
        """Wait for its end and return all; raises ``ClusterError`` when it failed."""
        self.process.wait()
        self.check()
        return self.so_far()

    def check(self) -> None:
        """Raise ``ClusterError`` when it has ended by a failure."""
        if self.process.poll():
            self.errors.seek(0)
            raise ClusterError(self.errors.read())


def until_answered(writers: list[DjangoProcess], turns: int) -> None:
    """Wait until so many turns of ``writer`` processes are answered, some of which may be done."""
    while sum("text" in line for writer in writers for line in writer.so_far()) < turns:
        for writer in writers:
            writer.check()
        time.sleep(0.05)
