"""The migrations: they say what the models say, under any table names."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection, models
from django.db.migrations import CreateModel
from django.db.migrations.loader import MigrationLoader

from agent_memory import conf, migrations

ROOT = Path(__file__).parent.parent
FILES = sorted(Path(migrations.__path__[0]).glob("[0-9]*.py"))
MODELS = list(apps.get_app_config("agent_memory").get_models())

MIGRATE = """
import io, json, django
django.setup()
from django.core.management import call_command
from django.db import connection

def tables():
    return sorted(connection.introspection.table_names())

changes = io.StringIO()
connection.creation.create_test_db(verbosity=0, autoclobber=True)
try:
    migrated = tables()
    call_command("makemigrations", "agent_memory", check=True, dry_run=True, stdout=changes)
    call_command("migrate", "agent_memory", "zero", verbosity=0)
    print(json.dumps([migrated, tables(), changes.getvalue()]))
finally:
    connection.creation.destroy_test_db(connection.settings_dict["NAME"], verbosity=0)
"""


def literal_tables(source: str) -> list[str]:
    """Return what in a migration names a table otherwise than by ``table(...)``."""
    found = []
    for node in ast.walk(ast.parse(source)):
        pairs: list[tuple[object, ast.expr]] = []
        if isinstance(node, ast.Dict):
            pairs = [
                (key.value, value)
                for key, value in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant)
            ]
        elif isinstance(node, ast.Call):
            pairs = [(keyword.arg, keyword.value) for keyword in node.keywords]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found += [name for name in conf.TABLES.values() if name in node.value]
        found += [
            ast.unparse(value)
            for name, value in pairs
            if name in ("db_table", "table") and not ast.unparse(value).startswith("table(")
        ]
    return found


@pytest.mark.django_db
def test_the_migrations_say_what_the_models_say(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("makemigrations", "agent_memory", check=True, dry_run=True)
    assert capsys.readouterr().out == "No changes detected in app 'agent_memory'\n"


@pytest.mark.heavy
def test_a_project_may_rename_every_table_before_the_first_migrate_and_take_it_back() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MIGRATE],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings_renamed"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    migrated, undone, changes = json.loads(done.stdout)
    assert {f"chat_{name}" for name in conf.TABLES} <= set(migrated)
    assert not set(conf.TABLES.values()) & set(migrated)
    assert not [name for name in undone if name.startswith("chat_")]
    assert changes == "No changes detected in app 'agent_memory'\n"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_migration_names_its_tables_by_the_setting(path: Path) -> None:
    assert literal_tables(path.read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        'options = {"db_table": "chat"}',
        'migrations.AlterModelTable("Conversation", table="chat")',
        'migrations.RunSQL("DELETE FROM agent_conversations")',
    ],
)
def test_a_literal_table_name_would_be_found(source: str) -> None:
    assert literal_tables(source)
    assert literal_tables('options = {"db_table": table("conversations")}') == []


def test_the_first_migration_creates_indexes_and_constraints_with_their_tables() -> None:
    first = MigrationLoader(None).get_migration("agent_memory", "0001_initial")
    assert {type(operation) for operation in first.operations} == {CreateModel}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_index_and_constraint_has_a_fixed_short_name(model: type[models.Model]) -> None:
    for index in model._meta.indexes:
        made = index.clone()
        made.name = ""
        made.set_name_with_model(model)
        assert index.name != made.name, f"{index!r} is named after its table"
    names = [item.name for item in (*model._meta.indexes, *model._meta.constraints)]
    assert all(len(name) <= 30 for name in names)


def test_no_two_tables_share_an_index_name() -> None:
    names = [
        item.name for model in MODELS for item in (*model._meta.indexes, *model._meta.constraints)
    ]
    assert len(names) == len(set(names))


@pytest.mark.django_db
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_the_database_has_the_declared_indexes_and_no_others(model: type[models.Model]) -> None:
    declared = {item.name for item in (*model._meta.indexes, *model._meta.constraints)}
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, model._meta.db_table)
    made = {
        name
        for name, what in found.items()
        if (what["index"] or what["unique"]) and not (what["primary_key"] or what["foreign_key"])
    }
    assert made == declared
