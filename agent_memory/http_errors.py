"""Errors as HTTP clients are told of them: a code, a text of ours, a status."""

from __future__ import annotations

import json
import logging
import math
import re
from typing import Any

from django.http import HttpResponse

from agent_memory.approvals import PendingApproval
from agent_memory.exceptions import (
    ApprovalError,
    ApprovalMismatch,
    ApprovalNotResumable,
    ApprovalsPending,
    AttachmentDoesNotExist,
    ConversationBusy,
    ConversationConflict,
    ConversationDoesNotExist,
    InvalidConversationId,
    InvalidCursor,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    TooLarge,
    TurnFailed,
    TurnNotSaved,
    UnsupportedAttachment,
)

logger = logging.getLogger("agent_memory")

ERRORS: dict[type[Exception], tuple[int, str]] = {
    InvalidConversationId: (400, "This is not the id of a conversation."),
    InvalidCursor: (400, "This is not the cursor of a page."),
    ConversationDoesNotExist: (404, "There is no such conversation."),
    AttachmentDoesNotExist: (404, "There is no such attachment."),
    ConversationBusy: (409, "One turn runs at a time: try again when it has ended."),
    ConversationConflict: (409, "The conversation has changed meanwhile; nothing was stored."),
    TurnFailed: (409, "This message was sent before, and its turn failed: send it as a new one."),
    ApprovalsPending: (409, "Tool calls wait for a decision."),
    ApprovalMismatch: (409, "The decisions do not fit the calls that wait."),
    ApprovalNotResumable: (409, "Nothing is paused that could go on."),
    TooLarge: (413, "The message, or its history, is too large."),
    UnsupportedAttachment: (415, "This attachment cannot be sent."),
    TurnNotSaved: (500, "The answer could not be stored."),
    ProviderError: (502, "The model gave no usable answer."),
    ProviderRefused: (502, "The model did not take the request."),
    ProviderUnavailable: (503, "The model cannot be reached: try again later."),
}
"""Status and text of each error that a client can tell apart."""


def error_response(error: Exception) -> HttpResponse:
    """Return ``error_payload()`` as JSON with its status, and ``Retry-After`` where it is known."""
    payload = error_payload(error)
    response = HttpResponse(
        json_text(payload), content_type="application/json", status=payload["status"]
    )
    if "retry_after" in payload:
        response["Retry-After"] = payload["retry_after"]
    return response


def error_payload(error: Exception) -> dict[str, Any]:
    """
    Return what a client is told of an error: ``code``, ``error`` (a text) and ``status``.

    ``retry_after`` (whole seconds) and ``pending`` (the calls that wait) are
    there where the error has them. An error that is not in ``ERRORS`` is
    ``internal_error``. The error itself is logged, and its own text told to
    nobody: it may hold secrets.
    """
    kind = next((kind for kind in type(error).__mro__ if kind in ERRORS), None)
    status, text = ERRORS[kind] if kind else (500, "Something went wrong.")
    code = _code(kind) if kind else "internal_error"
    level = logging.ERROR if status >= 500 else logging.INFO
    logger.log(level, "A client is told %s.", code, exc_info=error)
    payload: dict[str, Any] = {"code": code, "error": text, "status": status}
    if isinstance(error, ConversationBusy | ProviderError) and error.retry_after is not None:
        payload["retry_after"] = max(1, math.ceil(error.retry_after))
    if isinstance(error, ApprovalError):
        payload["pending"] = [pending_data(each) for each in error.pending]
    return payload


def _code(kind: type[Exception]) -> str:
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()


def pending_data(pending: PendingApproval) -> dict[str, Any]:
    """Return a call that waits for a person as JSON data."""
    return {
        "id": pending.id,
        "name": pending.name,
        "arguments": pending.arguments,
        "reason": pending.reason,
        "expires_at": pending.expires_at and pending.expires_at.isoformat(),
    }


def json_text(data: dict[str, Any]) -> str:
    """Return data as one line of ASCII; NaN and infinities, which JSON lacks, as text."""
    try:
        return json.dumps(data, allow_nan=False)
    except ValueError:
        return json.dumps(json.loads(json.dumps(data), parse_constant=str))
