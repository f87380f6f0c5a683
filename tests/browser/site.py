"""The example project as a real server on loopback, with a database file of its own."""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from tests.browser.seeding import PASSWORD, Seeder
from tests.example_project.processes import ROOT, environment

if TYPE_CHECKING:
    from playwright.sync_api import Page

PATIENCE = 30
SERVERS = {
    "asgi": ["-m", "uvicorn", "example_project.asgi:application", "--lifespan=off"],
    "wsgi": ["manage.py", "runserver", "--noreload", "--skip-checks"],
}
Server = Literal["asgi", "wsgi"]


class Site:
    """
    The server's process; ``url`` has no slash at its end.

    ``seed(name, ...)`` calls a function of ``tests.browser.seeding``, or of the
    ``module`` that is named, in a process of the example project.
    """

    def __init__(self, folder: Path, model_url: str, server: Server = "asgi") -> None:
        self.server = server
        self.log = folder / "server.log"
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = environment(
            folder / "site.sqlite3",
            DJANGO_SETTINGS_MODULE="tests.browser.settings",
            OPENAI_BASE_URL=model_url,
            OPENAI_API_KEY="unused",
            AGENT_MODEL="model",
        )
        self._process: subprocess.Popen[bytes] | None = None
        self.seed = Seeder(self.environment)
        self.seed("migrate")

    # The process.

    def start(self) -> None:
        """Start it, again on the same port and database where it was stopped."""
        address = (
            [f"--port={self.port}", "--log-level=warning"]
            if self.server == "asgi"
            else [f"127.0.0.1:{self.port}"]
        )
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *SERVERS[self.server], *address],
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + PATIENCE
        while not self._answers():
            assert self._process.poll() is None, self.log.read_text()
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.05)

    def stop(self) -> None:
        """Ask it to end, and wait until it has."""
        self._end("terminate")

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._end("kill")

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        self.stop()
        self.seed.close()

    def _end(self, how: str) -> None:
        process, self._process = self._process, None
        if process is not None:
            getattr(process, how)()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request("GET", "/static/none")
            return connection.getresponse().status < 500
        except ConnectionRefusedError:
            return False
        finally:
            connection.close()

    # In the browser.

    def user(self, page: Page, name: str, **options: Any) -> None:
        """Make a user (see ``seeding.user``) and sign them in."""
        self.seed("user", name, **options)
        self.login(page, name)

    def login(self, page: Page, name: str) -> None:
        """Sign a user in who is there, by the session's cookie, without a page."""
        value = self.seed("session", name)
        page.context.add_cookies([{"name": "sessionid", "value": value, "url": self.url}])

    def sign_in(self, page: Page, name: str, path: str = "/") -> None:
        """Sign a user in as a person does, on the page that asks for it."""
        page.goto(self.url + path)
        page.get_by_label("Username").fill(name)
        page.get_by_label("Password").fill(PASSWORD)
        page.keyboard.press("Enter")
        page.wait_for_url(lambda url: "login" not in url and "sign-in" not in urlsplit(url).path)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
