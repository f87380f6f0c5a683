"""
What is in the database before a page is opened: written by a process of the example project.

``Site.seed()`` calls a function of this module, or of the module that it names,
there: arguments and result go as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from tests.example_project.processes import ROOT

PASSWORD = "correct horse"


class Seeder:
    """The process, which lives until it is closed."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.browser.seeding"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, name: str, *args: Any, module: str = __name__, **kwargs: Any) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        print(json.dumps([module, name, args, kwargs]), file=self._process.stdin, flush=True)
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise AssertionError(answer["error"])
        return answer["result"]

    def close(self) -> None:
        with self._process:
            assert self._process.stdin
            self._process.stdin.close()


# What is called there.


def migrate() -> None:
    from django.core.management import call_command

    call_command("migrate", verbosity=0, interactive=False)


def user(name: str, *, staff: bool = False, permissions: list[str] = []) -> int:  # noqa: B006  read only
    """Make a user who signs in with ``PASSWORD``; permissions are ``app_label.codename``."""
    from django.contrib.auth.models import Permission, User

    made = User.objects.create_user(name, password=PASSWORD, is_staff=staff)
    for each in permissions:
        label, codename = each.split(".")
        made.user_permissions.add(
            Permission.objects.get(content_type__app_label=label, codename=codename)
        )
    return made.pk


def superuser(name: str) -> int:
    from django.contrib.auth.models import User

    return User.objects.create_superuser(name, password=PASSWORD).pk


def session(name: str) -> str:
    """Sign a user in; return the value of the session's cookie."""
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.auth.models import User
    from django.contrib.sessions.backends.db import SessionStore

    signed_in = User.objects.get(username=name)
    store = SessionStore()
    store[SESSION_KEY] = str(signed_in.pk)
    store[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    store[HASH_SESSION_KEY] = signed_in.get_session_auth_hash()
    store.create()
    return str(store.session_key)


def conversation(name: str, turns: list[list[str]], *, title: str = "", key: str = "") -> str:
    """Store a conversation of a user: pairs of what was asked and answered. Return its id."""
    from django.contrib.auth.models import User

    from agent_memory import conversation_store
    from agent_memory.messages import Message, Step, TextPart, Turn
    from agent_memory.participants import Participant
    from agent_memory.records import Heading, new_id
    from example_project.chat.agents import SupportCoach

    owner = Participant.of(User.objects.get(username=name))
    heading = Heading(
        key or new_id(),
        owner,
        SupportCoach().get_label(),
        title=title,
        title_source="draft" if title else "",
    )
    for asked, answered in turns:
        step = Step(items=(TextPart(text=answered),))
        conversation_store.append(heading, Turn(user=Message("user", asked), steps=(step,)))
    return heading.id


def team(name: str, members: list[str]) -> int:
    from django.contrib.auth.models import User

    from example_project.chat.models import Team

    made = Team._default_manager.create(name=name)
    made.members.set(User.objects.filter(username__in=members))
    return made.pk


def refunds() -> int:
    """Return how many refunds were paid."""
    from example_project.chat.models import Refund

    return Refund._default_manager.count()


def approve(conversation_id: str) -> None:
    """Approve all that waits in a conversation, as the admin does: nothing runs."""
    from agent_memory import Approve, conversation_store

    conversation_store.decide(conversation_id, {"*": Approve()})


def _serve() -> None:
    import django

    django.setup()
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        module, name, args, kwargs = json.loads(line)
        function: Callable[..., Any] = getattr(import_module(module), name)
        try:
            answer = {"result": function(*args, **kwargs)}
        except Exception as error:  # told to the test, whatever it is
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.browser.settings")
    _serve()
