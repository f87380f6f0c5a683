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
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]


def configure(database: Database, **changes: Any) -> None:
    """Set Django up on a database, once a process; ``changes`` are to its entry of ``DATABASES``."""
    if settings.configured:
        return
    settings.configure(
        DATABASES={"default": {**database.django(), **changes}},
        INSTALLED_APPS=[
            "django.contrib.contenttypes",
            "django.contrib.auth",
            "django.contrib.admin",
            "django.contrib.messages",
            "django.contrib.sessions",
            "agent_memory",
            "benchmarks",
            *(name for name in PEERS if database.vendor != "mariadb" and find_spec(name)),
        ],
        AGENT_MEMORY={"MODEL": "bench", "GENERATE_TITLES": False},
        AGENTIC_DJANGO_AGENT_REGISTRY="builtins.dict",
        ALLOWED_HOSTS=["testserver"],
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware",
        ],
        ROOT_URLCONF="benchmarks.urls",
        SECRET_KEY="benchmarks",
        SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies",
        STATIC_URL="static/",
        TEMPLATES=TEMPLATES,
        USE_TZ=True,
    )
    django.setup()


def migrate() -> None:
    """Make the tables of all Django contestants, and the users that own conversations."""
    from django.contrib.auth.models import User

    call_command("migrate", run_syncdb=True, verbosity=0)
    User.objects.bulk_create(User(pk=pk, username=f"user-{pk}") for pk in range(1, USERS))
