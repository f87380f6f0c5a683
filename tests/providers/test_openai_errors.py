"""What goes wrong at an API is one of two errors, without the prompt, answer or key in it."""

from __future__ import annotations

import copy
import logging
import pickle
import socket
import time
from collections.abc import Callable
from email.utils import formatdate
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
    # Neither of them leads to the client's error, whose request holds the prompt and the key.
    assert (error.__cause__, error.__context__) == (None, None)
    record = logging.LogRecord("x", 40, "x", 1, "%s", (error,), (type(error), error, None))
    told = logging.Formatter().format(record) + str(error) + repr(error) + repr(vars(error))
    for secret in SECRETS:
        assert secret not in told
        assert secret.encode() not in pickle.dumps(error)
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(twin), str(twin), vars(twin)) == (expected, str(error), vars(error))
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
        (413, ProviderRefused),
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
    assert (error.status, error.request_id, error.retry_after) == (status, "req_1", None)
    assert f"{status} (some_code)." in str(error)


@both
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7),
        ({"retry_after": "0.5"}, 0.5),
        ({"retry_after": "7", "retry_after_ms": "1500"}, 1.5),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "-1"}, None),
        ({"retry_after": "inf"}, None),
        ({"retry_after": formatdate(0, usegmt=True)}, 0),
    ],
)
def test_an_error_says_how_long_the_provider_asks_to_wait(server, build, kind, headers, seconds):
    server.script(answer({"error": {}}, 429, **headers))
    assert failure(build(kind), "complete", ProviderUnavailable).retry_after == seconds


def test_a_date_to_wait_for_is_told_in_seconds(server, build):
    date = formatdate(time.time() + 3600, usegmt=True)
    server.script(answer({"error": {}}, 503, retry_after=date))
    error = failure(build(OpenAIChatProvider), "complete", ProviderUnavailable)
    assert error.retry_after is not None
    assert 0 < error.retry_after <= 3600


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


@both
@each_way
def test_a_connection_that_is_dropped_before_an_answer_is_unavailable(server, build, kind, way):
    server.script(Answer(end="drop"))
    error = failure(build(kind), way, ProviderUnavailable)
    assert (error.status, error.request_id) == (None, None)


@both
@pytest.mark.parametrize("way", ["complete", "acomplete"])
def test_half_a_plain_answer_is_unavailable(server, build, kind, way):
    server.script(Answer(b'{"secret words": ', end="drop"))
    failure(build(kind), way, ProviderUnavailable)


@both
@two_ways
def test_a_server_that_does_not_answer_in_time_is_unavailable(server, build, kind, way):
    server.script(Answer(end="hold"))
    error = failure(build(kind, timeout=0.2), way, ProviderUnavailable)
    assert '["timeout"]' in str(error)


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
