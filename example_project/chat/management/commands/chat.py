"""The web chat with a model beside it: ``uv run manage.py chat``."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from example_project.chat.models import Team
from example_project.endpoints.serving import KINDS, serving

MANAGE = Path(__file__).resolve().parents[4] / "manage.py"


class Command(BaseCommand):
    """Serve the site, and the model where it is ours, until it is interrupted."""

    help = "Serve the web chat, and the model that answers in it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--model", choices=KINDS, default="auto", help="as for the demo")
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument(
            "--asgi", action="store_true", help="serve with uvicorn, and not with runserver"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate, serve both, and end with the site."""
        call_command("migrate", verbosity=0, interactive=False)
        if not Team._default_manager.exists():
            raise CommandError("Nobody can sign in yet: 'manage.py demo' makes a user and a team.")
        port = str(options["port"])
        site = (
            ["-m", "uvicorn", "example_project.asgi:application", "--lifespan=off", "--port", port]
            if options["asgi"]
            else [str(MANAGE), "runserver", port]
        )
        with serving(options["model"]) as endpoint:
            self.stdout.write(f"Model: {endpoint.about.partition('.')[0]}.")
            self.stdout.write(f"Chat:  http://127.0.0.1:{port}/", ending="\n\n")
            self.stdout.flush()
            try:
                ended = subprocess.run(
                    [sys.executable, *site],
                    cwd=MANAGE.parent,
                    env=os.environ | endpoint.environment(),
                    check=False,
                )
            except KeyboardInterrupt:
                return
        if ended.returncode:
            raise CommandError(f"The site ended with status {ended.returncode}.")
