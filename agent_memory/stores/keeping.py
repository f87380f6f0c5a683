"""The conversation itself: opened, named, handed over, listed and read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent_memory.history import check_leading
from agent_memory.messages import Message
from agent_memory.participants import Participant
from agent_memory.records import (
    ConversationPage,
    Heading,
    MessagePage,
    StoredConversation,
    check_conversation_id,
    check_title,
    new_id,
)
from agent_memory.stores.cursors import (
    check_per_page,
    read_conversation_cursor,
    read_message_cursor,
)
from agent_memory.stores.participants import Knowing
from agent_memory.stores.twins import Twinned, twin


@dataclass(frozen=True, slots=True)
class Listing:
    """
    Which conversations are asked for: those of an owner, and of an agent unless ``None``.

    ``after`` is the last activity and the id behind which the page begins.
    """

    owner: Participant | None
    agent: str | None
    size: int
    after: tuple[datetime, str] | None


class Keeping(Knowing, Twinned):
    """The part of a store that knows conversations; each method is missing until it is written."""

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
        heading = Heading(
            new_id() if conversation_id is None else conversation_id,
            self.participant_of(participant),
            agent,
            check_title(title),
            "person" if title else "",
        )
        return self._create(heading, check_leading(leading))

    def _create(self, heading: Heading, leading: tuple[Message, ...]) -> StoredConversation:
        """See create()."""
        self._missing("create")

    def get(self, conversation_id: str) -> StoredConversation | None:
        """Return a conversation, or ``None`` for an unknown id."""
        self._missing("get")

    def rename(self, conversation_id: str, title: str) -> None:
        """
        Give a conversation a person's title, which no draft overwrites.

        Raises ``ConversationDoesNotExist``, and ``ValueError`` for what no store can hold.
        """
        self._missing("rename")

    def transfer_conversation(self, conversation_id: str, participant: Any) -> None:
        """
        Hand a conversation over; ``None`` makes it nobody's.

        What nobody said in a conversation of nobody's is the new owner's then;
        what somebody said stays theirs, and a running turn goes on. Raises
        ``ConversationDoesNotExist``.
        """
        self._missing("transfer_conversation")

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
        size, after = check_per_page(per_page), read_conversation_cursor(cursor)
        return self._list(Listing(self.participant_of(participant), agent, size, after))

    def _list(self, listing: Listing) -> ConversationPage:
        """See list_conversations()."""
        self._missing("list_conversations")

    def latest_conversation_id(self, participant: Any, agent: str) -> str | None:
        """
        Return the conversation in which this participant and this agent last spoke.

        By activity, whoever owns it; one without messages does not count. Raises
        ``InvalidParticipant`` for ``None``.
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
        size, below = check_per_page(per_page), read_message_cursor(cursor)
        return self._page(check_conversation_id(conversation_id), size, below)

    def _page(self, conversation_id: str, size: int, below: int | None) -> MessagePage:
        """See paginate_conversation_messages(); ``below`` a position, where it is set."""
        self._missing("paginate_conversation_messages")

    def read_attachment(self, conversation_id: str, attachment_id: str) -> bytes:
        """
        Return the bytes of an attachment of a message, by the id that it has on a page.

        Raises ``AttachmentDoesNotExist``.
        """
        self._missing("read_attachment")

    acreate = twin(create)
    aget = twin(get)
    arename = twin(rename)
    atransfer_conversation = twin(transfer_conversation)
    aanonymise_participant = twin(anonymise_participant)
    alist_conversations = twin(list_conversations)
    alatest_conversation_id = twin(latest_conversation_id)
    aconversation_belongs_to = twin(conversation_belongs_to)
    apaginate_conversation_messages = twin(paginate_conversation_messages)
    aread_attachment = twin(read_attachment)
