"""Passing faults of a database: told from lasting ones, and tried again on a fresh connection."""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Callable
from typing import Any, TypeVar

from django.db import DatabaseError, InterfaceError, connections

logger = logging.getLogger("agent_memory")

R = TypeVar("R")

DELAYS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds to wait before each further try, about three in all."""

SQLITE_CODES = {5, 6}  # busy, locked
SQLSTATES = {
    "25006",
    "25P03",
    "40001",
    "40P01",
    "53300",
    "55P03",
    "57P01",
    "57P02",
    "57P03",
    "57P05",
}
REFUSED = re.compile(
    "FATAL: .*(authentication failed|does not exist|no password|pg_hba.conf|not permitted)"
)
"""What PostgreSQL says to who may never connect: there it gives no SQLSTATE, at least in English."""

MYSQL_CODES = {0, 1020, 1040, 1047, 1053, 1205, 1213, 1927, 2002, 2003, 2006, 2013, 2055, 4031}
"""Lost or refused connections, lock time-outs, deadlocks, and what Galera fails to certify."""


def is_passing(error: Exception) -> bool:
    """Tell whether the same work may succeed on a fresh connection."""
    cause: Any = error.__cause__ or error
    if hasattr(cause, "sqlite_errorcode"):
        return cause.sqlite_errorcode & 0xFF in SQLITE_CODES
    if "sqlite3" in type(cause).__module__:
        return False
    if type(cause).__module__.startswith("MySQLdb"):
        return bool(cause.args) and cause.args[0] in MYSQL_CODES
    sqlstate = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
    if sqlstate is None:  # the connection is gone, or was never made
        lost = type(cause).__name__ in ("OperationalError", "InterfaceError")
        return lost and not REFUSED.search(str(cause))
    return sqlstate in SQLSTATES or sqlstate.startswith("08")


def retried(using: str, work: Callable[[], R]) -> R:
    """
    Do work that is whole or nothing, again after a passing fault.

    It must find by itself that an earlier try was committed unseen. Inside a
    transaction of the caller's it is tried once: only the caller can repeat it.
    """
    connection = connections[using]
    if connection.in_atomic_block:
        return work()
    for delay in DELAYS:
        try:
            return work()
        except (DatabaseError, InterfaceError) as error:
            if not is_passing(error):
                raise
            logger.warning("A passing fault of the database: %s. Trying again.", error)
            connection.close()
        time.sleep(delay * random.uniform(0.5, 1))  # noqa: S311  no secret
    return work()
