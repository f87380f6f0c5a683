"""The benchmark works: its rounds, what it finds of lost turns, its report, and each work of it."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.bench import Bench
from benchmarks.contestants import ALL
from benchmarks.contestants.base import Contestant
from benchmarks.databases import DATABASES, SQLite
from benchmarks.report import Report
from benchmarks.results import FLOOR, OURS, Goal, Outcome, Table
from benchmarks.timing import Effort, Entry, race
from benchmarks.turns import MESSAGES, Turn, tags
from benchmarks.works import WORKS
from benchmarks.works.workers import compare
from tests.settings import TEST_DATABASE

ROOT = Path(__file__).parent.parent
LENGTHS = {"100": {FLOOR: 0.001, OURS: 0.002, "peer": 0.003}, "1,000": {FLOOR: 0.001, OURS: 0.002}}


def outcome() -> Outcome:
    table = Table("A turn <of ours>", "s", LENGTHS, plot="turn")
    return Outcome([table], [*Goal.ahead("Turn", LENGTHS["100"], {"peer"})])


def report(**changes: object) -> Report:
    facts = {
        "database": "sqlite",
        "server": "SQLite",
        "outcomes": {"turn": outcome()},
        "skipped": {"somebody": "is not installed"},
        "quick": True,
        "cpus": 2,
        "seconds": 1.0,
    }
    return Report(**{**facts, **changes})  # type: ignore[arg-type]  the facts are of mixed types


# Rounds.


def test_all_take_part_in_every_round_after_a_warm_up():
    ran: list[str] = []
    entries = {name: Entry(ran.append, lambda name=name: name) for name in "abc"}
    found = race(entries, Effort(rounds=5, seconds=60, warmup=2))
    assert set(found) == set("abc")
    rounds = [ran[number : number + 3] for number in range(0, len(ran), 3)]
    assert [sorted(each) for each in rounds] == [["a", "b", "c"]] * 7


@pytest.mark.heavy
def test_who_has_used_its_time_sits_the_rest_out_and_is_told_all_the_same():
    ran: list[str] = []
    entries = {"slow": Entry(ran.append, lambda: "slow")}
    found = race(entries, Effort(rounds=5, seconds=0))
    assert ran == ["slow"]
    assert found["slow"] > 0


# What is compared.


def test_each_message_of_a_turn_can_be_told_whatever_its_shape():
    wanted = [("a-1", number) for number in range(MESSAGES)]
    assert tags(Turn("a-1").as_plain()) == wanted
    assert tags(Turn("a-1", pictured=True).as_items()) == wanted


@pytest.mark.parametrize(
    ("order", "faults"),
    [
        ("a0 a1 a2 a3 b0 b1 b2 b3", (0, 0)),
        ("a0 b0 a1 a2 a3 b1 b2 b3", (0, 2)),
        ("a0 a1 a2 a3 b0 b1 b2", (1, 0)),
        ("b0 b1 b2 b3", (1, 0)),
    ],
    ids=["right", "interleaved", "torn", "lost"],
)
def test_what_is_lost_or_interleaved_is_found(order, faults):
    found = [(each[0], int(each[1])) for each in order.split()]
    assert compare(found, ["a", "b"]) == faults


def test_a_goal_that_is_missed_is_told_as_missed():
    (ahead,) = Goal.ahead("Turn", {OURS: 3.0, "peer": 2.0, "recipe": 1.0}, {"peer"})
    assert (ahead.met, ahead.measured) == (False, "1.50 times peer")
    assert not Goal.at_most("Turn", 2.6, 2.5).met
    assert not Goal.at_least("Turns", 0.7, 0.8).met
    assert "**missed**" in report(outcomes={"turn": Outcome(goals=[ahead])}).markdown("images")


@pytest.mark.parametrize("kind", ALL)
def test_who_cannot_take_part_tells_why(kind, tmp_path):
    absent = type(kind.__name__, (kind,), {"needs": ("no_such_module",)})
    assert absent.obstacle(SQLite(tmp_path))
    others = set(DATABASES) - {*kind.databases}
    for name in others:
        assert kind.obstacle(DATABASES[name](tmp_path)) == f"does not know {name}"


class Forgetful(Contestant):
    """Stores nothing and says nothing of it."""

    name = "forgetful"

    def seed(self, conversation: str, count: int) -> None:
        pass

    def window(self, conversation: str, count: int = 10) -> list[str]:
        return []


def test_a_package_that_does_not_give_back_what_was_stored_is_left_out(tmp_path):
    taking_part: list[Contestant] = [Forgetful(SQLite(tmp_path))]
    bench = Bench(SQLite(tmp_path), taking_part, sizes=(100,))
    bench.seed(taking_part, "a", 100)
    assert taking_part == []
    assert bench.left == {"forgetful": "fails with AssertionError at 100 messages"}


def test_that_is_an_error_where_it_is_ours(tmp_path, monkeypatch):
    monkeypatch.setattr(Forgetful, "kind", "ours")
    taking_part: list[Contestant] = [Forgetful(SQLite(tmp_path))]
    with pytest.raises(AssertionError, match="forgetful"):
        Bench(SQLite(tmp_path), taking_part, sizes=(100,)).seed(taking_part, "a", 100)


# What comes out.


def test_a_report_is_written_as_data_as_a_page_and_as_plots(tmp_path):
    report().write(tmp_path)
    data = json.loads((tmp_path / "sqlite.json").read_text())
    assert data["works"]["turn"]["goals"][0]["met"] is True
    page = (tmp_path / "sqlite.md").read_text()
    assert "| **agent_memory** | 2.00 ms (2.00) | 2.00 ms (2.00) |" in page
    assert "| peer | 3.00 ms (3.00) | - |" in page
    assert "Missing: somebody, which is not installed." in page
    plot = ElementTree.parse(tmp_path / "performance-sqlite-turn.svg")
    assert OURS in {element.text for element in plot.iter("{http://www.w3.org/2000/svg}text")}


def test_publishing_replaces_what_stands_between_two_comments_of_the_page(tmp_path):
    page = tmp_path / "performance.md"
    page.write_text("Before\n<!-- results: sqlite -->\nold\n<!-- end: sqlite -->\nAfter\n")
    report().publish(page)
    report().publish(page)
    text = page.read_text()
    assert text.startswith("Before\n<!-- results: sqlite -->\n\n")
    assert text.endswith("\n<!-- end: sqlite -->\nAfter\n")
    assert "old" not in text
    assert text.count("A turn <of ours>") == 2, "the table and its plot, once"
    assert (tmp_path / "images/performance-sqlite-turn.svg").exists()
    with pytest.raises(LookupError, match="postgresql"):
        report(database="postgresql").publish(page)


@pytest.mark.parametrize("database", [*DATABASES, "postgresql-huge"])
def test_the_page_has_a_place_for_the_results_of_each_database(database):
    page = (ROOT / "docs/performance.md").read_text()
    assert f"<!-- results: {database} -->" in page
    assert f"<!-- end: {database} -->" in page


# The whole of it.


def benchmark(folder: Path, *options: str) -> dict[str, object]:
    """Run the command as a user does, quickly and without peers; return its data."""
    command = ["-m", "benchmarks", "--quick", "--peers", "none", "--database", TEST_DATABASE]
    subprocess.run(
        [sys.executable, *command, "--output", folder, *options], cwd=ROOT, check=True, timeout=300
    )
    (written,) = folder.glob("*.json")
    works: dict[str, object] = json.loads(written.read_text())["works"]
    return works


@pytest.mark.heavy
@pytest.mark.django_db
@pytest.mark.skipif(
    TEST_DATABASE == "postgresql" and not find_spec("psycopg_pool"),
    reason="needs psycopg[pool]: --group pool",
)
def test_each_work_times_us_and_the_floors(tmp_path):
    works = benchmark(tmp_path, "--sizes", "40,100")
    assert [*works] == [*WORKS]
    for name, found in works.items():
        columns = [column for table in found["tables"] for column in table["columns"].values()]
        assert columns, name
        assert all(OURS in column for column in columns), name
    assert len([*tmp_path.glob("*.svg")]) == 3


@pytest.mark.heavy
@pytest.mark.django_db
@pytest.mark.skipif(TEST_DATABASE != "postgresql", reason="PostgreSQL alone is seeded by COPY")
def test_the_huge_run_asks_the_same_queries_of_few_and_of_many(tmp_path):
    works = benchmark(tmp_path, "--huge", "100")
    ((few, all_of_them),) = (table["columns"].values() for table in works["huge"]["tables"])
    assert few.keys() == all_of_them.keys()
    assert "whole turn" in few
