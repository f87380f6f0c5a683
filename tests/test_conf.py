"""The settings: defaults, and what a project wrote, read when asked."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from agent_memory import conf
from tests.test_kinds import RIGHT, WRONG

STORE = "agent_memory.stores.database.DatabaseConversationStore"


@pytest.mark.parametrize("key", conf.DEFAULTS)
def test_a_key_left_out_has_its_default(key: str) -> None:
    with override_settings(AGENT_MEMORY={}):
        assert conf.setting(key) == conf.DEFAULTS[key]


def test_a_project_without_the_setting_has_every_default() -> None:
    with override_settings():
        del settings.AGENT_MEMORY
        assert conf.user_settings() == {}
        assert conf.setting("KEEP_LAST_TURNS") == 50


def test_a_setting_of_none_is_an_empty_one() -> None:
    with override_settings(AGENT_MEMORY=None):
        assert conf.user_settings() == {}
        assert conf.backend("STORE") == (STORE, {})


def test_a_changed_setting_is_read_at_once_and_the_old_one_afterwards() -> None:
    before = conf.setting("MESSAGES_PER_PAGE")
    with override_settings(AGENT_MEMORY={"MESSAGES_PER_PAGE": 7}):
        assert conf.setting("MESSAGES_PER_PAGE") == 7
        with override_settings(AGENT_MEMORY={"MESSAGES_PER_PAGE": 8}):
            assert conf.setting("MESSAGES_PER_PAGE") == 8
        assert conf.setting("MESSAGES_PER_PAGE") == 7
    assert conf.setting("MESSAGES_PER_PAGE") == before


@pytest.mark.parametrize("value", [0, None, False, ""])
def test_a_value_that_is_false_is_not_taken_for_a_missing_one(value: Any) -> None:
    with override_settings(AGENT_MEMORY={"KEEP_LAST_TURNS": value}):
        assert conf.setting("KEEP_LAST_TURNS") == value


def test_a_key_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(KeyError, match="STOER"):
        conf.setting("STOER")


@pytest.mark.parametrize(
    ("written", "path", "options"),
    [
        ({"BACKEND": "shop.Store", "OPTIONS": {"size": 3}}, "shop.Store", {"size": 3}),
        ({"BACKEND": "shop.Store"}, "shop.Store", {}),
        ({"BACKEND": "shop.Store", "OPTIONS": None}, "shop.Store", {}),
        ({"OPTIONS": {"size": 3}}, STORE, {"size": 3}),
        ("shop.Store", "shop.Store", {}),
    ],
)
def test_a_class_may_be_named_with_options_without_or_by_its_path_alone(
    written: Any, path: str, options: dict[str, Any]
) -> None:
    with override_settings(AGENT_MEMORY={"STORE": written}):
        assert conf.backend("STORE") == (path, options)


@pytest.mark.parametrize("written", WRONG["STORE"])
def test_what_names_no_class_is_refused_by_name(written: Any) -> None:
    with (
        override_settings(AGENT_MEMORY={"STORE": written}),
        pytest.raises(ImproperlyConfigured, match=r'^AGENT_MEMORY\["STORE"\] is the dotted path'),
    ):
        conf.backend("STORE")


READ_BY = {
    "LIMITS": lambda: [conf.limit(name) for name in conf.LIMITS],
    "ATTACHMENTS": lambda: [
        conf.attachment_limit("MAX_BYTES"),
        conf.attachment_limit("MAX_COUNT"),
        conf.media_types(),
        conf.attachment_storage(),
    ],
}


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key in READ_BY for value in WRONG[key]]
)
def test_a_limit_of_a_wrong_kind_is_refused_by_name(key: str, value: Any) -> None:
    with (
        override_settings(AGENT_MEMORY={key: value}),
        pytest.raises(ImproperlyConfigured, match=rf'^AGENT_MEMORY\["{key}"\]'),
    ):
        READ_BY[key]()


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key in READ_BY for value in RIGHT[key]]
)
def test_a_limit_of_the_right_kind_is_read(key: str, value: Any) -> None:
    with override_settings(AGENT_MEMORY={key: value}):
        assert set(map(str, value.values())) <= set(map(str, READ_BY[key]()))


@pytest.mark.parametrize("name", conf.LIMITS)
def test_a_limit_left_out_has_its_default(name: str) -> None:
    with override_settings(AGENT_MEMORY={"LIMITS": {}, "ATTACHMENTS": {}}):
        assert conf.limit(name) == conf.LIMITS[name]
        assert conf.attachment_limit("MAX_COUNT") == conf.ATTACHMENTS["MAX_COUNT"]


def test_whoever_changes_the_options_it_got_changes_nobody_elses() -> None:
    with override_settings(AGENT_MEMORY={"PROVIDER": {"OPTIONS": {"timeout": 5}}}):
        conf.backend("PROVIDER")[1]["timeout"] = 6
        assert conf.backend("PROVIDER")[1] == {"timeout": 5}


@pytest.mark.parametrize("name", conf.TABLES)
def test_a_table_is_named_by_the_project_or_by_default(name: str) -> None:
    with override_settings(AGENT_MEMORY={}):
        assert conf.table(name) == conf.TABLES[name]
    with override_settings(AGENT_MEMORY={"TABLES": {name: "chat_it"}}):
        assert conf.table(name) == "chat_it"
        assert all(conf.table(other) != "chat_it" for other in conf.TABLES if other != name)


def test_no_two_tables_share_a_default_name() -> None:
    assert len(set(conf.TABLES.values())) == len(conf.TABLES)


def test_a_table_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(KeyError, match="mesages"):
        conf.table("mesages")
