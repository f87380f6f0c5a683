"""Accessibility, as axe-core judges a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.example_project.processes import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Page

SCRIPT = ROOT / "build/browser/node_modules/axe-core/axe.min.js"
INSTALL = "npm install --no-package-lock --prefix build/browser axe-core@4"


def violations(page: Page) -> list[str]:
    """Return what axe finds serious or critical on a page: the rule, and the elements."""
    # Evaluated by the browser's tools, which no content security policy of the page holds back.
    page.evaluate(SCRIPT.read_text())
    found: list[dict[str, Any]] = page.evaluate(
        "() => axe.run().then(({violations}) => violations)"
    )
    return [
        f"{fault['id']}: {', '.join(node['html'] for node in fault['nodes'])}"
        for fault in found
        if fault["impact"] in ("serious", "critical")
    ]
