"""Changed settings are read again: the store and the provider are built anew."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.test import override_settings

from agent_memory.providers import Provider, get_provider
from agent_memory.stores import ConversationStore, get_store
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.testing import ScriptedProvider

IN_MEMORY = {"STORE": "agent_memory.stores.inmemory.InMemoryConversationStore"}
SCRIPTED = {"PROVIDER": "agent_memory.testing.provider.ScriptedProvider"}


@pytest.mark.parametrize(
    ("get", "written", "kind"),
    [
        (get_store, IN_MEMORY, InMemoryConversationStore),
        (get_provider, SCRIPTED, ScriptedProvider),
    ],
)
def test_a_changed_setting_builds_anew_and_so_does_the_old_one_afterwards(
    get: Any, written: dict[str, str], kind: type[ConversationStore] | type[Provider]
) -> None:
    before = get()
    assert get() is before
    with override_settings(AGENT_MEMORY=written):
        inside = get()
        assert isinstance(inside, kind)
        assert get() is inside
    assert type(get()) is type(before)
    assert get() is not inside


@pytest.mark.parametrize("get", [get_store, get_provider])
def test_what_is_named_by_its_path_is_built_anew_too(get: Any) -> None:
    path = (IN_MEMORY | SCRIPTED)["STORE" if get is get_store else "PROVIDER"]
    before = get(path)
    assert get(path) is before
    with override_settings(AGENT_MEMORY={}):
        assert get(path) is not before


def test_another_setting_changes_nothing() -> None:
    store, provider = get_store(), get_provider()
    with override_settings(LANGUAGE_CODE="de"):
        assert get_store() is store
        assert get_provider() is provider


def test_the_app_names_itself_for_the_admin() -> None:
    config = apps.get_app_config("agent_memory")
    assert config.verbose_name == "Agent memory"
    assert config.default_auto_field == "django.db.models.BigAutoField"
