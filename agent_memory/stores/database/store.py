"""
The database store.

The conversation's row is the lock: every transaction begins with the
conditional update of it, or with its insert. A turn's reservation is one such
update; its append another, with two rows behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.db import router

from agent_memory.approvals import Decisions, PendingApproval, pending
from agent_memory.exceptions import InvalidParticipant, TransactionOpen
from agent_memory.history import check_keep_last_turns
from agent_memory.journals import JournalEntry
from agent_memory.messages import Message, Turn
from agent_memory.models import Conversation
from agent_memory.records import (
    ConversationPage,
    Heading,
    MessagePage,
    Page,
    Reservation,
    StoredConversation,
    StoredTurn,
    check_conversation_id,
    check_title,
    new_id,
)
from agent_memory.signals import approval_decided, conversation_cleared
from agent_memory.stores import cursors
from agent_memory.stores.base import ConversationStore
from agent_memory.stores.database import (
    appending,
    approvals,
    attachments,
    conversations,
    deciding,
    held,
    journal,
    owners,
    queries,
    readings,
    releasing,
    reserving,
    rows,
    settling,
)
from agent_memory.stores.database.held import HeldReservation
from agent_memory.stores.database.hops import place
from agent_memory.stores.database.packets import check_fits
from agent_memory.stores.database.retrying import retried
from agent_memory.stores.database.terms import MAX_INTEGER, RESERVED
from agent_memory.stores.database.transactions import connected, give_back, in_transaction
from agent_memory.stores.holding import Wanted
from agent_memory.stores.keeping import Listing
from agent_memory.stores.pauses import check_note

R = TypeVar("R")


class DatabaseConversationStore(ConversationStore):
    """Keeps conversations in the project's database; takes no options."""

    append_ends_reservation = True

    @property
    def writing(self) -> str:
        return router.db_for_write(Conversation)

    @property
    def reading(self) -> str:
        return router.db_for_read(Conversation)

    # A turn.

    def _reserve(self, wanted: Wanted) -> Reservation:
        """See ConversationStore.reserve(); one statement where nothing is in the way."""
        using = self.writing
        if in_transaction(using):
            raise TransactionOpen
        if wanted.message is not None:
            check_fits(using, wanted.message)
        once = None if wanted.resume else wanted.once
        if wanted.new:
            if wanted.resume:
                raise ValueError("A paused turn is resumed by the id of its conversation.")
            return Reservation(wanted.heading.id, new_id(), new=True, once=once)
        asked = reserving.Wanted(
            using, wanted.heading, new_id(), wanted.must_own, wanted.create, once, wanted.resume
        )
        tries = count()
        return retried(using, lambda: reserving.reserve(asked, again=bool(next(tries))))

    def load(
        self,
        conversation_id: str,
        *,
        keep_last_turns: int = 0,
        reservation: Reservation | None = None,
    ) -> tuple[Message, ...]:
        """See ConversationStore.load(); one statement, two with files, none for what is yet to be."""
        check_conversation_id(conversation_id)
        wanted = 2 * check_keep_last_turns(keep_last_turns)
        if reservation is not None and (reservation.new or reservation.placeholder):
            return ()
        using = self.writing
        last = {"id": conversation_id, "rows": wanted or MAX_INTEGER}
        if reservation is None:
            found = retried(using, lambda: readings.last_turns.rows(using, **last))
        elif (end := reservation.next_position) is not None:
            first = max(0, end - wanted) if wanted else 0
            given = {"id": conversation_id, "first": first, "end": end}
            found = retried(using, lambda: readings.window.rows(using, **given))
        else:
            read = partial(readings.counters_and_last_turns.rows, using, **last)
            both = retried(using, read)
            if counted := [row for row in both if row[0] is not None]:
                reserving.fill(reservation, counted[0][: len(RESERVED)], using)
            found = [row[len(RESERVED) :] for row in both if row[len(RESERVED)] is not None]
        return rows.window_messages(found, conversation_id, using)

    def renew(self, reservation: Reservation, seconds: float) -> bool:
        """See ConversationStore.renew(); one statement."""
        if reservation.new:
            return True
        using = self.writing
        values = {
            "id": reservation.conversation_id,
            "reservation": reservation.turn_id,
            "milliseconds": round(seconds * 1000),
        }
        return retried(using, lambda: queries.renew.run(using, **values)) is not None

    def release(self, reservation: Reservation) -> None:
        """See ConversationStore.release(); one statement."""
        if reservation.new:
            return
        using = self.writing
        retried(using, lambda: releasing.release(using, reservation))

    def journal(self, reservation: Reservation, entry: JournalEntry, seconds: float) -> bool:
        """See ConversationStore.journal(); one transaction of two statements, three of a resume."""
        return journal.write(self.writing, reservation, entry, seconds)

    def append(
        self, conversation: Heading | str, turn: Turn, *, reservation: Reservation | None = None
    ) -> StoredTurn:
        """See ConversationStore.append(); one transaction of two statements, three to pause."""
        heading = Heading.of(conversation)
        using = self.writing
        if reservation is None and heading.settles:
            return appending.append_rest(using, heading, turn)
        if reservation is None:
            return appending.append_directly(using, heading, turn)
        return appending.append(using, heading, turn, reservation)

    # A turn that waits for a person.

    def pending_approvals_for(self, conversation_id: str) -> tuple[PendingApproval, ...]:
        """See ConversationStore.pending_approvals_for(); one statement, where turns are written."""
        check_conversation_id(conversation_id)
        using = self.writing
        return pending(retried(using, lambda: approvals.of_pause(using, conversation_id)))

    def decide(
        self,
        conversation_id: str,
        decisions: Decisions,
        *,
        decided_by: Any = None,
        note: str = "",
    ) -> tuple[PendingApproval, ...]:
        """See ConversationStore.decide(); one transaction, which may be part of the caller's."""
        return deciding.decide(
            self.writing,
            check_conversation_id(conversation_id),
            decisions,
            by=self.participant_of(decided_by),
            note=check_note(note),
            tell=lambda approval: approval_decided.send_robust(
                type(self), conversation_id=conversation_id, approval=approval
            ),
        )

    def settle(
        self, conversation: Heading | str, turn: Turn | None, *, reservation: Reservation
    ) -> StoredTurn | None:
        """See ConversationStore.settle(); one transaction."""
        return settling.settle(self.writing, Heading.of(conversation), turn, reservation)

    # The conversation itself.

    def _create(self, heading: Heading, leading: tuple[Message, ...]) -> StoredConversation:
        """See ConversationStore.create()."""
        return conversations.create(self.writing, heading, leading)

    def get(self, conversation_id: str) -> StoredConversation | None:
        """See ConversationStore.get(); one statement, where conversations are written."""
        return conversations.get(self.writing, check_conversation_id(conversation_id))

    def rename(self, conversation_id: str, title: str) -> None:
        """See ConversationStore.rename(); one statement."""
        check_conversation_id(conversation_id)
        conversations.rename(self.writing, conversation_id, check_title(title))

    def clear(self, conversation_id: str) -> None:
        """See ConversationStore.clear(); one transaction, at any length."""
        check_conversation_id(conversation_id)
        tell = partial(
            conversation_cleared.send_robust, type(self), conversation_id=conversation_id
        )
        conversations.clear(self.writing, conversation_id, tell)

    def transfer_conversation(self, conversation_id: str, participant: Any) -> None:
        """See ConversationStore.transfer_conversation(); one transaction."""
        check_conversation_id(conversation_id)
        owners.transfer(self.writing, conversation_id, self.participant_of(participant))

    def clear_conversations(self, participant: Any) -> None:
        """See ConversationStore.clear_conversations(); a transaction for each."""
        for conversation_id in owners.ids(self.writing, self._somebody(participant)):
            self.clear(conversation_id)

    def anonymise_participant(self, participant: Any) -> None:
        """See ConversationStore.anonymise_participant(); one transaction."""
        owners.anonymise(self.writing, self._somebody(participant))

    def _list(self, listing: Listing) -> ConversationPage:
        """See ConversationStore.list_conversations(); one statement."""
        owner = rows.participant_columns(listing.owner, self.writing)
        found = conversations.opened(self.reading).filter(**owner)
        if listing.agent is not None:
            found = found.filter(agent=listing.agent)
        return conversations.listed(found, listing.size, listing.after)

    def latest_conversation_id(self, participant: Any, agent: str) -> str | None:
        """See ConversationStore.latest_conversation_id(); one statement."""
        using = self.writing
        owner = self.participant_of(participant)
        if owner is None:
            raise InvalidParticipant("The last conversation of nobody cannot be told.")
        columns = rows.participant_columns(owner, using)
        found = retried(using, lambda: readings.latest.rows(using, agent=agent, **columns))
        return found[0][0] if found else None

    def _page(self, conversation_id: str, size: int, below: int | None) -> MessagePage:
        """
        See ConversationStore.paginate_conversation_messages(); one statement.

        A second one, where rows were deleted by hand.
        """
        using = self.reading
        position = MAX_INTEGER if below is None else below
        page = readings.page(size + 1)
        for lowest in readings.lower_ends(below, size + 1):
            found = page.rows(using, id=conversation_id, position=position, lowest=lowest)
            if len(found) > size:
                break
        shown = tuple(rows.stored_messages(found[:size], using))
        return Page(shown, cursors.message_cursor(shown[-1]) if len(found) > size else None)

    def read_attachment(self, conversation_id: str, attachment_id: str) -> bytes:
        """See ConversationStore.read_attachment(); one statement, where turns are written."""
        using = self.writing
        check_conversation_id(conversation_id)
        return retried(using, lambda: attachments.read(using, conversation_id, attachment_id))

    # What whoever runs a site looks after.

    def held_reservations(self, conversation_id: str | None = None) -> tuple[HeldReservation, ...]:
        """Return the reservations of all conversations, or of one, the oldest first."""
        if conversation_id is not None:
            check_conversation_id(conversation_id)
        return tuple(held.reservations(self.writing, conversation_id))

    def end_reservation(
        self, reservation: HeldReservation, *, although_running: bool = False
    ) -> bool:
        """
        End a reservation whose worker has died; what its tools did becomes a failed turn.

        ``although_running``: also one whose time has not passed; if its worker
        is alive, it gets ``ConversationConflict``. Tells whether the turn held
        it still. Raises ``TransactionOpen`` inside a transaction of the caller's.
        """
        return held.end(self.writing, reservation, although_running=although_running)

    async def hop(self, work: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        """
        Run work on the thread of the caller's ORM, then give its connections back.

        It waits in the event loop while as many others are there as the pool has
        connections; raises ``OperationalError`` when it waits longer than the pool
        would let it.
        """

        def performed() -> R:
            before = connected()
            try:
                return work(*args, **kwargs)
            finally:
                # A router may name another replica each time.
                for alias in connected() & {self.writing, self.reading} | connected() - before:
                    give_back(alias)

        async with place(self.writing):
            return await sync_to_async(performed)()
