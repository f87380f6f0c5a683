"""The project's store is found by its setting, built once, and can be overridden."""

from __future__ import annotations

import subprocess
import sys

import pytest
from django.core.exceptions import ImproperlyConfigured

from agent_memory.exceptions import InvalidStore
from agent_memory.stores import (
    ConversationStore,
    build_store,
    conversation_store,
    get_store,
    overriding,
)
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.testing import override_agent_memory
from agent_memory.testing.contract.base import plain_turn

INMEMORY = "agent_memory.stores.inmemory.InMemoryConversationStore"


class OptionStore(ConversationStore):
    def __init__(self, colour: str) -> None:
        super().__init__()
        self.colour = colour


OPTION_STORE = f"{__name__}.OptionStore"


def test_the_setting_names_the_store_by_path_or_with_options():
    with override_agent_memory(STORE=INMEMORY):
        assert type(get_store()) is InMemoryConversationStore
    with override_agent_memory(STORE={"BACKEND": OPTION_STORE, "OPTIONS": {"colour": "blue"}}):
        store = get_store()
        assert type(store) is OptionStore
        assert store.colour == "blue"


def test_the_project_has_one_store_until_its_settings_change():
    with override_agent_memory(STORE=INMEMORY):
        store = get_store()
        assert get_store() is get_store(INMEMORY) is store
        with override_agent_memory(STORE={"BACKEND": INMEMORY}):
            assert get_store() is not store
        assert get_store() is not store


def test_the_default_is_the_database_store():
    from agent_memory.stores.database import DatabaseConversationStore

    with override_agent_memory():
        assert type(get_store()) is DatabaseConversationStore


def test_a_store_may_be_given_or_named_beside_that_of_the_project():
    given = InMemoryConversationStore()
    assert get_store(given) is given
    with override_agent_memory(STORE={"BACKEND": OPTION_STORE, "OPTIONS": {"colour": "blue"}}):
        assert type(get_store(INMEMORY)) is InMemoryConversationStore
        assert get_store(INMEMORY) is get_store(INMEMORY)
        assert get_store(OPTION_STORE) is get_store()


@pytest.mark.parametrize(
    ("path", "options", "reason"),
    [
        ("nowhere.Store", {}, "cannot be loaded.*nowhere"),
        ("Store", {}, "cannot be loaded"),
        ("agent_memory.stores.inmemory.NoStore", {}, "cannot be loaded.*NoStore"),
        (INMEMORY, {"path": "a"}, "cannot be loaded.*'path'"),
        (OPTION_STORE, {}, "cannot be loaded.*colour"),
        ("builtins.dict", {}, "'builtins.dict' is not a subclass"),
    ],
)
def test_a_store_that_cannot_be_loaded_is_named_with_the_reason(path, options, reason):
    with pytest.raises(InvalidStore, match=reason) as caught:
        build_store(path, options)
    assert isinstance(caught.value, ImproperlyConfigured)
    setting = override_agent_memory(STORE={"BACKEND": path, "OPTIONS": options})
    with setting, pytest.raises(InvalidStore, match=reason):
        get_store()


@pytest.mark.parametrize("wrong", [InMemoryConversationStore, 7, object()])
def test_what_is_no_store_is_refused(wrong):
    with pytest.raises(InvalidStore, match="dotted path"):
        get_store(wrong)


def test_an_overriding_store_goes_before_every_other():
    outer, inner, given = (InMemoryConversationStore() for _ in range(3))
    with overriding(outer) as used:
        assert used is outer
        assert get_store() is get_store(given) is get_store(INMEMORY) is outer
        with overriding(inner):
            assert get_store(given) is inner
        assert get_store() is outer
        with pytest.raises(ZeroDivisionError), overriding(inner):
            raise ZeroDivisionError
        assert get_store() is outer
    assert get_store(given) is given


def test_the_ready_store_is_looked_up_at_each_use():
    with overriding(InMemoryConversationStore()):
        conversation_store.append("one", plain_turn())
        assert conversation_store.load("one") == plain_turn().messages
    with overriding(InMemoryConversationStore()):
        assert conversation_store.load("one") == ()
    assert repr(conversation_store) == "<agent_memory.conversation_store>"


def test_the_ready_store_can_be_imported_before_there_are_settings():
    program = (
        "from agent_memory.stores import conversation_store\n"
        "from agent_memory.stores.inmemory import InMemoryConversationStore\n"
        "from django.conf import settings\n"
        "assert not settings.configured\n"
        "print(conversation_store)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == ("<agent_memory.conversation_store>", "")
