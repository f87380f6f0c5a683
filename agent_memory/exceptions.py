"""
Errors, named for the fact::

    AgentMemoryError
    |-- ConversationError
    |   |-- ConversationDoesNotExist
    |   |-- ConversationBusy            a turn is running; has since, retry_after
    |   |-- ConversationConflict        the reservation was lost; has turn
    |   `-- InvalidConversationId       (also SuspiciousOperation)
    |-- HistoryConflict                 two sources of history (also TypeError)
    |-- TransactionOpen                 a turn was begun inside a transaction
    |-- TurnFailed                      has turn
    |-- TurnNotSaved                    answered, but not stored; has conversation, turn
    |-- ApprovalError
    |   |-- ApprovalsPending            has pending
    |   |-- ApprovalMismatch            has pending
    |   `-- ApprovalNotResumable
    |-- ToolError                       raised by a tool: the model is told its text
    |-- InvalidCursor                   (also ValueError)
    |-- InvalidParticipant              (also ValueError)
    |-- ParticipantDoesNotExist         its model or row is gone
    |-- AttachmentDoesNotExist          unknown, or its file is gone
    |-- UnsupportedFormat               stored by a version this one cannot read
    |-- UnsupportedAttachment           (also ValueError)
    |-- TooLarge                        (also ValueError)
    `-- ProviderError                   has status, request_id, retry_after
        |-- ProviderUnavailable         trying again may help
        `-- ProviderRefused             trying the same again will not
    InvalidStore, InvalidProvider       (ImproperlyConfigured)
"""

from __future__ import annotations

import copyreg
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.core.exceptions import ImproperlyConfigured, SuspiciousOperation


class AgentMemoryError(Exception):
    """Base of every error that this app raises at run time."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the text and what the error carries, whatever its constructor takes."""
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]  # not in typeshed


class ConversationError(AgentMemoryError):
    """A conversation cannot do what was asked of it."""


class ConversationDoesNotExist(ConversationError):
    """No conversation has this id, or it belongs to somebody else."""

    def __init__(self, conversation_id: str) -> None:
        super().__init__(
            f"There is no conversation {conversation_id!r}. Pass an id that a response gave "
            "you, or start one with for_participant() or start_conversation()."
        )
        self.conversation_id = conversation_id


class ConversationBusy(ConversationError):
    """
    Another turn of this conversation is running.

    ``since`` is when it began (an aware datetime), ``retry_after`` the seconds
    until its reservation ends at the latest, if it is not renewed.
    ``same_message``: it runs under the same idempotency key, so trying again
    gets its answer.
    """

    def __init__(
        self,
        conversation_id: str,
        *,
        since: datetime,
        retry_after: float,
        same_message: bool = False,
    ) -> None:
        super().__init__(
            f"Conversation {conversation_id!r} is answering "
            f"{'this very message' if same_message else 'another one'} since {since:%H:%M:%S}. "
            "One turn runs at a time: try again when it has ended."
        )
        self.same_message = same_message
        self.conversation_id = conversation_id
        self.since = since
        self.retry_after = retry_after


class ConversationConflict(ConversationError):
    """
    The reservation was lost, or the id is taken; nothing was written.

    ``turn`` is the finished turn that could not be written, if there is one.
    """

    def __init__(self, conversation_id: str, turn: Any = None, *, message: str = "") -> None:
        super().__init__(
            message
            or f"The turn lost its reservation of conversation {conversation_id!r}: it took too "
            "long and another one took over, or the conversation was cleared. Nothing was "
            "written; the finished turn is in this error's 'turn'."
        )
        self.conversation_id = conversation_id
        self.turn = turn


class InvalidConversationId(ConversationError, SuspiciousOperation):
    """A conversation id is not text of 1 to 255 storable characters."""


class HistoryConflict(AgentMemoryError, TypeError):
    """An agent was given a second source of history."""


class TransactionOpen(AgentMemoryError):
    """A turn was begun inside a database transaction."""

    def __init__(self) -> None:
        super().__init__(
            "A turn cannot run inside a database transaction: the transaction would stay open "
            "while the model answers. Mark the view with "
            "@transaction.non_atomic_requests, turn ATOMIC_REQUESTS off, or call the agent "
            "outside atomic() and keep your own transactions short."
        )


class TurnFailed(AgentMemoryError):
    """The turn of this idempotency key is recorded as failed; see ``turn``."""

    def __init__(self, turn: Any) -> None:
        super().__init__("The turn is recorded as failed and is not run again.")
        self.turn = turn


class TurnNotSaved(AgentMemoryError):
    """
    The model answered, and the turn could not be stored.

    ``store.append(error.conversation, error.turn)`` stores it later, and once,
    even if it was stored unseen; ``conversation`` is a ``Heading``. What tools
    did is in the journal: where the next turn has recorded that as a failed turn,
    this one takes its place, unless it is paused, which is ``ConversationConflict``.
    So is the rest of a paused turn that has ended otherwise meanwhile.
    """

    def __init__(self, conversation: Any, turn: Any) -> None:
        super().__init__(
            "The answer could not be stored. When the store works again, "
            "store.append(error.conversation, error.turn) stores it."
        )
        self.conversation = conversation
        self.turn = turn


class ApprovalError(AgentMemoryError):
    """An approval cannot be decided or resumed; ``pending`` is what really waits."""

    def __init__(self, message: str, pending: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.pending = tuple(pending)


class ApprovalsPending(ApprovalError):
    """The conversation waits for decisions on ``pending``."""


class ApprovalMismatch(ApprovalError):
    """The decisions do not fit the calls that wait."""


class ApprovalNotResumable(ApprovalError):
    """Nothing is paused, or the agent cannot go on with it."""


class ToolError(AgentMemoryError):
    """A tool says what went wrong; the text is for the model to read."""

    def __init__(self, text: object) -> None:
        super().__init__(str(text))


class InvalidCursor(AgentMemoryError, ValueError):
    """A page cursor is not one that a page gave out."""


class InvalidParticipant(AgentMemoryError, ValueError):
    """An object cannot own a conversation; the message names the remedy."""


class ParticipantDoesNotExist(AgentMemoryError):
    """The model or the row that a participant stands for is gone."""


class AttachmentDoesNotExist(AgentMemoryError):
    """The conversation has no such attachment, or its file is gone from the storage."""


class UnsupportedFormat(AgentMemoryError):
    """A stored conversation has a format that this version cannot read."""


class UnsupportedAttachment(AgentMemoryError, ValueError):
    """A file is not one that a prompt takes, or the API or the store has no form for it."""


class TooLarge(AgentMemoryError, ValueError):
    """A message, a result or a window is over its limit."""


class ProviderError(AgentMemoryError):
    """
    The provider gave no usable answer.

    ``status`` is the HTTP status, ``request_id`` the provider's id of the request
    and ``retry_after`` the seconds that it asks to wait, where there are any. The
    text holds neither prompts nor keys.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.request_id = request_id
        self.retry_after = retry_after


class ProviderUnavailable(ProviderError):
    """No connection, time-out, overload, or an answer that broke off."""


class ProviderRefused(ProviderError):
    """The provider rejected the request: wrong key, unknown model, bad input."""


class InvalidStore(ImproperlyConfigured):
    """The conversation store cannot be loaded or lacks a method."""


class InvalidProvider(ImproperlyConfigured):
    """The provider cannot be loaded or is not configured."""
