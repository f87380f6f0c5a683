"""
A ``writer`` whose rows another node changes first, in the middle of its transactions.

Beside a writer's orders: ``other``, the port of that node, and ``before``, the
beginning of the statement that it is faster than; ``COMMIT`` is one. Each
second such statement is left alone, which is the one tried again.
"""

from __future__ import annotations

from itertools import cycle
from typing import Any

import MySQLdb
from django.db import connection

from tests.cluster.telling import tell, tell_of_retries
from tests.cluster.writer import Work


def interfere(orders: dict[str, Any]) -> None:
    before, first = orders["before"], cycle([True, False])
    other = MySQLdb.connect(
        host="127.0.0.1",
        port=orders["other"],
        user="root",
        database=connection.settings_dict["NAME"],
        autocommit=True,
        init_command="SET SESSION wsrep_sync_wait = 7",
    )

    def be_faster(statement: str) -> None:
        if statement.startswith(before) and next(first):
            with other.cursor() as cursor:
                cursor.execute("UPDATE agent_conversations SET metadata = CONCAT(metadata, ' ')")
                tell(interfered=cursor.rowcount)

    def executed(execute: Any, statement: str, *rest: Any) -> Any:
        be_faster(statement)
        return execute(statement, *rest)

    wrapper: Any = connection
    commit = wrapper._commit

    def committed() -> Any:
        be_faster("COMMIT")
        return commit()

    wrapper._commit = committed
    with connection.execute_wrapper(executed):
        Work(orders).run()
    other.close()


def main(orders: dict[str, Any]) -> None:
    tell_of_retries()
    interfere(orders)
