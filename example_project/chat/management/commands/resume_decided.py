"""Run decided turns on: ``manage.py resume_decided``."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.db import close_old_connections

from agent_memory.models import Conversation
from example_project.chat.tasks import run_on


class Command(BaseCommand):
    """A worker; any number of them may run at once."""

    help = "Run on the turns of which every tool call is decided, and wait for more."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="do not wait for more")
        parser.add_argument(
            "--seconds", type=float, default=2, help="how long to wait between two looks"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Tell each conversation, and what became of its turn."""
        self.look()
        while not options["once"]:
            time.sleep(options["seconds"])
            close_old_connections()
            self.look()

    def look(self) -> None:
        for conversation_id in list(Conversation.objects.decided().values_list("pk", flat=True)):
            try:
                self.stdout.write(f"{conversation_id}: {run_on(conversation_id)}")
            except Exception as error:  # one turn that fails does not stop the others
                self.stderr.write(f"{conversation_id}: {type(error).__name__}: {error}")
