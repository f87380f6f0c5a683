"""The Django project that the Django contestants share."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import django
from django.conf import settings
from django.core.management import call_command

from benchmarks.databases import Database

PEERS = ("agentic_django", "django_ai_assistant")
USERS = 1200


def configure(database: Database, **changes: Any) -> None:
    """Set Django up on a database, once a process; ``changes`` are to its entry of ``DATABASES``."""
    if settings.configured:
        return
    settings.configure(
        DATABASES={"default": {**database.django(), **changes}},
        INSTALLED_APPS=[
            "django.contrib.contenttypes",
            "django.contrib.auth",
            "agent_memory",
            "benchmarks",
            *(name for name in PEERS if database.vendor != "mariadb" and find_spec(name)),
        ],
        AGENT_MEMORY={"MODEL": "bench", "GENERATE_TITLES": False},
        AGENTIC_DJANGO_AGENT_REGISTRY="builtins.dict",
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        SECRET_KEY="benchmarks",
        USE_TZ=True,
    )
    django.setup()


def migrate() -> None:
    """Make the tables of all Django contestants, and the users that own conversations."""
    from django.contrib.auth.models import User

    call_command("migrate", run_syncdb=True, verbosity=0)
    User.objects.bulk_create(User(pk=pk, username=f"user-{pk}") for pk in range(1, USERS))
