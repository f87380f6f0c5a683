"""Marks of tests that need a cluster: why they are not run where they are not."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.cluster import galera, streaming
from tests.settings import TEST_DATABASE


def _needs(
    database: str, packages: str, driver: str, missing: list[str]
) -> list[pytest.MarkDecorator]:
    lacking = missing if find_spec(driver) else [*missing, driver]
    return [
        pytest.mark.heavy,
        pytest.mark.skipif(database != TEST_DATABASE, reason=f"needs TEST_DATABASE={database}"),
        pytest.mark.skipif(
            bool(lacking), reason=f"needs {packages} (apt), and {', '.join(lacking)} is missing"
        ),
    ]


needs_galera = _needs("mariadb", "mariadb-server, galera-4 and rsync", "MySQLdb", galera.missing())
needs_streaming = _needs("postgresql", "postgresql", "psycopg", streaming.missing())
