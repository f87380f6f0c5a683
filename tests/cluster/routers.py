"""Database routers of a project with read replicas, made of the one in the documentation."""

from __future__ import annotations

from itertools import cycle
from typing import Any

from tests.cluster.documented import documented

ReplicaRouter: Any = documented("ReplicaRouter", beside="class ReplicaRouter")


class TwoReplicas(ReplicaRouter):  # type: ignore[misc]
    """Read from another replica each time."""

    replicas = cycle(["replica", "second replica"])

    def db_for_read(self, model: Any, **hints: Any) -> str:
        return next(self.replicas)


class MissingReplica(ReplicaRouter):  # type: ignore[misc]
    """Read from a database that is not there."""

    def db_for_read(self, model: Any, **hints: Any) -> str:
        return "missing"
