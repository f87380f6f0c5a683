"""Run the demo on each of the stores that the arguments name; print how each run ended as JSON."""

from __future__ import annotations

import io
import json
import os
import sys

import django


def outcome(name: str) -> str:
    from django.core.management import CommandError, call_command
    from django.test import override_settings

    from agent_memory.stores import overriding
    from tests.example_project import sabotaged_stores

    quick = override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"])
    with quick, overriding(getattr(sabotaged_stores, name)()):
        try:
            call_command("demo", stdout=io.StringIO())
        except CommandError as error:
            return str(error)
    return "held"


if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "example_project.settings"
    django.setup()
    json.dump({name: outcome(name) for name in sys.argv[1:]}, sys.stdout)
