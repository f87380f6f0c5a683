"""Ask the coach from the command line."""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError

from agent_memory.exceptions import AgentMemoryError
from example_project.chat.agents import SupportCoach
from example_project.endpoints.sent import SentMessages
from example_project.endpoints.serving import KINDS, serving


class Command(BaseCommand):
    """Continue a conversation of a user, by its id or the last one."""

    help = "Ask the coach something, in the user's last conversation or the one named."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("text", help='what to say, such as "What did I say?"')
        parser.add_argument("--user", default="staff", help="who asks (default: staff)")
        parser.add_argument("--conversation", metavar="ID", help="the conversation to continue")
        parser.add_argument("--model", choices=KINDS, default="auto")
        parser.add_argument("--json", action="store_true", help="tell as JSON what was sent too")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the answer, and in which conversation it was given."""
        try:
            user = get_user_model()._default_manager.get_by_natural_key(options["user"])
        except get_user_model().DoesNotExist:
            raise CommandError(
                f"There is no user {options['user']!r}; 'manage.py demo' makes one named staff."
            ) from None
        with serving(options["model"]) as endpoint, SentMessages() as sent:
            coach = SupportCoach(provider=endpoint.provider(sent), model=endpoint.model)
            if options["conversation"]:
                coach = coach.continue_conversation(options["conversation"], user)
            else:
                coach = coach.continue_last_conversation(user)
            try:
                reply = coach.prompt(options["text"])
            except (AgentMemoryError, ImproperlyConfigured) as error:
                raise CommandError(f"{type(error).__name__}: {error}") from error
        if options["json"]:
            told = {
                "process": os.getpid(),
                "conversation_id": reply.conversation_id,
                "text": reply.text,
                "sent": sent.under(coach.instructions),
            }
            self.stdout.write(json.dumps(told))
        else:
            self.stdout.write(reply.text)
            self.stdout.write(f"(conversation {reply.conversation_id})")
