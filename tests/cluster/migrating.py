"""Make the tables in the database of a cluster."""

from __future__ import annotations

from django.core.management import call_command

from tests.cluster.telling import tell


def main() -> None:
    call_command("migrate", verbosity=0, run_syncdb=True)
    tell(migrated=True)
