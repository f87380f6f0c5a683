"""List the files of attachments that belong to no message, and remove them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.files.storage import InvalidStorageError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import router
from django.utils import timezone

from agent_memory import conf
from agent_memory.models import ConversationAttachment
from agent_memory.stores.database import files


class Command(BaseCommand):
    """See the module."""

    help = (
        "List the files that a killed process, or a failed removal, has left in the storage of "
        "AGENT_MEMORY['ATTACHMENTS']. Attachments in the database leave nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--sweep", action="store_true", help="Remove them.")
        parser.add_argument(
            "--hours",
            type=float,
            default=24,
            help="Pass over files that are not older than so many hours (default: 24): a turn may "
            "be about to name them.",
        )
        parser.add_argument(
            "--storage", metavar="ALIAS", help="Look in this storage, which was used before."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        alias = options["storage"] or conf.attachment_storage()
        if alias is None:
            raise CommandError("AGENT_MEMORY['ATTACHMENTS'] names no STORAGE; pass --storage.")
        before = timezone.now() - timedelta(hours=options["hours"])
        using = router.db_for_write(ConversationAttachment)
        count = 0
        try:
            for place in files.orphans(using, alias, before):
                if options["sweep"]:
                    place.remove()
                self.stdout.write(place.name)
                count += 1
        except InvalidStorageError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{'Swept' if options['sweep'] else 'Orphaned'}: {count}")
