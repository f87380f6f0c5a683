"""
The store contract: values in, values out; nothing of agents, providers or HTTP.

A store of your own writes three methods, ``load``, ``append`` and ``clear``, in
either colour; the other colour adapts. The rest has a working default or raises
``NotImplementedError`` with the name of what is missing.
``agent_memory.testing.ConversationStoreContract`` tests every promise made here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asgiref.sync import async_to_sync

from agent_memory.approvals import Decisions, PendingApproval
from agent_memory.exceptions import ConversationDoesNotExist
from agent_memory.messages import Message, Turn
from agent_memory.records import Heading, Reservation, StoredTurn, new_id
from agent_memory.stores.holding import Holding, Wanted
from agent_memory.stores.keeping import Keeping
from agent_memory.stores.twins import twin


class ConversationStore(Holding, Keeping):
    """
    Keeps conversations. Shared by threads and event loops.

    Options are those of the setting; the base takes none. Each method has an
    async twin, by default one hop to the thread of the caller's ORM.
    """

    append_ends_reservation = False
    """Whether ``append`` under a reservation checks its token and releases it itself."""

    def __init__(self, **options: Any) -> None:
        if options:
            raise TypeError(
                f"{type(self).__name__} takes no option {', '.join(map(repr, options))}."
            )
        super().__init__()

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
        conversation cleared meanwhile, and for that of a resume: see settle().
        """
        stored: StoredTurn = self._adapt("append")(conversation, turn, reservation=reservation)
        return stored

    def clear(self, conversation_id: str) -> None:
        """
        Forget a conversation with all it holds, and the right of a running turn.

        An unknown id is no error.
        """
        self._adapt("clear")(conversation_id)

    def clear_conversations(self, participant: Any) -> None:
        """
        Forget all conversations of a participant. See clear().

        What they said in those of others stays. By default by ``list_conversations()``.
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

    # One turn at a time, where the store has nothing better than this process.

    def _reserve(self, wanted: Wanted) -> Reservation:
        name = wanted.heading.id
        if wanted.once is not None or wanted.resume:
            self._missing("reserve")
        if wanted.new:
            return Reservation(name, new_id(), new=True)
        known = bool(self.load(name, keep_last_turns=1))
        if not (known or wanted.create):
            raise ConversationDoesNotExist(name)
        owner = wanted.heading.participant
        if wanted.must_own and known and not self.conversation_belongs_to(name, owner):
            raise ConversationDoesNotExist(name)
        return self._hold(Reservation(name, new_id()))

    # Turns that wait for a person.

    @property
    def can_pause(self) -> bool:
        """Whether a turn may wait for a person here."""
        names = ("settle", "asettle")
        return any(
            getattr(type(self), name) is not getattr(ConversationStore, name) for name in names
        )

    def pending_approvals_for(self, conversation_id: str) -> tuple[PendingApproval, ...]:
        """Return the calls that wait for a decision: none for an unknown id, and no expired ones."""
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

    aload = twin(load)
    aappend = twin(append)
    aclear = twin(clear)
    aclear_conversations = twin(clear_conversations)
    apending_approvals_for = twin(pending_approvals_for)
    adecide = twin(decide)
    asettle = twin(settle)

    def _adapt(self, name: str) -> Callable[..., Any]:
        """Return the sync form of an async method that a subclass wrote alone."""
        if getattr(type(self), f"a{name}") is getattr(ConversationStore, f"a{name}"):
            self._missing(name)
        return async_to_sync(getattr(self, f"a{name}"))
