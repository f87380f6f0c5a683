"""What contestants are timed at: each module has a ``run(bench)`` that returns an ``Outcome``."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.bench import Bench
from benchmarks.results import Outcome
from benchmarks.works import (
    disk,
    image,
    imports,
    latest,
    page,
    streams,
    tokens,
    transcript,
    turn,
    window,
    workers,
)

WORKS: dict[str, Callable[[Bench], Outcome]] = {
    "disk": disk.run,
    "turn": turn.run,
    "window": window.run,
    "page": page.run,
    "transcript": transcript.run,
    "image": image.run,
    "workers": workers.run,
    "streams": streams.run,
    "tokens": tokens.run,
    "imports": imports.run,
    "latest": latest.run,
}
"""In the order in which they run: what seeds most comes last."""
