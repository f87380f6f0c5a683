"""PostgreSQL with a streaming replica, a pooler before the primary, and a primary that dies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.agents import WAYS
from tests.cluster import checker
from tests.cluster.clusters import Cluster, DjangoProcess, Project, running, until_answered
from tests.cluster.documented import documented
from tests.cluster.needs import needs_streaming

pytestmark = needs_streaming

READ_FROM_THE_REPLICA = {
    "a page",
    "a page in a task",
    "a list",
    "a list of a model's that has no content type yet",
    "a stale replica",
}


def database(cluster: Cluster, server: str, **settings: Any) -> dict[str, Any]:
    """Return the settings of a server, that of PgBouncer as the documentation says."""
    pooled = documented("DATABASES", beside="6432")["default"] if server == "pgbouncer" else {}
    return {
        **pooled,
        "ENGINE": "django.db.backends.postgresql",
        "NAME": cluster.facts["database"],
        "USER": "postgres",
        "HOST": "127.0.0.1",
        "PORT": cluster.facts["ports"][server],
        **settings,
    }


def project(cluster: Cluster, server: str = "primary", **settings: Any) -> Project:
    """Return a project that writes to one server and reads from the replica, when it may."""
    databases = {"default": database(cluster, server, **settings)}
    databases |= {alias: database(cluster, "replica") for alias in ("replica", "second replica")}
    return Project(
        {"DATABASES": databases, "DATABASE_ROUTERS": ["tests.cluster.routers.TwoReplicas"]}
    )


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running("streaming") as cluster:
        project(cluster).run("migrating")
        yield cluster


@pytest.fixture(scope="module", params=["primary", "pgbouncer"])
def seen(cluster: Cluster, request: pytest.FixtureRequest) -> Any:
    if request.param not in cluster.facts["ports"]:
        pytest.skip("needs pgbouncer (apt)")
    return project(cluster, request.param).run("replicated")


def test_only_pages_and_lists_are_read_from_the_replica(seen: Any) -> None:
    assert set(seen["noted"]) == READ_FROM_THE_REPLICA


def test_nothing_but_reads_is_asked_of_the_replica(seen: Any) -> None:
    sent = [sql for statements in seen["noted"].values() for sql in statements]
    assert sent
    assert [sql for sql in sent if not sql.startswith("SELECT")] == []


def test_what_stands_in_the_way_of_a_turn_is_read_where_it_is_written(seen: Any) -> None:
    assert seen["obstacles"] == {
        "a foreign one": "ConversationDoesNotExist",
        "a busy one": "ConversationBusy",
        "after a killed worker": "after Killed",
        "its key": "TurnFailed",
    }


def test_turns_go_on_beside_a_replica_that_stands_still(seen: Any) -> None:
    before = ["And then?", *(f"Still {way}" for way in WAYS[:-1])]
    assert seen["stale"]["answers"] == [f"after {prompt}" for prompt in before]
    assert seen["stale"]["the last one goes on"] == "after Mine?"
    assert seen["stale"]["pages are stale"]


def test_what_waits_for_a_person_is_read_and_settled_where_it_is_written(seen: Any) -> None:
    each = [["pay"], "ApprovalsPending", [], "paid"]
    assert seen["stale"]["what waited for a person"] == [each] * len(WAYS)


def test_a_new_conversation_is_its_owners_before_the_replica_has_it(seen: Any) -> None:
    assert seen["stale"]["the new one is the user's"]
    assert seen["stale"]["the new one can be got"]
    assert seen["stale"]["the new one is owned"] == "after A new one"


def test_a_replica_that_goes_on_shows_what_it_missed(seen: Any) -> None:
    assert seen["stale"]["the page then"] == seen["stale"]["answers"][::-1]
    assert seen["stale"]["the list then"]


def test_no_connection_to_a_replica_is_held_after_an_async_page(seen: Any) -> None:
    assert seen["pages"]["left open"] == []


def test_a_list_asks_no_replica_to_write_a_content_type(seen: Any) -> None:
    assert seen["pages"]["list of a new model's"] == []


def test_many_processes_take_turns_over_two_connections_that_pgbouncer_shares(
    cluster: Cluster,
) -> None:
    if "pgbouncer" not in cluster.facts["ports"]:
        pytest.skip("needs pgbouncer (apt)")
    pooled = project(cluster, "pgbouncer")
    told = write(pooled, "pooled", [cluster.facts["ports"]["pgbouncer"]], turns=20)
    assert not any("fault" in line or "retried" in line for line in told)
    assert_all_is_well(cluster, "primary", told)


def test_a_synchronous_replica_that_takes_over_has_every_acknowledged_turn() -> None:
    with running("streaming") as cluster:
        project(cluster).run("migrating")
        cluster.tell("synchronous")
        ports = cluster.facts["ports"]
        options = documented("DATABASES", beside="target_session_attrs")["default"]["OPTIONS"]
        servers = database(cluster, "primary", HOST="127.0.0.1,127.0.0.1", OPTIONS=options)
        whichever_writes = Project({"DATABASES": {"default": servers}})

        def fail_over(processes: list[DjangoProcess]) -> None:
            until_answered(processes, 30)
            cluster.tell("kill primary")
            cluster.tell("promote")

        both = f"{ports['primary']},{ports['replica']}"
        told = write(whichever_writes, "failing over", [both], turns=20, meanwhile=fail_over)
        assert any("retried" in line for line in told)
        assert_all_is_well(cluster, "replica", told)


def write(
    project: Project,
    name: str,
    ports: list[Any],
    *,
    turns: int,
    meanwhile: Callable[[list[DjangoProcess]], None] = lambda processes: None,
) -> list[dict[str, Any]]:
    """Let six writers take turns in four conversations, and return what all were told."""
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                project.started(
                    "writer",
                    {
                        "name": f"{name} {number}",
                        "turns": turns,
                        "conversations": [f"{name} {one}" for one in range(4)],
                        "way": WAYS[number % 4],
                        "ports": ports,
                    },
                )
            )
            for number in range(6)
        ]
        meanwhile(processes)
        told = [line for process in processes for line in process.told()]
    assert sum("text" in line or "failed" in line for line in told) == 6 * turns
    return told


def assert_all_is_well(cluster: Cluster, server: str, told: list[dict[str, Any]]) -> None:
    """Assert that what is in a server is what callers were told."""
    here = Project({"DATABASES": {"default": database(cluster, server)}})
    (seen,) = here.run("reading", cluster.facts["ports"][server])["servers"]
    assert seen["faults"] == []
    assert checker.faults(seen["turns"], told) == []
