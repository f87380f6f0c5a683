"""``uv run --group benchmarks python -m benchmarks``: time all contestants on one database."""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
import time
from pathlib import Path

from benchmarks import bench, huge
from benchmarks.databases import DATABASES, Database
from benchmarks.report import Report
from benchmarks.results import Outcome
from benchmarks.works import WORKS

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/performance.md"
SIZES, QUICK_SIZES = (100, 1_000, 10_000, 100_000), (100, 400)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--database", choices=DATABASES, default="sqlite")
    parser.add_argument(
        "--peers", default="", help="parts of the names of those to compare with; 'none' for none"
    )
    parser.add_argument("--sizes", default="", help="messages of a conversation, by commas")
    parser.add_argument("--only", choices=WORKS, nargs="+", default=[*WORKS], metavar="WORK")
    parser.add_argument("--quick", action="store_true", help="see that it works; under a minute")
    parser.add_argument(
        "--huge",
        type=int,
        nargs="?",
        const=huge.CONVERSATIONS,
        metavar="CONVERSATIONS",
        help="only this: the same queries among ten messages each of so many (PostgreSQL)",
    )
    parser.add_argument("--output", type=Path, default=ROOT / "build/benchmarks")
    parser.add_argument(
        "--publish", action="store_true", help=f"put the results into {PAGE.relative_to(ROOT)}"
    )
    return parser.parse_args()


def main() -> None:
    options = arguments()
    logging.basicConfig(level=logging.WARNING, format="%(relativeCreated)6d ms  %(message)s")
    logging.getLogger("benchmarks").setLevel(logging.INFO)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        database = DATABASES[options.database](Path(folder))
        database.create()
        try:
            outcomes, left, server = run(database, options)
        finally:
            database.drop()
    report = Report(
        database=f"{options.database}-huge" if options.huge else options.database,
        server=server,
        outcomes=outcomes,
        skipped=left,
        quick=options.quick,
        cpus=os.cpu_count() or 1,
        seconds=time.monotonic() - begun,
    )
    report.write(options.output)
    if options.publish:
        report.publish(PAGE)
    print(report.markdown("."))


def run(
    database: Database, options: argparse.Namespace
) -> tuple[dict[str, Outcome], dict[str, str], str]:
    """Return what each work found, why contestants are missing, and what the server is."""
    sizes = tuple(int(size) for size in options.sizes.split(",") if size)
    wanted = [name for name in options.peers.split(",") if name]
    contestants, left = bench.opened(database, wanted)
    sizes = sizes or (QUICK_SIZES if options.quick else SIZES)
    there = bench.Bench(database, contestants, sizes, options.quick, left)
    works = {"huge": lambda _: huge.run(there, options.huge)} if options.huge else WORKS
    outcomes = {}
    try:
        for name, work in works.items():
            if options.huge or name in options.only:
                bench.logger.info("== %s", name)
                try:
                    outcomes[name] = work(there)
                except Exception as error:  # the works before it were long, and are to be told
                    bench.logger.exception("%s failed", name)
                    left[f"the work {name!r}"] = f"failed with {type(error).__name__}"
        return outcomes, left, database.version()
    finally:
        for each in contestants:
            each.close()


if __name__ == "__main__":
    main()
