"""The points between which a transaction can be hit: around each statement and each commit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

STATEMENT = re.compile(r"\W*(SELECT|INSERT|UPDATE|DELETE)\b.*?\b(agent_\w+)", re.DOTALL)


@contextmanager
def boundaries(at: Callable[[str], None]) -> Iterator[None]:
    """Call ``at`` with a name before and after each statement and commit of this connection."""

    def perform(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        match = STATEMENT.match(sql)
        if match is None:
            return execute(sql, params, many, context)
        name = f"{match[1]} {match[2]}"
        at(f"before {name}")
        result = execute(sql, params, many, context)
        at(f"after {name}")
        return result

    def commit() -> None:
        at("before COMMIT")
        usual()
        at("after COMMIT")

    usual = connection._commit  # type: ignore[attr-defined]
    connection._commit = commit  # type: ignore[attr-defined]
    try:
        with connection.execute_wrapper(perform):
            yield
    finally:
        del connection._commit  # type: ignore[attr-defined]
