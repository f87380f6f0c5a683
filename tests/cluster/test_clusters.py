"""A cluster leaves no process and no file behind, however its use ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.clusters import ROOT, ClusterError, running
from tests.cluster.needs import needs_galera, needs_streaming

SECONDS = 20

quick = pytest.param("streaming", marks=needs_streaming)
slow = pytest.param("galera", marks=needs_galera)
in_both = pytest.mark.parametrize("script", [slow, quick])
in_one = pytest.mark.parametrize("script", [quick])


def processes_of(folder: str) -> list[str]:
    """Return the command lines that name a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if folder in command:
            found.append(command)
    return found


def assert_soon(true: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < until
        time.sleep(0.1)


@in_both
def test_a_test_that_fails_leaves_nothing(script: str) -> None:
    folders = []

    def fail() -> None:
        with running(script) as cluster:
            folders.append(cluster.facts["folder"])
            assert processes_of(folders[0])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    (folder,) = folders
    assert processes_of(folder) == []
    assert not Path(folder).exists()


@in_both
def test_a_script_that_is_killed_leaves_nothing(script: str) -> None:
    with running(script) as cluster:
        folder = cluster.facts["folder"]
        cluster.process.kill()
        with pytest.raises(ClusterError):
            cluster.tell("kill 1")
    assert_soon(lambda: processes_of(folder) == [])
    assert not Path(folder).exists()


RUN = """
from tests.cluster.clusters import running
with running({script!r}) as cluster:
    print(cluster.facts["folder"], flush=True)
    input()
"""


@in_one
def test_a_test_run_that_is_killed_leaves_nothing(script: str) -> None:
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", RUN.format(script=script)]
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as run:
        assert run.stdout is not None
        folder = run.stdout.readline().strip()
        assert processes_of(folder)
        run.kill()
    assert_soon(lambda: processes_of(folder) == [])
    assert_soon(lambda: not Path(folder).exists())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@in_one
def test_a_script_that_is_told_to_end_leaves_nothing(script: str, number: signal.Signals) -> None:
    with running(script) as cluster:
        folder = cluster.facts["folder"]
        cluster.process.send_signal(number)
        cluster.process.wait(SECONDS)
        assert processes_of(folder) == []
        assert not Path(folder).exists()
