"""The router that ``AGENT_MEMORY["DATABASE"]`` configures."""

from __future__ import annotations

from typing import Any

from agent_memory import conf


class MemoryRouter:
    """
    Keep the app's tables in the database that ``AGENT_MEMORY["DATABASE"]`` names.

    Put it into ``DATABASE_ROUTERS`` before routers that route everything. The
    content types that conversations refer to are migrated there too; their ids
    are not those of another database, so relations across are left refused.
    """

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        return conf.setting("DATABASE") if model._meta.app_label == "agent_memory" else None

    db_for_write = db_for_read

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        database = conf.setting("DATABASE")
        if database is None:
            return None
        if app_label == "agent_memory":
            return bool(db == database)
        return True if app_label == "contenttypes" and db == database else None
