"""
The store contract: values in, values out; nothing of agents, providers or HTTP.

A store of your own writes three methods, ``load``, ``append`` and ``clear``, in
either colour; the other colour adapts. The rest has a working default or raises
``NotImplementedError`` with the name of what is missing.
``agent_memory.testing.ConversationStoreContract`` tests every promise made here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar

from asgiref.sync import async_to_sync, sync_to_async

from agent_memory import conf
from agent_memory.approvals import Decisions, PendingApproval
from agent_memory.exceptions import (
    ConversationBusy,
    ConversationDoesNotExist,
    InvalidParticipant,
)
from agent_memory.journals import JournalEntry
from agent_memory.messages import Message, Turn
from agent_memory.participants import Participant
from agent_memory.records import (
    ConversationPage,
    Heading,
    MessagePage,
    Once,
    Reservation,
    StoredConversation,
    StoredTurn,
    check_conversation_id,
    new_id,
)

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="ConversationStore")


def twin(
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """Return the async twin of a store's method: one hop to the thread of the caller's ORM."""

    async def atwin(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = await self.hop(getattr(self, method.__name__), *args, **kwargs)
        return result

    atwin.__name__ = f"a{method.__name__}"
    atwin.__qualname__ = f"ConversationStore.{atwin.__name__}"
    atwin.__doc__ = f"See {method.__name__}()."
    return atwin


@dataclass(slots=True)
class Held:
    """Who writes the next turn, as this process knows it; ``until`` is by the store's clock."""

    token: str
    since: datetime
    until: float
    key: str | None


class ConversationStore:
    """Keeps conversations. Shared by threads and event loops."""

    append_ends_reservation = False
    """Whether ``append`` under a reservation checks its token and releases it itself."""

    _clock = staticmethod(time.monotonic)
    """Seconds by which reservations expire, if they are held by the base."""

    def __init__(self, **options: Any) -> None:
        if options:
            raise TypeError(
                f"{type(self).__name__} takes no option {', '.join(map(repr, options))}."
            )
        self._lock = threading.RLock()
        self._held: dict[str, Held] = {}

    # The three methods of every store.

    def load(
        self,
        conversation_id: str,
        *,
        keep_last_turns: int = 0,
        reservation: Reservation | None = None,
    ) -> tuple[Message, ...]:
        """
        Return the messages a model is sent, oldest first.

        Leading messages always, then the last ``keep_last_turns`` turns (0:
        all). An unknown id has none.
        """
        messages: tuple[Message, ...] = self._adapt("load")(
            conversation_id, keep_last_turns=keep_last_turns, reservation=reservation
        )
        return messages

    def append(
        self, conversation: Heading | str, turn: Turn, *, reservation: Reservation | None = None
    ) -> StoredTurn:
        """
        Write a whole turn, or nothing.

        Opens the conversation when its id is new; counts as its activity. Takes
        and ends a reservation of its own when given none. Raises
        ``ConversationConflict`` when the reservation was lost or the
        conversation cleared meanwhile.
        """
        stored: StoredTurn = self._adapt("append")(conversation, turn, reservation=reservation)
        return stored

    def clear(self, conversation_id: str) -> None:
        """Forget a conversation with all it holds; an unknown id is no error."""
        self._adapt("clear")(conversation_id)

    # One turn at a time.

    def reserve(
        self,
        conversation_id: str | None = None,
        *,
        participant: Any = None,
        must_own: bool = False,
        create: bool = False,
        agent: str = "",
        once: Once | None = None,
        message: Message | None = None,
        resume: bool = False,
    ) -> Reservation:
        """
        Take the right to write the next turn; ``None`` is a conversation yet to be.

        Raises ``ConversationDoesNotExist`` for an unknown id, unless ``create``
        is set, and with ``must_own`` for one of another participant;
        ``ConversationBusy`` while another turn holds it; ``ApprovalsPending``
        while one is paused; ``TransactionOpen`` inside a transaction of the
        caller's, where the store has such.

        With ``resume`` it is the right to go on with the paused turn, which is
        ``reservation.paused``; ``ApprovalNotResumable`` when none is. What
        nobody decided in time has expired then. A prompt on a turn of which all
        that was undecided has expired, and nothing is approved, ends it as denied.

        ``message`` is what the turn begins with: ``TooLarge`` when the store could
        not hold it. With ``once``, a turn that is stored under that key is returned as
        ``answered``, and ``TurnFailed`` is raised for a failed one.
        """
        if once is not None or resume:
            self._missing("reserve")
        if conversation_id is None:
            return Reservation(new_id(), new_id(), new=True)
        check_conversation_id(conversation_id)
        if not (known := self._exists(conversation_id)) and not create:
            raise ConversationDoesNotExist(conversation_id)
        if must_own and known and not self.conversation_belongs_to(conversation_id, participant):
            raise ConversationDoesNotExist(conversation_id)
        return self._hold(Reservation(conversation_id, new_id()))

    def renew(self, reservation: Reservation, seconds: float) -> bool:
        """Hold a reservation for so many seconds from now; False: it was lost."""
        if reservation.new:
            return True
        with self._lock:
            held = self._held.get(reservation.conversation_id)
            if held is None or held.token != reservation.turn_id:
                return False
            held.until = self._clock() + seconds
            return True

    def journal(self, reservation: Reservation, entry: JournalEntry, seconds: float) -> bool:
        """
        Note what a running turn is about to do or has done, and renew; False: it was lost.

        Should the worker die, the next one finds the entries and records a
        failed turn. A store without a journal renews. In a turn that is resumed
        they are folded into it, and it stays paused, with nothing undecided; an
        approved call is claimed before it runs, and False is also the answer
        when it was claimed before.
        """
        return self.renew(reservation, seconds)

    def release(self, reservation: Reservation) -> None:
        """Give a reservation up without a turn; a stale one is ignored."""
        with self._lock:
            held = self._held.get(reservation.conversation_id)
            if held is not None and held.token == reservation.turn_id:
                del self._held[reservation.conversation_id]

    # Turns that wait for a person.

    @property
    def can_pause(self) -> bool:
        """Whether a turn may wait for a person here."""
        names = ("settle", "asettle")
        return any(
            getattr(type(self), name) is not getattr(ConversationStore, name) for name in names
        )

    def pending_approvals_for(self, conversation_id: str) -> tuple[PendingApproval, ...]:
        """Return the calls that wait for a decision; none for an unknown id."""
        self._missing("pending_approvals_for")

    def decide(
        self,
        conversation_id: str,
        decisions: Decisions,
        *,
        decided_by: Any = None,
        note: str = "",
    ) -> tuple[PendingApproval, ...]:
        """
        Settle calls that wait, each once; return what still waits.

        ``decisions`` are by call id, or ``"*"`` for all that no other key names;
        ``decided_by`` (a participant) and ``note`` are kept as a record. All or
        none is settled: raises ``ApprovalMismatch`` for an id that does not wait,
        ``ApprovalNotResumable`` when nothing is paused and only ``"*"`` is named,
        and ``ValueError`` for what is no decision. Nothing runs: see
        ``agent.resume()``.
        """
        self._missing("decide")

    def settle(
        self, conversation: Heading | str, turn: Turn | None, *, reservation: Reservation
    ) -> StoredTurn | None:
        """
        Replace the paused turn that a reservation with ``resume`` holds, and end it.

        ``turn`` is the whole turn, completed, failed or paused again. ``None``
        drops it: both its messages go, and position and count step back, unless
        a tool of it has started, in which case it is kept as failed and returned.
        Raises ``ConversationConflict`` when the reservation was lost.
        """
        self._missing("settle")

    def _hold(self, reservation: Reservation) -> Reservation:
        """Note a reservation in this process; raises ``ConversationBusy``."""
        now = self._clock()
        key = reservation.once.key if reservation.once else None
        with self._lock:
            held = self._held.get(reservation.conversation_id)
            if held is not None and held.until > now:
                raise ConversationBusy(
                    reservation.conversation_id,
                    since=held.since,
                    retry_after=held.until - now,
                    same_message=key is not None and key == held.key,
                )
            self._held[reservation.conversation_id] = Held(
                reservation.turn_id,
                datetime.now(UTC),
                now + conf.setting("RESERVATION_SECONDS"),
                key,
            )
        return reservation

    def _exists(self, conversation_id: str) -> bool:
        return bool(self.load(conversation_id, keep_last_turns=1))

    # Conversations.

    def create(
        self,
        conversation_id: str | None = None,
        *,
        participant: Any = None,
        agent: str = "",
        title: str = "",
        leading: Iterable[Message] = (),
    ) -> StoredConversation:
        """
        Open an empty conversation on purpose.

        ``leading`` are system or developer messages that stay in every window.
        Raises ``ConversationConflict`` when the id is taken.
        """
        self._missing("create")

    def get(self, conversation_id: str) -> StoredConversation | None:
        """Return a conversation, or ``None`` for an unknown id."""
        self._missing("get")

    def rename(self, conversation_id: str, title: str) -> None:
        """Give a conversation a person's title; raises ``ConversationDoesNotExist``."""
        self._missing("rename")

    def transfer_conversation(self, conversation_id: str, participant: Any) -> None:
        """
        Hand a conversation over; ``None`` makes it nobody's.

        What nobody said in a conversation of nobody's is the new owner's then;
        what somebody said stays theirs. Raises ``ConversationDoesNotExist``.
        """
        self._missing("transfer_conversation")

    def clear_conversations(self, participant: Any) -> None:
        """
        Forget all conversations of a participant. See clear().

        Raises ``InvalidParticipant`` for ``None``.
        """
        owner = self._somebody(participant)
        page = self.list_conversations(owner)
        found = [*page]
        while page.next_cursor is not None:
            page = self.list_conversations(owner, cursor=page.next_cursor)
            found += page
        for stored in found:
            self.clear(stored.id)

    def anonymise_participant(self, participant: Any) -> None:
        """
        Make nobody of a participant: as an owner, as who spoke, as who decided.

        A turn that runs in a conversation of theirs ends as if its worker had
        died. Raises ``InvalidParticipant`` for ``None``.
        """
        self._missing("anonymise_participant")

    def list_conversations(
        self,
        participant: Any,
        *,
        agent: str | None = None,
        per_page: int | None = None,
        cursor: str | None = None,
    ) -> ConversationPage:
        """
        Return a page of a participant's conversations, latest activity first.

        ``None`` lists those without a participant. Raises ``InvalidCursor``,
        and ``ValueError`` for a ``per_page`` outside 1 to 1000.
        """
        self._missing("list_conversations")

    def latest_conversation_id(self, participant: Any, agent: str) -> str | None:
        """
        Return the conversation in which this participant and this agent last spoke.

        Raises ``InvalidParticipant`` for ``None``.
        """
        self._missing("latest_conversation_id")

    def conversation_belongs_to(self, conversation_id: str, participant: Any) -> bool:
        """Tell whether a conversation exists and is this participant's (``None``: nobody's)."""
        owner, stored = self.participant_of(participant), self.get(conversation_id)
        return stored is not None and stored.participant == owner

    def paginate_conversation_messages(
        self, conversation_id: str, *, per_page: int | None = None, cursor: str | None = None
    ) -> MessagePage:
        """
        Return a page of messages, newest first; leading messages come last.

        An unknown id has none. Pages do not move when messages are added.
        Raises ``InvalidCursor``, and ``ValueError`` for a ``per_page`` outside
        1 to 1000; ``None`` means the setting.
        """
        self._missing("paginate_conversation_messages")

    def read_attachment(self, conversation_id: str, attachment_id: str) -> bytes:
        """
        Return the bytes of an attachment of a message, by the id that it has on a page.

        Raises ``AttachmentDoesNotExist``.
        """
        self._missing("read_attachment")

    def participant_of(self, obj: Any) -> Participant | None:
        """Return the participant an object stands for; raises ``InvalidParticipant``."""
        return Participant.of(obj)

    # The async twins.

    async def hop(self, work: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        """Run work on the thread of the caller's ORM."""
        return await sync_to_async(work)(*args, **kwargs)

    apending_approvals_for = twin(pending_approvals_for)
    adecide = twin(decide)
    asettle = twin(settle)
    aload = twin(load)
    aappend = twin(append)
    aclear = twin(clear)
    areserve = twin(reserve)
    arenew = twin(renew)
    ajournal = twin(journal)
    arelease = twin(release)
    acreate = twin(create)
    aget = twin(get)
    arename = twin(rename)
    atransfer_conversation = twin(transfer_conversation)
    aclear_conversations = twin(clear_conversations)
    aanonymise_participant = twin(anonymise_participant)
    alist_conversations = twin(list_conversations)
    alatest_conversation_id = twin(latest_conversation_id)
    aconversation_belongs_to = twin(conversation_belongs_to)
    apaginate_conversation_messages = twin(paginate_conversation_messages)
    aread_attachment = twin(read_attachment)

    def _adapt(self, name: str) -> Callable[..., Any]:
        """Return the sync form of an async method that a subclass wrote alone."""
        if getattr(type(self), f"a{name}") is getattr(ConversationStore, f"a{name}"):
            self._missing(name)
        return async_to_sync(getattr(self, f"a{name}"))

    def _somebody(self, obj: Any) -> Participant:
        """Return the participant an object stands for; raises ``InvalidParticipant`` for none."""
        participant = self.participant_of(obj)
        if participant is None:
            raise InvalidParticipant(
                "None is nobody, and this is for somebody: pass a saved model instance, or "
                'Participant("app_label.model", "key").'
            )
        return participant

    def _missing(self, name: str) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__} must define {name}() for this.")
