"""What a process tells the test that started it: a line of JSON each."""

from __future__ import annotations

import json
import logging
from typing import Any

from django.db import DatabaseError, InterfaceError


def tell(**facts: Any) -> None:
    print(json.dumps(facts, default=str), flush=True)  # noqa: T201


class TellRetries(logging.Handler):
    """Tells the code of each error that the store passes over, and what else it logs."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.args[0] if isinstance(record.args, tuple) and record.args else None
        if isinstance(error, DatabaseError | InterfaceError):
            cause: Any = error.__cause__ or error
            tell(retried=getattr(cause, "sqlstate", None) or (cause.args or [""])[0])
        else:
            tell(logged=record.getMessage())


def tell_of_retries() -> None:
    logger = logging.getLogger("agent_memory")
    logger.addHandler(TellRetries())
    logger.propagate = False
