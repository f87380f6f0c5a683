"""
The database store.

The conversation's row is the lock: every transaction begins with the
conditional update of it, or with its insert. A turn's reservation is one such
update; its append another, with two rows behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.db import IntegrityError, connections, models, router, transaction

from agent_memory.exceptions import (
    ConversationConflict,
    ConversationDoesNotExist,
    InvalidParticipant,
    TransactionOpen,
)
from agent_memory.history import check_keep_last_turns, check_leading
from agent_memory.messages import Message, Turn
from agent_memory.models import Conversation, ConversationMessage
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
from agent_memory.signals import conversation_cleared
from agent_memory.stores import cursors
from agent_memory.stores.base import ConversationStore
from agent_memory.stores.database import queries, reserving, rows

R = TypeVar("R")

ATTEMPTS = 5


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

    def reserve(
        self,
        conversation_id: str | None = None,
        *,
        participant: Any = None,
        must_own: bool = False,
        create: bool = False,
        agent: str = "",
    ) -> Reservation:
        """See ConversationStore.reserve(); one statement where nothing is in the way."""
        using = self.writing
        owner = self.participant_of(participant)
        if in_transaction(using):
            raise TransactionOpen
        if conversation_id is None:
            return Reservation(new_id(), new_id(), new=True)
        heading = Heading(conversation_id, owner, agent)
        return reserving.reserve(using, heading, must_own=must_own, create=create)

    def load(
        self,
        conversation_id: str,
        *,
        keep_last_turns: int = 0,
        reservation: Reservation | None = None,
    ) -> tuple[Message, ...]:
        """See ConversationStore.load(); one statement, none for a conversation yet to be."""
        check_conversation_id(conversation_id)
        wanted = 2 * check_keep_last_turns(keep_last_turns)
        if reservation is not None and (reservation.new or reservation.placeholder):
            return ()
        using = self.writing
        if reservation is not None and reservation.next_position is not None:
            first = max(0, reservation.next_position - wanted) if wanted else 0
            return rows.window_messages(queries.window.rows(using, id=conversation_id, first=first))
        found = queries.counters_and_window.rows(
            using, id=conversation_id, rows=wanted or rows.MAX_INTEGER
        )
        if reservation is not None and found:
            reserving.fill(reservation, found[0][: len(queries.RESERVED)], using)
        window = (row[len(queries.RESERVED) :] for row in found)
        return rows.window_messages(row for row in window if row[0] is not None)

    def renew(self, reservation: Reservation, seconds: float) -> bool:
        """See ConversationStore.renew(); one statement."""
        if reservation.new:
            return True
        renewed = queries.renew.run(
            self.writing,
            id=reservation.conversation_id,
            reservation=reservation.turn_id,
            milliseconds=round(seconds * 1000),
        )
        return renewed is not None

    def release(self, reservation: Reservation) -> None:
        """See ConversationStore.release(); one statement."""
        if reservation.new:
            return
        values = {"id": reservation.conversation_id, "reservation": reservation.turn_id}
        if reservation.placeholder:
            queries.drop_placeholder.run(self.writing, **values)
        else:
            queries.release.run(self.writing, **values)

    def append(
        self, conversation: Heading | str, turn: Turn, *, reservation: Reservation | None = None
    ) -> StoredTurn:
        """See ConversationStore.append(); one transaction of two statements."""
        heading = Heading.of(conversation)
        using = self.writing
        if reservation is not None:
            try:
                with durable(using):
                    return self._append(using, heading, turn, reservation)
            except IntegrityError:
                if not reservation.new:
                    raise
                return self._written(using, heading, turn, reservation)
        for _ in range(ATTEMPTS):
            try:
                with transaction.atomic(using):
                    reservation = reserving.take(using, heading)
                    return self._append(using, heading, turn, reservation)
            except IntegrityError:
                continue  # another one opened the conversation in between
        raise ConversationConflict(heading.id, turn)

    def _append(
        self, using: str, heading: Heading, turn: Turn, reservation: Reservation
    ) -> StoredTurn:
        now = rows.local(datetime.now(UTC))
        usage = rows.totals(turn.usage + turn.title_usage)
        position = reservation.next_position
        if reservation.new:
            row = rows.conversation_row(heading, using, moment=now, opened=True)
            queries.conversation.run(using, row | usage | {"next_position": 2, "turn_count": 1})
            position = 0
        else:
            counted = queries.append(bool(heading.title)).run(
                using,
                id=heading.id,
                reservation=reservation.turn_id,
                title=heading.title,
                title_source=heading.title_source,
                last_activity=now,
                **usage,
            )
            if counted is None:
                return self._written(using, heading, turn, reservation)
            if position is None:
                ((following,),) = queries.position.rows(using, id=heading.id)
                position = following - 2
        begun = rows.local(reservation.begun_at)
        user, assistant = rows.turn_rows(
            heading, turn, reservation.turn_id, using, begun=begun, ended=now
        )
        user["position"], assistant["position"] = position, position + 1
        user_id, assistant_id = queries.turn_rows.run(using, user, assistant)
        return _stored_turn(reservation, user_id, assistant_id)

    def _written(
        self, using: str, heading: Heading, turn: Turn, reservation: Reservation
    ) -> StoredTurn:
        """Return a turn that an earlier, unseen commit has written; else it is a conflict."""
        found = queries.turn_of.rows(
            using,
            id=heading.id,
            turn_id=reservation.turn_id,
            position=reservation.next_position or 0,
        )
        if len(found) != 2 or found[1][2] != turn.status:
            raise ConversationConflict(heading.id, turn)
        return _stored_turn(reservation, found[0][0], found[1][0])

    # The conversation itself.

    def create(
        self,
        conversation_id: str | None = None,
        *,
        participant: Any = None,
        agent: str = "",
        title: str = "",
        leading: Iterable[Message] = (),
    ) -> StoredConversation:
        """See ConversationStore.create()."""
        using = self.writing
        messages = check_leading(leading)
        heading = Heading(
            new_id() if conversation_id is None else conversation_id,
            self.participant_of(participant),
            agent,
            check_title(title),
            "person" if title else "",
        )
        now = rows.local(datetime.now(UTC))
        row = rows.conversation_row(heading, using, moment=now, opened=True)
        try:
            with transaction.atomic(using):
                queries.conversation.run(using, row)
                ConversationMessage.objects.using(using).bulk_create(
                    ConversationMessage(**rows.message_row(heading.id, position, message, now))
                    for position, message in enumerate(messages, start=-len(messages))
                )
        except IntegrityError:
            raise ConversationConflict(
                heading.id, message=f"There is a conversation {heading.id!r} already."
            ) from None
        return StoredConversation(
            heading.id, heading.participant, agent, title, heading.title_source, now, now, turns=0
        )

    def get(self, conversation_id: str) -> StoredConversation | None:
        """See ConversationStore.get(); one statement."""
        using = self.reading
        found = self._opened(using).filter(id=check_conversation_id(conversation_id))
        row = found.values_list(*rows.CONVERSATION).first()
        return None if row is None else rows.stored_conversation(row, using)

    def rename(self, conversation_id: str, title: str) -> None:
        """See ConversationStore.rename(); one statement."""
        found = self._opened(self.writing).filter(id=check_conversation_id(conversation_id))
        if not found.update(title=check_title(title), title_source="person"):
            raise ConversationDoesNotExist(conversation_id)

    def clear(self, conversation_id: str) -> None:
        """See ConversationStore.clear(); one transaction, at any length."""
        using = self.writing
        check_conversation_id(conversation_id)
        with transaction.atomic(using):
            if queries.lock.run(using, id=conversation_id) is None:
                return
            for delete in queries.everything:
                delete.run(using, id=conversation_id)
            transaction.on_commit(
                partial(
                    conversation_cleared.send_robust, type(self), conversation_id=conversation_id
                ),
                using=using,
                robust=True,
            )

    def list_conversations(
        self,
        participant: Any,
        *,
        agent: str | None = None,
        per_page: int | None = None,
        cursor: str | None = None,
    ) -> ConversationPage:
        """See ConversationStore.list_conversations(); one statement."""
        using = self.reading
        size = cursors.check_per_page(per_page)
        after = cursors.read_conversation_cursor(cursor)
        owner = rows.participant_columns(self.participant_of(participant), using)
        found = self._opened(using).filter(**owner)
        if agent is not None:
            found = found.filter(agent=agent)
        if after is not None:
            moment, conversation_id = after
            found = found.filter(
                models.Q(last_activity__lt=moment)
                | models.Q(last_activity=moment, id__lt=conversation_id)
            )
        found = found.order_by("-last_activity", "-id")[: size + 1]
        conversations = [
            rows.stored_conversation(row, using) for row in found.values_list(*rows.CONVERSATION)
        ]
        return Page.of(conversations, size, cursors.conversation_cursor)

    def latest_conversation_id(self, participant: Any, agent: str) -> str | None:
        """See ConversationStore.latest_conversation_id(); one statement."""
        using = self.writing
        owner = self.participant_of(participant)
        if owner is None:
            raise InvalidParticipant("The last conversation of nobody cannot be told.")
        columns = rows.participant_columns(owner, using)
        found = queries.latest.rows(using, agent=agent, **columns)
        return found[0][0] if found else None

    def paginate_conversation_messages(
        self, conversation_id: str, *, per_page: int | None = None, cursor: str | None = None
    ) -> MessagePage:
        """See ConversationStore.paginate_conversation_messages(); one statement."""
        using = self.reading
        size = cursors.check_per_page(per_page)
        position = cursors.read_message_cursor(cursor)
        found = queries.page(size + 1).rows(
            using,
            id=check_conversation_id(conversation_id),
            position=rows.MAX_INTEGER if position is None else position,
        )
        return Page.of(rows.stored_messages(found, using), size, cursors.message_cursor)

    def _opened(self, using: str) -> models.QuerySet[Conversation]:
        return Conversation.objects.using(using).filter(opened_at__isnull=False)

    async def hop(self, work: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        """Run work on the thread of the caller's ORM, then give its connections back."""

        def performed() -> R:
            try:
                return work(*args, **kwargs)
            finally:
                for alias in {self.writing, self.reading}:
                    give_back(alias)

        return await sync_to_async(performed)()


def _stored_turn(reservation: Reservation, user_id: int, assistant_id: int) -> StoredTurn:
    return StoredTurn(
        reservation.conversation_id,
        reservation.turn_id,
        str(user_id),
        str(assistant_id),
        created=reservation.new or reservation.placeholder,
    )


def in_transaction(using: str) -> bool:
    """Tell whether a caller's transaction is open; that of a ``TestCase`` is not meant."""
    connection = connections[using]
    blocks = connection.atomic_blocks
    if blocks:
        return not blocks[-1]._from_testcase  # type: ignore[attr-defined]  # noqa: SLF001
    return connection.connection is not None and not connection.get_autocommit()


@contextmanager
def durable(using: str) -> Iterator[None]:
    """Open a transaction that ends with its block; raises ``TransactionOpen`` inside another."""
    if in_transaction(using):
        raise TransactionOpen
    with transaction.atomic(using, durable=True):
        yield


def give_back(using: str) -> None:
    """Close this thread's connection, or return it to its pool, unless a transaction is open."""
    connection = connections[using]
    if not connection.in_atomic_block and connection.autocommit:
        connection.close()
