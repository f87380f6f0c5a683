"""List the conversations that a turn has reserved, and end what dead workers left."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agent_memory.exceptions import AgentMemoryError
from agent_memory.stores import get_store
from agent_memory.stores.database import DatabaseConversationStore
from agent_memory.stores.database.held import HeldReservation

HEADINGS = ("conversation", "participant", "agent", "since", "until", "state")


class Command(BaseCommand):
    """See the module."""

    help = (
        "List the conversations that a turn has reserved. 'running': its time has not passed. "
        "'interrupted': its worker died after tools were begun; 'unopened': before a first turn "
        "was stored; 'expired': otherwise, and the next turn takes it over."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        action = parser.add_mutually_exclusive_group()
        action.add_argument(
            "--release",
            metavar="ID",
            help="End the reservation of this conversation, also of a turn that is running: its "
            "worker gets ConversationConflict. What its tools did is recorded as a failed turn.",
        )
        action.add_argument(
            "--sweep",
            action="store_true",
            help="Record all interrupted turns as failed, and remove all unopened conversations.",
        )
        parser.add_argument(
            "--json", action="store_true", help="Write a JSON list of what was found or ended."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        store = get_store()
        if not isinstance(store, DatabaseConversationStore):
            raise CommandError(
                f"The project's store is {type(store).__name__}; this command looks after a "
                "DatabaseConversationStore."
            )
        failed: list[str] = []
        if options["release"] is not None:
            done, found = "Released", [self.release(store, options["release"])]
        elif options["sweep"]:
            done, found = "Swept", self.sweep(store, failed)
        else:
            done, found = "Reserved", list(store.held_reservations())
        if options["json"]:
            self.stdout.write(json.dumps([*map(as_data, found)], indent=2))
        else:
            self.stdout.write(f"{done}: {len(found)}")
            self.write_table(found)
        if failed:
            raise CommandError("\n".join(failed))

    def release(self, store: DatabaseConversationStore, conversation_id: str) -> HeldReservation:
        try:
            found = store.held_reservations(conversation_id)
            if found and store.end_reservation(found[0], although_running=True):
                return found[0]
        except AgentMemoryError as error:
            raise CommandError(str(error)) from error
        if not found:
            raise CommandError(f"No turn has reserved a conversation {conversation_id!r}.")
        raise CommandError(
            f"The turn of conversation {conversation_id!r} has just ended by itself."
        )

    def sweep(self, store: DatabaseConversationStore, failed: list[str]) -> list[HeldReservation]:
        """End what died; note what could not be ended, and go on."""
        swept = []
        for held in store.held_reservations():
            if held.state in ("interrupted", "unopened"):
                try:
                    if store.end_reservation(held):
                        swept.append(held)
                except AgentMemoryError as error:
                    failed.append(f"{held.conversation_id}: {error}")
        return swept

    def write_table(self, found: Iterable[HeldReservation]) -> None:
        lines = [HEADINGS, *(tuple(map(printable, as_data(held).values())) for held in found)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for line in lines[1:] and lines:
            cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            self.stdout.write("  ".join(cells).rstrip())


def printable(text: str) -> str:
    """Return text in one line, for a terminal: an id may hold any character."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def as_data(held: HeldReservation) -> dict[str, str]:
    owner = held.participant
    return {
        "conversation": held.conversation_id,
        "participant": f"{owner.type} {owner.key}" if owner else "",
        "agent": held.agent,
        "since": held.since.isoformat(timespec="seconds"),
        "until": held.until.isoformat(timespec="seconds"),
        "state": held.state,
    }
