"""The demo tells by its exit status whether memory held, and says what failed where it did not."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from example_project.endpoints import stand_in
from tests.example_project.processes import Done, manage, python
from tests.settings import TEST_DATABASE

pytestmark = pytest.mark.skipif(
    TEST_DATABASE != "sqlite", reason="the demo has an SQLite file of its own: uv run pytest"
)

FAILURES = {
    "Misquoting": "step 1, stored:",
    "Forgetful": "step 2, sent:",
    "MixedUp": "step 5, sent:",
    "Trusting": "step 5, the user's conversation as the team:",
    "Wasteful": "step 6, sent:",
    "Untitled": "step 7, there is a title:",
    "Unordered": "step 8, rows, newest first:",
}


def rows(database: Path) -> tuple[int, int]:
    with closing(sqlite3.connect(database)) as connection:
        ((conversations,),) = connection.execute("SELECT COUNT(*) FROM agent_conversations")
        ((messages,),) = connection.execute("SELECT COUNT(*) FROM agent_conversation_messages")
    return conversations, messages


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("example") / "demo.sqlite3"


@pytest.fixture(scope="module")
def demo(database: Path) -> Done:
    """The demo's first run, which made the database."""
    assert not database.exists()
    return manage(database, "demo")


@pytest.mark.heavy
def test_memory_holds_on_a_fresh_machine(demo: Done, database: Path) -> None:
    assert (demo.returncode, demo.stderr) == (0, "")
    assert "Memory held in all steps." in demo.stdout
    assert "It is no language model" in demo.stdout
    assert "user: staff   password: " in demo.stdout
    assert rows(database) >= (2, 18)


@pytest.mark.heavy
def test_every_step_tells_prompt_answer_and_what_was_checked(demo: Done) -> None:
    steps = demo.stdout.split("\n\n")[1:9]
    assert [step.split(".")[0] for step in steps] == list("12345678")
    assert [line.strip() for line in steps[1].splitlines()] == [
        "2. Recall, by the conversation's id",
        ">>> coach.continue_conversation(id, staff)",
        "staff  What did I say?",
        "coach  Recalled: blue.",
        "ok     sent 3 messages; stored 4 rows",
    ]
    assert "Recalled: green." in steps[4]
    assert "I was sent nothing to recall." in steps[5]
    assert "About blue" in steps[6]


@pytest.mark.heavy
@pytest.mark.usefixtures("demo")
def test_it_runs_again_and_on_the_endpoint_of_the_environment(database: Path) -> None:
    conversations, messages = rows(database)
    with stand_in.serve() as url:
        done = manage(
            database,
            "demo",
            OPENAI_BASE_URL=url,
            AGENT_MODEL="any",
            HTTP_PROXY="http://127.0.0.1:9",
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Endpoint: {url}" in done.stdout
    assert "the endpoint of your environment" in done.stdout
    assert rows(database) == (conversations + 2, messages + 18)


@pytest.mark.heavy
@pytest.mark.usefixtures("demo")
def test_memory_that_fails_gives_the_exit_status_1(database: Path) -> None:
    done = manage(
        database, "demo", DJANGO_SETTINGS_MODULE="tests.example_project.sabotaged_settings"
    )
    assert done.returncode == 1
    said = "user: Remember: blue.; assistant: Stored: blue.; user: What did I say?"
    assert done.stderr.splitlines() == [
        "CommandError: Memory did not hold: step 2, sent:",
        f"  expected 3 messages ({said})",
        "  found    1 message (user: What did I say?)",
    ]
    assert "Memory held" not in done.stdout


@pytest.fixture(scope="module")
def outcomes(demo: Done, database: Path) -> dict[str, str]:
    done = python(database, "-m", "tests.example_project.sabotage", *FAILURES)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.heavy
@pytest.mark.parametrize("store", FAILURES)
def test_each_fault_of_a_store_fails_the_step_that_shows_it(
    store: str, outcomes: dict[str, str]
) -> None:
    assert outcomes[store].startswith(f"Memory did not hold: {FAILURES[store]}")


@pytest.mark.e2e
def test_memory_holds_with_a_real_small_language_model(tmp_path: Path) -> None:
    done = manage(tmp_path / "demo.sqlite3", "demo", "--model", "local")
    assert (done.returncode, done.stderr) == (0, "")
    assert "a real language model" in done.stdout
    assert "Memory held in all steps." in done.stdout


@pytest.mark.heavy
@pytest.mark.usefixtures("demo")
def test_an_endpoint_that_does_not_answer_is_told_without_a_traceback(database: Path) -> None:
    done = manage(database, "demo", OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    assert done.returncode == 1
    assert done.stderr.startswith("CommandError: Step 1 ended with ProviderUnavailable: ")
    assert "Traceback" not in done.stderr


@pytest.mark.heavy
@pytest.mark.usefixtures("demo")
def test_a_later_process_goes_on_with_the_last_conversation(database: Path) -> None:
    done = manage(database, "ask", "What did I say?")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Recalled: blue.\n")


@pytest.mark.heavy
def test_the_project_passes_djangos_checks_and_lacks_no_migration(database: Path) -> None:
    assert manage(database, "check", "--fail-level", "WARNING").returncode == 0
    done = manage(database, "makemigrations", "--check", "--dry-run")
    assert (done.returncode, done.stderr) == (0, "")
