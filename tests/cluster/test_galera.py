"""A Galera cluster of three nodes, all of which are written to: nothing is lost or interleaved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.agents import WAYS
from tests.cluster import checker
from tests.cluster.clusters import Cluster, DjangoProcess, Project, running, until_answered
from tests.cluster.documented import documented
from tests.cluster.needs import needs_galera

pytestmark = needs_galera

CERTIFICATION_FAILED = 1213
ALL_NODES = (0, 1, 2)

Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def migrated() -> Iterator[Cluster]:
    with running("galera") as cluster:
        project(cluster, cluster.facts["ports"][0]).run("migrating")
        yield cluster


@pytest.fixture
def cluster(migrated: Cluster) -> Cluster:
    """Return the cluster with all of its nodes."""
    migrated.tell("heal")
    return migrated


def project(cluster: Cluster, port: int) -> Project:
    """Return a project that uses one node, set up as the documentation says."""
    database = {
        **documented("DATABASES", beside="wsrep_sync_wait")["default"],
        "NAME": cluster.facts["database"],
        "USER": "root",
        "HOST": "127.0.0.1",
        "PORT": port,
    }
    return Project({"DATABASES": {"default": database}})


def write(
    cluster: Cluster,
    name: str,
    ports: list[list[int]],
    *,
    turns: int,
    conversations: int,
    ways: tuple[str, ...] = WAYS,
    meanwhile: Callable[[list[DjangoProcess]], None] = lambda processes: None,
    **orders: Any,
) -> Lines:
    """Let a writer for each list of ports take turns, and return what all were told."""
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                project(cluster, own[0]).started(
                    "writer",
                    {
                        "name": f"{name}{number}",
                        "turns": turns,
                        "conversations": [f"{name}-{one}" for one in range(conversations)],
                        "way": ways[number % len(ways)],
                        "ports": own,
                        **orders,
                    },
                )
            )
            for number, own in enumerate(ports)
        ]
        meanwhile(processes)
        told = [line for process in processes for line in process.told()]
    assert count(told, "text") + count(told, "failed") == turns * len(ports)
    return told


def starting_at(cluster: Cluster, node: int) -> list[int]:
    """Return the ports of all nodes, this one's first."""
    ports = cluster.facts["ports"]
    return [*ports[node:], *ports[:node]]


def two_writers_a_node(cluster: Cluster) -> list[list[int]]:
    return [starting_at(cluster, node) for node in ALL_NODES * 2]


def count(told: Lines, what: str) -> int:
    return sum(what in line for line in told)


def retried(told: Lines) -> Counter[Any]:
    """Return how often the store passed over which error."""
    return Counter(line["retried"] for line in told if "retried" in line)


def assert_all_is_well(cluster: Cluster, told: Lines, nodes: tuple[int, ...] = ALL_NODES) -> None:
    """Assert that the nodes have the same rows, and these are what callers were told."""
    ports = [cluster.facts["ports"][node] for node in nodes]
    seen = project(cluster, ports[0]).run("reading", *ports)["servers"]
    assert len(seen) == len(nodes)
    assert all(other == seen[0] for other in seen)
    assert seen[0]["faults"] == []
    assert checker.faults(seen[0]["turns"], told) == []


@pytest.mark.parametrize("conversations", [1, 5])
def test_writers_on_all_nodes_take_turns(cluster: Cluster, conversations: int) -> None:
    told = write(
        cluster,
        f"together{conversations}",
        two_writers_a_node(cluster),
        turns=12,
        conversations=conversations,
    )
    assert count(told, "fault") == count(told, "failed") == 0
    assert_all_is_well(cluster, told)


def test_a_turn_may_go_from_node_to_node_between_its_steps_and_is_read_on_the_next(
    cluster: Cluster,
) -> None:
    told = write(
        cluster,
        "roaming",
        two_writers_a_node(cluster)[:4],
        turns=20,
        conversations=4,
        ways=("aprompt", "astream"),
        roam=True,
    )
    assert count(told, "fault") == count(told, "failed") == count(told, "stale") == 0
    assert count(told, "looked") == count(told, "text")
    assert_all_is_well(cluster, told)


@pytest.mark.parametrize(
    "before",
    ["INSERT INTO `agent_turn_journal`", "INSERT INTO `agent_conversation_messages`", "COMMIT"],
)
def test_a_transaction_that_fails_certification_is_tried_again(
    cluster: Cluster, before: str
) -> None:
    here, other, _ = cluster.facts["ports"]
    name = f"before {before.split()[-1]}"
    orders = {"name": name, "turns": 6, "conversations": [name], "way": "prompt", "ports": [here]}
    orders |= {"other": other, "before": before}
    with project(cluster, here).started("conflicting", orders) as process:
        told = process.told()
    assert count(told, "interfered") >= 4
    assert retried(told)[CERTIFICATION_FAILED] >= 4
    assert count(told, "text") == 6
    assert count(told, "fault") == 0
    assert_all_is_well(cluster, told)


def test_appends_at_once_on_all_nodes_all_come_through(cluster: Cluster) -> None:
    told = write(
        cluster,
        "appending",
        two_writers_a_node(cluster)[:3],
        turns=200,  # on a busy machine few of them meet
        conversations=1,
        ways=("append",),
    )
    assert retried(told)[CERTIFICATION_FAILED] > 0
    assert count(told, "fault") == 0
    assert_all_is_well(cluster, told)


def kill_the_third_node(cluster: Cluster, turns: int) -> Callable[[list[DjangoProcess]], None]:
    """Return what kills it once so many turns have been answered."""

    def kill(processes: list[DjangoProcess]) -> None:
        until_answered(processes, turns)
        cluster.tell("kill 3")

    return kill


def test_a_node_that_is_killed_takes_no_acknowledged_turn_along(cluster: Cluster) -> None:
    told = write(
        cluster,
        "killing",
        two_writers_a_node(cluster),
        turns=20,
        conversations=4,
        meanwhile=kill_the_third_node(cluster, 30),
    )
    assert count(told, "fault") > 0  # the writers of the dead node went to another
    assert_all_is_well(cluster, told, nodes=(0, 1))
    cluster.tell("heal")
    assert_all_is_well(cluster, told)


def test_behind_a_proxy_nobody_notices_that_a_node_is_killed(cluster: Cluster) -> None:
    if cluster.facts["proxy"] is None:
        pytest.skip("needs haproxy (apt)")
    told = write(
        cluster,
        "proxied",
        [[cluster.facts["proxy"]]] * 6,
        turns=20,
        conversations=4,
        ways=("prompt", "stream"),  # each keeps a connection, so two are to the dead node
        meanwhile=kill_the_third_node(cluster, 30),
    )
    assert sum(retried(told).values()) > 0
    assert count(told, "fault") == count(told, "failed") == 0
    assert_all_is_well(cluster, told, nodes=(0, 1))
