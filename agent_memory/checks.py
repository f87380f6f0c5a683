"""
System checks: what can be told of the settings before the first conversation.

``manage.py check --tag agent_memory`` runs these alone, ``--deploy`` adds the
reminders. What only a database can tell is checked by ``migrate`` and by
``manage.py check --database default``.

Each process registers these and few run them, so what they ask is imported then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.contenttypes.models import ContentType
from django.core.checks import CheckMessage, Error, Tags, Warning, register  # noqa: A004  Django's own name
from django.core.exceptions import ImproperlyConfigured
from django.core.files.storage import FileSystemStorage, Storage, storages
from django.db import connections, router
from django.utils.module_loading import import_string

from agent_memory import conf
from agent_memory.kinds import KEYS, KINDS
from agent_memory.models import Conversation

ROUTER = "agent_memory.routers.MemoryRouter"
DATABASE = "agent_memory.stores.database.DatabaseConversationStore"
IN_MEMORY = "agent_memory.stores.inmemory.InMemoryConversationStore"


SCALARS = (str, int, float, type(None))
"""What may be shown of a setting: other values may hold keys."""


def _is_sound(key: str) -> bool:
    """Tell whether a setting may be used; if not, ``check_settings`` says so."""
    try:
        value = conf.setting(key)
    except ImproperlyConfigured:
        return False
    return KINDS[key].allows(value)


@register("agent_memory")
def check_settings(**kwargs: Any) -> Sequence[CheckMessage]:
    """Check the names and the kinds of all settings: E001, E002, E003."""
    try:
        written = conf.user_settings()
    except ImproperlyConfigured as error:
        hint = 'Write AGENT_MEMORY = {"MODEL": ..., ...}, or leave it out.'
        return [Error(str(error), hint=hint, id="agent_memory.E001")]
    found: list[CheckMessage] = [*_unknown("AGENT_MEMORY", written, conf.DEFAULTS)]
    for key in conf.DEFAULTS:
        value = conf.setting(key)
        if not _is_sound(key):
            told = f"{value!r:.80}" if isinstance(value, SCALARS) else f"a {type(value).__name__}"
            found.append(
                Error(
                    f'AGENT_MEMORY["{key}"] is {told}.',
                    hint=f"It must be {KINDS[key].words}. The default is {conf.DEFAULTS[key]!r}.",
                    id="agent_memory.E003",
                )
            )
        if isinstance(value, dict) and key in KEYS:
            found += _unknown(f'AGENT_MEMORY["{key}"]', value, KEYS[key])
    return found


def _unknown(where: str, written: dict[Any, Any], known: Iterable[str]) -> Iterator[Error]:
    for key in written:
        if key not in known:
            close = get_close_matches(str(key).upper(), known, n=1) or get_close_matches(
                str(key), known, n=1
            )
            hint = f"Did you mean {close[0]!r}?" if close else f"Known are {', '.join(known)}."
            yield Error(f"{where} has no key {key!r}.", hint=hint, id="agent_memory.E002")


@register("agent_memory")
def check_store_and_provider(**kwargs: Any) -> Sequence[CheckMessage]:
    """Check that both can be loaded: E004, E005. Needs no key and no network."""
    from agent_memory.providers import build_provider
    from agent_memory.stores import build_store

    found: list[CheckMessage] = []
    for key, build, number in (("STORE", build_store, 4), ("PROVIDER", build_provider, 5)):
        if not _is_sound(key):
            continue
        try:
            build(*conf.backend(key))
        except ImproperlyConfigured as error:
            found.append(
                Error(
                    f'AGENT_MEMORY["{key}"] cannot be used.',
                    hint=str(error),
                    id=f"agent_memory.E00{number}",
                )
            )
    return found


@register("agent_memory")
def check_model(**kwargs: Any) -> Sequence[CheckMessage]:
    """Check that a model is configured: W001."""
    if not _is_sound("MODEL") or conf.setting("MODEL"):
        return []
    return [
        Warning(
            'AGENT_MEMORY["MODEL"] is not set, so every agent must name a model itself.',
            hint="Set it to the name of a model that your provider serves.",
            id="agent_memory.W001",
        )
    ]


def _store_is(path: str) -> bool:
    """Tell whether the project's store is of our class; a store that cannot be loaded is not."""
    if not _is_sound("STORE"):
        return False
    try:
        store = import_string(conf.backend("STORE")[0])
    except ImportError:
        return False
    return isinstance(store, type) and issubclass(store, import_string(path))


@register("agent_memory")
def check_store_outlives_the_process(**kwargs: Any) -> Sequence[CheckMessage]:
    """Check that conversations are not kept in memory outside development: W003."""
    if settings.DEBUG or not _store_is(IN_MEMORY):
        return []
    return [
        Warning(
            "Conversations are kept in memory: they end with the process, and each process has "
            "others.",
            hint=f'Set AGENT_MEMORY["STORE"] to {conf.DEFAULTS["STORE"]["BACKEND"]!r}.',
            id="agent_memory.W003",
        )
    ]


@register("agent_memory")
def check_database(**kwargs: Any) -> Sequence[CheckMessage]:
    """Check that the database exists, with conversations and content types in it: E006, E007."""
    if not _is_sound("DATABASE"):
        return []
    named, routed = conf.setting("DATABASE"), router.db_for_write(Conversation)
    if named is None and not _store_is(DATABASE):
        return []
    alias = routed if named is None else named
    if named is not None and alias not in connections:
        return [
            Error(
                f'AGENT_MEMORY["DATABASE"] is {alias!r}, and DATABASES has no such alias.',
                hint=f"DATABASES has {', '.join(map(repr, connections))}.",
                id="agent_memory.E006",
            )
        ]
    if routed == alias and all(
        router.allow_migrate_model(alias, model) for model in (Conversation, ContentType)
    ):
        return []
    fault = "Conversations, or the content types that they refer to, are not migrated in"
    if routed != alias:
        fault = "Conversations are not routed to"
    return [
        Error(
            f"{fault} the database {alias!r}, which is to keep them.",
            hint=f"Add {ROUTER!r} to DATABASE_ROUTERS, before routers that route everything, and "
            f'set AGENT_MEMORY["DATABASE"] to {alias!r}.',
            id="agent_memory.E007",
        )
    ]


@register("agent_memory")
def check_attachments(**kwargs: Any) -> Sequence[CheckMessage]:
    """Check that the storage of attachments exists: E009."""
    if not _is_sound("ATTACHMENTS"):
        return []
    alias = conf.attachment_storage()
    if alias is None or alias in settings.STORAGES:
        return []
    return [
        Error(
            f'AGENT_MEMORY["ATTACHMENTS"]["STORAGE"] is {alias!r}, and STORAGES has no such alias.',
            hint=f"STORAGES has {', '.join(map(repr, settings.STORAGES))}.",
            id="agent_memory.E009",
        )
    ]


@register("agent_memory", Tags.security, deploy=True)
def check_attachments_are_private(**kwargs: Any) -> Sequence[CheckMessage]:
    """Check that nobody can fetch attachments past the view that asks who may: W005."""
    alias = conf.attachment_storage() if _is_sound("ATTACHMENTS") else None
    if alias is None or alias not in settings.STORAGES:
        return []
    why = _public(storages[alias])
    if why is None:
        return []
    return [
        Warning(
            f'AGENT_MEMORY["ATTACHMENTS"]["STORAGE"] is {alias!r}, and {why}: who has the address '
            "of a file can read it.",
            hint="Name a storage that nothing serves, or one that signs its URLs. Silence this "
            "warning if that storage is private in another way.",
            id="agent_memory.W005",
        )
    ]


def _public(storage: Storage) -> str | None:
    """Tell why the files of a storage can be fetched by anybody; ``None``: they cannot, it seems."""
    if isinstance(storage, FileSystemStorage):
        return _served(storage)
    if str(getattr(storage, "default_acl", None)).startswith("public"):
        return "its files are public by default_acl"
    try:
        url = storage.url("agent_memory/check")
    except Exception:  # It has no URLs, or none that it can sign here; what it raises is its own.
        return None
    return None if urlsplit(url).query else "its URLs are not signed"


def _served(storage: FileSystemStorage) -> str | None:
    if storage.base_url != settings.MEDIA_URL:
        return "it has a base_url"
    folder = Path(storage.location).resolve()
    for name in ("MEDIA_ROOT", "STATIC_ROOT"):
        root = getattr(settings, name)
        if root and folder.is_relative_to(Path(root).resolve()):
            return f"its folder is in {name}"
    return None


@register("agent_memory")
def check_atomic_requests(**kwargs: Any) -> Sequence[CheckMessage]:
    """Check that views may call agents, which no transaction may be open for: W002."""
    if not _store_is(DATABASE):
        return []
    alias = router.db_for_write(Conversation)
    if not connections.databases.get(alias, {}).get("ATOMIC_REQUESTS"):
        return []
    using = "" if alias == "default" else f'(using="{alias}")'
    return [
        Warning(
            f"ATOMIC_REQUESTS is on for the database {alias!r}, which keeps conversations: a view "
            "that prompts an agent raises TransactionOpen.",
            hint=f"Mark such views with @transaction.non_atomic_requests{using}, or turn "
            "ATOMIC_REQUESTS off. Silence this warning when all of them are marked.",
            id="agent_memory.W002",
        )
    ]


@register("agent_memory", Tags.security, deploy=True)
def check_ownership(**kwargs: Any) -> Sequence[CheckMessage]:
    """Remind that ids which come from outside need their owner checked: W004."""
    if not _is_sound("VERIFY_OWNERSHIP") or conf.setting("VERIFY_OWNERSHIP"):
        return []
    return [
        Warning(
            'AGENT_MEMORY["VERIFY_OWNERSHIP"] is off: continue_conversation() goes on with the '
            "conversation of anybody whose id it is given.",
            hint="Turn it on, or pass must_own=True wherever an id comes from a request.",
            id="agent_memory.W004",
        )
    ]


@register(Tags.database)
def check_tables(databases: Sequence[str] | None = None, **kwargs: Any) -> Sequence[CheckMessage]:
    """Check that what the recorded migrations made is there under its present names: E008."""
    return [error for alias in databases or () for error in _missing_tables(alias)]


def _missing_tables(alias: str) -> Iterator[Error]:
    if not router.allow_migrate_model(alias, Conversation):
        return
    from django.db.migrations.loader import MigrationLoader

    connection = connections[alias]
    loader = MigrationLoader(connection)
    label = Conversation._meta.app_label
    applied = [
        node
        for node in loader.graph.nodes
        if node[0] == label and node in loader.applied_migrations
    ]
    if not applied:
        return
    models = loader.project_state(applied).models.items()
    fold = str.lower if connection.features.ignores_table_name_case else str
    there = {fold(name) for name in connection.introspection.table_names()}
    missing = [
        name
        for (app_label, _), state in models
        if app_label == label
        # A name with a schema in it (chat"."messages) is not among those of the default schema.
        and '"' not in (name := str(state.options["db_table"]))
        and fold(name) not in there
    ]
    if missing:
        yield Error(
            f"The migrations of agent_memory are recorded in the database {alias!r}, and it has "
            f"no table {', '.join(sorted(missing))}.",
            hint='AGENT_MEMORY["TABLES"] names tables before the first migrate only. Put the old '
            "names back, or rename the tables in the database too (ALTER TABLE ... RENAME TO ...).",
            id="agent_memory.E008",
        )
