"""What goes wrong at an API is one of two errors, without the prompt, answer or key in it."""

from __future__ import annotations

import socket
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from agent_memory.exceptions import ProviderError, ProviderRefused, ProviderUnavailable
from agent_memory.providers import Provider
from agent_memory.providers.openai_chat import OpenAIChatProvider
from agent_memory.providers.openai_responses import OpenAIResponsesProvider
from tests.providers.asking import TWO_WAYS, WAYS, ask, chunk, prompt
from tests.providers.conftest import BOTH, KEY
from tests.providers.scripted import Answer, ScriptedServer, answer, events

PROMPT = "my-secret-prompt"
SECRETS = (PROMPT, KEY, "secret words")

both = pytest.mark.parametrize("kind", BOTH)
each_way = pytest.mark.parametrize("way", WAYS)
two_ways = pytest.mark.parametrize("way", TWO_WAYS)


def failure(provider: Provider, way: str, expected: type[ProviderError]) -> ProviderError:
    """Ask; return the error, which must hold nothing of the prompt, the answer or the key."""
    with pytest.raises(expected) as raised:
        ask(provider, prompt(PROMPT), way)
    error = raised.value
    told = "".join(traceback.format_exception(error))
    # The test's own line of the traceback names the constant, not its value.
    for secret in SECRETS:
        assert secret not in told + str(error) + repr(error) + repr(vars(error))
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
    return error


def refusing(status: int, **fields: Any) -> Answer:
    error = {"message": f"secret words: {PROMPT} {KEY}", "param": KEY, **fields}
    return answer({"error": error}, status, x_request_id="req_1")


@both
@two_ways
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, ProviderRefused),
        (401, ProviderRefused),
        (403, ProviderRefused),
        (404, ProviderRefused),
        (408, ProviderUnavailable),
        (409, ProviderUnavailable),
        (422, ProviderRefused),
        (429, ProviderUnavailable),
        (500, ProviderUnavailable),
        (503, ProviderUnavailable),
    ],
)
def test_a_status_says_whether_trying_again_may_help(server, build, kind, way, status, expected):
    server.script(refusing(status, code="some_code"))
    error = failure(build(kind), way, expected)
    assert type(error) is expected
    assert (error.status, error.request_id) == (status, "req_1")
    assert f"{status} (some_code)." in str(error)


@both
@pytest.mark.parametrize(
    ("status", "hint"), [(401, "OPENAI_API_KEY"), (404, 'AGENT_MEMORY["MODEL"]')]
)
def test_an_error_of_the_settings_names_the_setting(server, build, kind, status, hint):
    server.script(refusing(status))
    assert hint in str(failure(build(kind), "complete", ProviderRefused))


@both
@pytest.mark.parametrize("code", [KEY, "secret words", 400, None, ["secret words"]])
def test_a_code_that_is_no_identifier_is_left_out(server, build, kind, code):
    server.script(refusing(400, code=code, type="invalid_request_error"))
    error = failure(build(kind), "complete", ProviderRefused)
    assert "BadRequestError 400 (invalid_request_error)." in str(error)


@both
@each_way
def test_no_server_is_unavailable_and_names_the_setting(build, kind, way):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        error = failure(build(kind, base_url=url), way, ProviderUnavailable)
    assert "OPENAI_BASE_URL" in str(error)
    assert error.status is None


PIECES = {
    OpenAIResponsesProvider: {"type": "response.output_text.delta", "delta": "secret words"},
    OpenAIChatProvider: chunk({"content": "secret words"}),
}


@pytest.mark.usefixtures("no_collection")
@both
@pytest.mark.parametrize("way", ["stream", "astream"])
@pytest.mark.parametrize(
    ("pieces", "end"),
    [
        ((), "clean"),
        ((), "drop"),
        (('{"secret words',), "clean"),
        (("\ufffd\ufffe [1]",), "clean"),
        (('"secret words"',), "clean"),
        (("[" * 100_000,), "clean"),
        (({"error": {"message": "secret words", "code": "server_error"}},), "clean"),
    ],
    ids=["truncated", "dropped", "half JSON", "no JSON", "no object", "too deep", "error"],
)
def test_a_stream_that_breaks_is_unavailable(server, build, kind, way, pieces, end):
    server.script(events(PIECES[kind], *pieces, end=end, x_request_id="req_2"))
    error = failure(build(kind), way, ProviderUnavailable)
    assert (error.status, error.request_id) == (None, "req_2")


@both
@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_stream_that_is_no_utf_8_is_unavailable(server, build, kind, way):
    body = b'data: {"secret words": "\xff\xfe"}\n\n'
    server.script(Answer(body, content_type="text/event-stream"))
    failure(build(kind), way, ProviderUnavailable)


@both
@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_stream_that_stalls_is_unavailable(server, build, kind, way):
    # The server's comments keep the connection alive, so it must fall silent.
    server.silent = True
    server.script(events(PIECES[kind], end="hold"))
    error = failure(build(kind, timeout=0.2), way, ProviderUnavailable)
    assert '["timeout"]' in str(error)


@pytest.mark.usefixtures("no_collection")
@both
@two_ways
@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b'{"secret words', "application/json"),
        (b"<html>secret words</html>", "text/html"),
        (b"", "application/json"),
        (b'{"secret words": "\xff"}', "application/json"),
        (b"[" * 100_000, "application/json"),
    ],
    ids=["half JSON", "HTML", "empty", "no UTF-8", "too deep"],
)
def test_a_body_that_cannot_be_read_is_unavailable(server, build, kind, way, body, content_type):
    server.script(Answer(body, content_type=content_type))
    failure(build(kind), way, ProviderUnavailable)


@both
@each_way
def test_a_passing_fault_is_retried_by_the_client(server, build, kind, way):
    server.script(
        answer({"error": {}}, 429, retry_after_ms="1"),
        answer({"error": {}}, 503, retry_after_ms="1"),
        refusing(400),
    )
    failure(build(kind, max_retries=2), way, ProviderRefused)
    assert len(server.bodies) == 3


@both
@each_way
def test_a_value_of_the_settings_that_cannot_be_sent_is_refused(
    server: ScriptedServer, build: Callable[..., Provider], kind: type[Provider], way: str
):
    provider = build(kind, request={"metadata": {"key": object()}})
    assert "wrong type" in str(failure(provider, way, ProviderRefused))
    assert server.bodies == []
