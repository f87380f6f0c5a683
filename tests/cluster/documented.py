"""What the page on deploying shows, so that it is what the tests use."""

from __future__ import annotations

from typing import Any

from tests.cluster.clusters import ROOT
from tests.pages import Page


def documented(name: str, *, beside: str) -> Any:
    """Return what the one block of the page that speaks of ``beside`` calls by a name."""
    page = Page(ROOT / "docs" / "how-to" / "deploy.md")
    (source,) = [block.source for block in page.blocks if beside in block.source]
    names: dict[str, Any] = {}
    exec(source, names)
    return names[name]
