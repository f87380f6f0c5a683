"""Errors as HTTP clients are told of them: always the same code, never a word of the error's own."""

from __future__ import annotations

import inspect
import json
import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent_memory import exceptions
from agent_memory.approvals import PendingApproval
from agent_memory.exceptions import (
    AgentMemoryError,
    ApprovalMismatch,
    ConversationBusy,
    ProviderRefused,
    ProviderUnavailable,
    TooLarge,
)
from agent_memory.http_errors import ERRORS, _code, error_response
from tests.pages import Page

NOT_THE_CLIENTS = {
    "AgentMemoryError",
    "ConversationError",
    "ApprovalError",
    "HistoryConflict",
    "TransactionOpen",
    "InvalidParticipant",
    "ParticipantDoesNotExist",
    "ToolError",
    "UnsupportedFormat",
}
"""Bases, and what only a developer can mend."""


def busy(seconds: float) -> ConversationBusy:
    return ConversationBusy("c", since=datetime(2030, 1, 2, tzinfo=UTC), retry_after=seconds)


def test_each_error_that_a_client_can_mend_has_a_status() -> None:
    there = {
        name
        for name, value in vars(exceptions).items()
        if inspect.isclass(value) and issubclass(value, AgentMemoryError)
    }
    assert {kind.__name__ for kind in ERRORS} == there - NOT_THE_CLIENTS


def test_the_page_lists_each_code_with_its_status() -> None:
    page = Page(Path(__file__).parent.parent / "docs" / "how-to" / "streaming.md")
    rows = [line.strip("| ").split(" | ") for _, line in page.prose if line.startswith("| `")]
    listed = {row[0].strip("`"): int(row[1]) for row in rows if row[1].isdigit()}
    assert listed == {
        **{_code(kind): status for kind, (status, _) in ERRORS.items()},
        "internal_error": 500,
    }


@pytest.mark.parametrize(("seconds", "told"), [(0, 1), (0.2, 1), (1, 1), (1.2, 2), (60, 60)])
def test_a_busy_conversation_says_when_to_try_again(seconds: float, told: int) -> None:
    response = error_response(busy(seconds))
    assert response.status_code == 409
    assert response["Retry-After"] == str(told)
    assert json.loads(response.content) == {
        "code": "conversation_busy",
        "error": "One turn runs at a time: try again when it has ended.",
        "status": 409,
        "retry_after": told,
    }


def test_an_overloaded_provider_says_when_to_try_again_if_it_told() -> None:
    assert error_response(ProviderUnavailable("Down.", retry_after=6.5))["Retry-After"] == "7"
    assert "Retry-After" not in error_response(ProviderUnavailable("Down."))


def test_decisions_that_do_not_fit_are_told_with_what_waits() -> None:
    expires = datetime(2030, 1, 2, tzinfo=UTC)
    waiting = [
        PendingApproval("a", "refund", {"sum": float("inf")}, "Much.", expires),
        PendingApproval("b", "refund"),
    ]
    response = error_response(ApprovalMismatch("No.", waiting))
    assert json.loads(response.content)["pending"] == [
        {
            "id": "a",
            "name": "refund",
            "arguments": {"sum": "Infinity"},
            "reason": "Much.",
            "expires_at": "2030-01-02T00:00:00+00:00",
        },
        {"id": "b", "name": "refund", "arguments": {}, "reason": "", "expires_at": None},
    ]


class OverQuota(ProviderUnavailable):
    """An error of somebody's own provider."""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ProviderUnavailable("secret"), "provider_unavailable"),
        (OverQuota("secret"), "provider_unavailable"),
        (ProviderRefused("secret", status=401, request_id="secret"), "provider_refused"),
        (TooLarge("secret"), "too_large"),
        (exceptions.HistoryConflict("secret"), "internal_error"),
        (ValueError("secret"), "internal_error"),
    ],
)
def test_the_text_of_an_error_is_logged_and_told_to_nobody(
    error: Exception, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "agent_memory")
    response = error_response(error)
    assert json.loads(response.content)["code"] == code
    assert b"secret" not in response.content
    (record,) = caplog.records
    level = logging.ERROR if response.status_code >= 500 else logging.INFO
    assert (record.levelno, record.exc_info and record.exc_info[1]) == (level, error)


def test_an_error_is_json() -> None:
    response: Any = error_response(TooLarge("secret"))
    assert response["Content-Type"] == "application/json"
    assert response.status_code == json.loads(response.content)["status"] == 413
    assert "Retry-After" not in response
