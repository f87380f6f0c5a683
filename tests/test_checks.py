"""The system checks: each fires where it should, says what to do, and else is silent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, run_checks  # noqa: A004  Django's own name
from django.core.files.storage import InMemoryStorage
from django.test import override_settings

from agent_memory.providers import Provider
from agent_memory.stores import ConversationStore
from agent_memory.testing import override_agent_memory
from tests.test_kinds import RIGHT, WRONG

ROOT = Path(__file__).parent.parent
IN_MEMORY = "agent_memory.stores.inmemory.InMemoryConversationStore"

STARTED_WITH = """
import django
from django.conf import settings
from django.core.management import call_command
settings.configure(INSTALLED_APPS=["django.contrib.contenttypes", "agent_memory"], AGENT_MEMORY={})
django.setup()
call_command("check")
"""


class Needy:
    """Neither a store nor a provider."""


class NeedyStore(ConversationStore):
    def __init__(self, *, size: int) -> None:
        super().__init__()


def told(number: str, **options: Any) -> list[CheckMessage]:
    """Return what the check of a number says; any other message is unexpected."""
    messages = run_checks(tags=["agent_memory"], databases=[], **options)
    assert {message.id for message in messages} <= {f"agent_memory.{number}"}
    return messages


def started_with(agent_memory: str) -> subprocess.CompletedProcess[str]:
    """Run the checks in a process whose setting is this source."""
    return subprocess.run(
        [sys.executable, "-c", STARTED_WITH.format(agent_memory)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_settings_of_these_tests_are_without_fault() -> None:
    assert run_checks(tags=["agent_memory"], databases=[]) == []


# E001, E002, E003: names and kinds.


@pytest.mark.parametrize("written", [["MODEL"], "gpt", 7, (), ""])
def test_settings_that_are_no_dict_are_an_error(written: Any) -> None:
    with override_settings(AGENT_MEMORY=written):
        (error,) = told("E001")
    assert isinstance(error, Error)
    assert error.msg == f"AGENT_MEMORY is a dict, not a {type(written).__name__}."


@pytest.mark.heavy
@pytest.mark.parametrize("written", ["['MODEL']", "{'TABLES': ['chat']}", "{'STORE': 7}"])
def test_a_project_with_settings_of_a_wrong_kind_starts_to_be_told_so(written: str) -> None:
    done = started_with(written)
    assert done.returncode == 1
    assert "SystemCheckError" in done.stderr
    assert "agent_memory.E00" in done.stderr


def test_no_settings_at_all_are_no_error() -> None:
    with override_settings():
        del settings.AGENT_MEMORY
        told("W001")


@pytest.mark.parametrize(
    ("written", "msg", "hint"),
    [
        ({"MODLE": "x"}, "AGENT_MEMORY has no key 'MODLE'.", "Did you mean 'MODEL'?"),
        ({"model": "x"}, "AGENT_MEMORY has no key 'model'.", "Did you mean 'MODEL'?"),
        ({"TABLES": {"mesages": "x"}}, "no key 'mesages'.", "Did you mean 'messages'?"),
        ({"LIMITS": {"windows": 1}}, "no key 'windows'.", "Did you mean 'window'?"),
        ({"ATTACHMENTS": {"max_bytes": 1}}, "no key 'max_bytes'.", "Did you mean 'MAX_BYTES'?"),
        ({"STORE": {"BACKND": IN_MEMORY}}, "no key 'BACKND'.", "Did you mean 'BACKEND'?"),
        ({"PROVIDER": {"OPTION": {}}}, "no key 'OPTION'.", "Did you mean 'OPTIONS'?"),
        ({"ZZZ": 1}, "no key 'ZZZ'.", "Known are STORE, PROVIDER, MODEL,"),
        ({7: 1}, "no key 7.", "Known are STORE"),
    ],
)
def test_a_key_that_is_not_known_is_an_error_that_names_the_one_meant(
    written: dict[Any, Any], msg: str, hint: str
) -> None:
    with override_settings(AGENT_MEMORY={"MODEL": "test-model", **written}):
        (error,) = told("E002")
    assert isinstance(error, Error)
    assert error.msg.endswith(msg)
    assert str(error.hint).startswith(hint)


@pytest.mark.parametrize(("key", "values"), WRONG.items())
def test_a_value_of_a_wrong_kind_is_an_error_that_says_what_it_must_be(
    key: str, values: tuple[Any, ...]
) -> None:
    with override_agent_memory(**{key: values[0]}):
        (error,) = told("E003")
    assert isinstance(error, Error)
    assert error.msg.startswith(f'AGENT_MEMORY["{key}"] is ')
    assert str(error.hint).startswith("It must be ")


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, values in RIGHT.items() for value in values]
)
def test_a_value_of_the_right_kind_is_no_error(key: str, value: Any) -> None:
    with override_agent_memory(**{key: value}), override_settings(DEBUG=True):
        assert told("none") == []


@pytest.mark.parametrize(
    "written",
    [["sk-secret"], {"PROVIDER": ["sk-secret"]}, {"PROVIDER": {"OPTIONS": ["sk-secret"]}}],
)
def test_no_message_shows_a_value_that_may_hold_a_key(written: Any) -> None:
    with override_settings(AGENT_MEMORY=written):
        messages = run_checks(tags=["agent_memory"], databases=[])
    assert messages
    assert "sk-secret" not in str(messages)


# E004, E005: what is loaded.


@pytest.mark.parametrize(("key", "number"), [("STORE", "E004"), ("PROVIDER", "E005")])
@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("shop.NoSuchThing", "No module named 'shop'"),
        ("nodots", "doesn't look like a module path"),
        ("agent_memory.conf.NoSuchThing", "NoSuchThing"),
        ("tests.test_checks.Needy", "is not a subclass of agent_memory."),
        ({"BACKEND": "tests.test_checks.NeedyStore", "OPTIONS": {"sise": 3}}, "sise"),
    ],
)
def test_a_store_or_provider_that_cannot_be_loaded_is_an_error_that_says_why(
    key: str, number: str, written: Any, reason: str
) -> None:
    with override_agent_memory(**{key: written}):
        (error,) = told(number)
    assert isinstance(error, Error)
    assert error.msg == f'AGENT_MEMORY["{key}"] cannot be used.'
    assert reason in str(error.hint)


def test_a_store_and_a_provider_of_ones_own_are_loaded_with_their_options() -> None:
    store = {"BACKEND": "tests.test_checks.NeedyStore", "OPTIONS": {"size": 3}}
    with override_agent_memory(STORE=store, PROVIDER=f"{__name__}.OwnProvider"):
        assert told("none") == []


class OwnProvider(Provider):
    pass


@pytest.mark.parametrize("api", ["openai_responses.OpenAIResponses", "openai_chat.OpenAIChat"])
def test_the_shipped_providers_need_no_key_to_be_checked(
    api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with override_agent_memory(PROVIDER=f"agent_memory.providers.{api}Provider"):
        assert told("none") == []


# E009: where attachments are kept.


def test_a_storage_of_attachments_that_does_not_exist_is_an_error() -> None:
    with override_agent_memory(ATTACHMENTS={"STORAGE": "vault"}):
        (error,) = told("E009")
        assert isinstance(error, Error)
        assert "is 'vault', and STORAGES has no such alias." in error.msg
        assert error.hint == "STORAGES has 'default', 'staticfiles'."
        with override_settings(
            STORAGES=settings.STORAGES | {"vault": settings.STORAGES["default"]}
        ):
            assert told("none") == []


# W005: attachments that are kept where anybody can fetch them.


class UnsignedStorage(InMemoryStorage):
    default_acl: str | None = None

    def url(self, name: str | None) -> str:
        return f"https://files.example.com/{name}"


class SignedStorage(UnsignedStorage):
    def url(self, name: str | None) -> str:
        return f"{super().url(name)}?X-Amz-Signature=0123"


class OpenStorage(SignedStorage):
    default_acl = "public-read"


class NamelessStorage(UnsignedStorage):
    def url(self, name: str | None) -> str:
        raise RuntimeError("no credentials")


def told_of_storage(settings: Any, backend: str, **options: Any) -> str:
    settings.STORAGES |= {"vault": {"BACKEND": backend, "OPTIONS": options}}
    with override_agent_memory(ATTACHMENTS={"STORAGE": "vault"}, VERIFY_OWNERSHIP=True):
        assert told("none") == []
        found = told("W005", include_deployment_checks=True)
    assert len(found) < 2
    return "".join(warning.msg for warning in found)


@pytest.mark.parametrize(
    ("location", "base_url", "words"),
    [
        ("media/vault", None, "its folder is in MEDIA_ROOT"),
        ("media", None, "its folder is in MEDIA_ROOT"),
        ("link", None, "its folder is in MEDIA_ROOT"),
        ("static/vault", None, "its folder is in STATIC_ROOT"),
        (None, None, "its folder is in MEDIA_ROOT"),
        ("vault", "/vault/", "it has a base_url"),
        ("vault", None, ""),
        ("media-vault", None, ""),
    ],
)
def test_a_folder_of_attachments_that_is_served_is_warned_of(
    settings: Any, tmp_path: Path, location: str | None, base_url: str | None, words: str
) -> None:
    (tmp_path / "media").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "media")
    settings.MEDIA_ROOT, settings.MEDIA_URL = tmp_path / "media", "/media/"
    settings.STATIC_ROOT = tmp_path / "static"
    warned = told_of_storage(
        settings,
        "django.core.files.storage.FileSystemStorage",
        location=location and str(tmp_path / location),
        base_url=base_url,
    )
    assert bool(words) == bool(warned)
    assert words in warned


@pytest.mark.parametrize(
    ("storage", "words"),
    [
        (UnsignedStorage, "its URLs are not signed"),
        (OpenStorage, "its files are public by default_acl"),
        (SignedStorage, ""),
        (NamelessStorage, ""),
    ],
)
def test_a_storage_of_attachments_with_public_urls_is_warned_of(
    settings: Any, storage: type, words: str
) -> None:
    warned = told_of_storage(settings, f"{__name__}.{storage.__name__}")
    assert bool(words) == bool(warned)
    assert words in warned


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ""),
        ({"querystring_auth": False}, "its URLs are not signed"),
        ({"custom_domain": "files.example.com"}, "its URLs are not signed"),
        ({"default_acl": "public-read"}, "its files are public by default_acl"),
    ],
)
def test_a_bucket_is_warned_of_as_far_as_its_settings_tell(
    settings: Any, options: dict[str, Any], words: str
) -> None:
    pytest.importorskip("storages.backends.s3", reason="needs django-storages[s3]: --group s3")
    private = {"bucket_name": "files", "access_key": "test", "secret_key": "test"}
    warned = told_of_storage(settings, "storages.backends.s3.S3Storage", **private, **options)
    assert bool(words) == bool(warned)
    assert words in warned


# W001, W003, W004: what is better configured.


@pytest.mark.parametrize("model", [None, ""])
def test_a_project_without_a_model_is_warned(model: str | None) -> None:
    with override_agent_memory(MODEL=model):
        (warning,) = told("W001")
    assert isinstance(warning, Warning)
    assert "every agent must name a model itself" in warning.msg


@pytest.mark.parametrize("written", [IN_MEMORY, {"BACKEND": IN_MEMORY}])
def test_conversations_kept_in_memory_are_warned_of_outside_debug(written: Any) -> None:
    with override_agent_memory(STORE=written):
        with override_settings(DEBUG=False):
            (warning,) = told("W003")
        with override_settings(DEBUG=True):
            assert told("none") == []
    assert isinstance(warning, Warning)
    assert "DatabaseConversationStore" in str(warning.hint)


def test_a_deploy_without_ownership_checks_is_reminded() -> None:
    with override_agent_memory(VERIFY_OWNERSHIP=False):
        (warning,) = told("W004", include_deployment_checks=True)
        assert told("none") == []
    assert isinstance(warning, Warning)
    assert "must_own=True" in str(warning.hint)
    with override_agent_memory(VERIFY_OWNERSHIP=True):
        assert told("none", include_deployment_checks=True) == []
