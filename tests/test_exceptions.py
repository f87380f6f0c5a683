"""The errors: their tree is the documented one, and each can be told, copied and sent."""

from __future__ import annotations

import copy
import pickle
import re
from datetime import UTC, datetime

import pytest
from django.core.exceptions import ImproperlyConfigured, SuspiciousOperation

from agent_memory import exceptions
from agent_memory.messages import Message, ToolCall, Turn
from agent_memory.records import Heading

TURN = Turn(user=Message("user", "my secret"))
CALL = ToolCall(id="call-1", name="refund")
ALSO = {
    "SuspiciousOperation": SuspiciousOperation,
    "TypeError": TypeError,
    "ValueError": ValueError,
}

ERRORS: list[Exception] = [
    exceptions.AgentMemoryError("text"),
    exceptions.ConversationError("text"),
    exceptions.ConversationDoesNotExist("some-id"),
    exceptions.ConversationBusy("some-id", since=datetime(2024, 2, 29, tzinfo=UTC), retry_after=7),
    exceptions.ConversationConflict("some-id", TURN),
    exceptions.ConversationConflict("some-id", message="It is taken."),
    exceptions.InvalidConversationId("text"),
    exceptions.HistoryConflict("text"),
    exceptions.TransactionOpen(),
    exceptions.TurnFailed(TURN),
    exceptions.TurnNotSaved(Heading("some-id"), TURN),
    exceptions.ApprovalError("text", [CALL]),
    exceptions.ApprovalsPending("text", [CALL]),
    exceptions.ApprovalMismatch("text"),
    exceptions.ApprovalNotResumable("text"),
    exceptions.ToolError("text"),
    exceptions.InvalidCursor("text"),
    exceptions.InvalidParticipant("text"),
    exceptions.ParticipantDoesNotExist("text"),
    exceptions.AttachmentDoesNotExist("text"),
    exceptions.UnsupportedFormat("text"),
    exceptions.UnsupportedAttachment("text"),
    exceptions.TooLarge("text"),
    exceptions.ProviderError("text", status=500, request_id="req-1"),
    exceptions.ProviderUnavailable("text", status=503),
    exceptions.ProviderRefused("text"),
    exceptions.InvalidStore("text"),
    exceptions.InvalidProvider("text"),
]

each_error = pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)


def documented() -> dict[str, tuple[str, set[str]]]:
    """Return the tree of the module's docstring: each error's parent and its other bases."""
    assert exceptions.__doc__
    tree: dict[str, tuple[str, set[str]]] = {}
    path: list[str] = []
    for line in exceptions.__doc__.splitlines():
        if not (found := re.match(r"    ((?:[|`]-- |\|   |    )*)([A-Z]\w+(?:, \w+)*)(.*)", line)):
            continue
        depth = len(found[1]) // 4
        also = re.search(r"\((?:also )?([A-Z]\w+)\)", found[3])
        for name in found[2].split(", "):
            path[depth:] = [name]
            tree[name] = (path[depth - 1] if depth else "", {also[1]} if also else set())
    return tree


def test_the_documented_tree_is_that_of_the_classes() -> None:
    ours = {
        name: error
        for name, error in vars(exceptions).items()
        if isinstance(error, type) and error.__module__ == exceptions.__name__
    }
    actual = {}
    for name, error in ours.items():
        bases = {base.__name__ for base in error.__bases__ if base is not Exception}
        (parent,) = [base for base in bases if base in ours] or [""]
        actual[name] = (parent, bases - {parent})
    assert documented() == actual


def test_every_error_is_tried_here() -> None:
    assert {type(error).__name__ for error in ERRORS} == set(documented())


@each_error
def test_an_error_says_what_is_wrong_and_nothing_of_what_was_said(error: Exception) -> None:
    assert str(error)
    for text in (str(error), repr(error)):
        assert "secret" not in text


@each_error
def test_an_error_survives_pickling_and_copying_with_all_it_carries(error: Exception) -> None:
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        assert vars(twin) == vars(error)


def test_errors_of_the_project_are_improper_configuration() -> None:
    assert issubclass(exceptions.InvalidStore, ImproperlyConfigured)
    assert issubclass(exceptions.InvalidProvider, ImproperlyConfigured)


def test_errors_carry_what_a_caller_needs_to_go_on() -> None:
    since = datetime(2024, 2, 29, 12, 30, tzinfo=UTC)
    busy = exceptions.ConversationBusy("some-id", since=since, retry_after=7.5)
    assert (busy.conversation_id, busy.since, busy.retry_after) == ("some-id", since, 7.5)
    conflict = exceptions.ConversationConflict("some-id", TURN)
    assert (conflict.conversation_id, conflict.turn) == ("some-id", TURN)
    assert exceptions.ConversationDoesNotExist("some-id").conversation_id == "some-id"
    assert exceptions.TurnFailed(TURN).turn == TURN
    unsaved = exceptions.TurnNotSaved(Heading("some-id"), TURN)
    assert (unsaved.conversation, unsaved.turn) == (Heading("some-id"), TURN)
    assert exceptions.ApprovalsPending("text", [CALL]).pending == (CALL,)
    refused = exceptions.ProviderRefused("text", status=401, request_id="req-1")
    assert (refused.status, refused.request_id) == (401, "req-1")
