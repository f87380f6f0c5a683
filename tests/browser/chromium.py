"""Debian's Chromium, and what its pages did that they should not have done."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import ConsoleMessage, Dialog, Page, Request

CHROMIUM = shutil.which("chromium")
ARGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


PATIENCE = 20_000
"""Milliseconds: the first answer of a server imports much, on a machine that may be busy."""


def expect(actual: Any) -> Any:
    """Return Playwright's assertions of a page or a locator, which wait."""
    from playwright.sync_api import expect

    expect.set_options(timeout=PATIENCE)
    return expect(actual)


class Watch:
    """What pages did that they should not have done; ``requests`` are all addresses asked for."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.requests: list[str] = []

    def over(self, page: Page) -> None:
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.faults.append(f"page error: {error}"))
        page.on("dialog", self._asked)
        page.on("request", self._requested)

    def forgive(self, pattern: str) -> None:
        """Take out the faults that match, of which there must be some."""
        left = [fault for fault in self.faults if not re.search(pattern, fault)]
        assert left != self.faults, f"nothing matches {pattern!r}: {self.faults}"
        self.faults = left

    def _said(self, message: ConsoleMessage) -> None:
        url = message.location["url"]
        if message.type in ("error", "warning") and not url.endswith("/favicon.ico"):
            self.faults.append(f"console {message.type}: {message.text} ({url})")

    def _asked(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _requested(self, request: Request) -> None:
        self.requests.append(request.url)
        if not request.url.startswith(("http://127.0.0.1:", "blob:", "data:")):
            self.faults.append(f"request: {request.url}")
