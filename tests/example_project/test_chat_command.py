"""The command that serves the chat, with a model beside it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.example_project.processes import ROOT, environment, manage

PATIENCE = 60


@pytest.mark.django_db
def test_without_anybody_who_could_sign_in_it_names_the_command_that_helps() -> None:
    with pytest.raises(CommandError, match="Nobody can sign in yet"):
        call_command("chat", model="stand-in")


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url) as response:
            return b"Sign in" in response.read()
    except urllib.error.URLError:
        return False


@pytest.mark.heavy
@pytest.mark.parametrize("server", [[], ["--asgi"]])
def test_it_serves_the_sign_in_page_until_it_is_interrupted(
    tmp_path: Path, server: list[str]
) -> None:
    database = tmp_path / "chat.sqlite3"
    assert manage(database, "demo").returncode == 0
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    process = subprocess.Popen(
        [sys.executable, "manage.py", "chat", "--model", "stand-in", "--port", port, *server],
        cwd=ROOT,
        env=environment(database),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # Who is started in the background by a shell ignores it, and so would its child.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    with process:
        try:
            until = time.monotonic() + PATIENCE
            while not answers(f"http://127.0.0.1:{port}/login/"):
                assert process.poll() is None
                assert time.monotonic() < until
                time.sleep(0.1)
        finally:
            os.killpg(process.pid, signal.SIGINT)
        assert process.stdout
        assert "Model: a stand-in." in process.stdout.read()
    assert process.returncode == 0
