"""Which conversation an agent is bound to, and for whom it speaks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, Self

from agent_memory.agents import Agent
from agent_memory.exceptions import HistoryConflict, InvalidParticipant
from agent_memory.messages import Message
from agent_memory.participants import Participant
from agent_memory.records import StoredConversation, check_conversation_id
from agent_memory.signals import conversation_created
from agent_memory.stores import ConversationStore, get_store


@dataclass(frozen=True, slots=True)
class Binding:
    """Which conversation the next prompt goes to, and who speaks."""

    kind: Literal["unbound", "fresh", "one", "last", "none"] = "unbound"
    participant: Participant | None = None
    conversation_id: str | None = None
    must_own: bool | None = None


class BindsConversations(Agent):
    """
    The binding of an agent that remembers.

    Each method does no I/O, unless it says so, and returns a bound copy, which
    moves onto the conversation that it opens.
    """

    store: ConversationStore | str | None = None
    conversation_id: str | None = None

    _binding = Binding()

    def for_participant(self, participant: Any) -> Self:
        """
        Start a conversation that belongs to a saved instance; ``None``: to nobody.

        Raises ``InvalidParticipant``.
        """
        return self._bind(Binding("fresh", self._participant(participant)))

    def for_user(self, user: Any) -> Self:
        """See for_participant()."""
        return self.for_participant(user)

    def continue_conversation(
        self, conversation_id: str, participant: Any = None, *, must_own: bool | None = None
    ) -> Self:
        """
        Go on with a conversation.

        Ownership is not checked, unless ``must_own`` or the setting
        ``VERIFY_OWNERSHIP`` says so: then a conversation of somebody else does
        not exist. Raises ``InvalidConversationId`` and ``InvalidParticipant``;
        the first prompt raises ``ConversationDoesNotExist``.
        """
        check_conversation_id(conversation_id)
        speaker = self._participant(participant)
        return self._bind(Binding("one", speaker, conversation_id, must_own))

    def continue_or_start(
        self, conversation_id: str | None, participant: Any, *, must_own: bool | None = None
    ) -> Self:
        """
        Go on with a conversation, or start one when the id is ``None``.

        See continue_conversation() and for_participant().
        """
        if conversation_id is None:
            return self.for_participant(participant)
        return self.continue_conversation(conversation_id, participant, must_own=must_own)

    def continue_last_conversation(self, participant: Any) -> Self:
        """
        Go on with the conversation in which this participant and agent last spoke.

        It is looked up at the first prompt, by activity and whoever owns it; if
        there is none yet, one starts. Raises ``InvalidParticipant`` for ``None``.
        """
        speaker = self._participant(participant)
        if speaker is None:
            raise InvalidParticipant(
                "Nobody's last conversation cannot be told: keep its id, and use "
                "continue_conversation()."
            )
        return self._bind(Binding("last", speaker))

    def without_memory(self) -> Self:
        """Return a copy that neither loads nor stores."""
        return self._bind(Binding("none"))

    def start_conversation(
        self,
        participant: Any,
        *,
        title: str | None = None,
        leading: Iterable[Message] = (),
        conversation_id: str | None = None,
    ) -> Self:
        """
        Open an empty conversation in the store, and return an agent bound to it.

        ``leading`` are system or developer messages that stay in every window.
        The id is then ``agent.current_conversation_id``. Raises
        ``ConversationConflict`` when the given id is taken.
        """
        stored = self._store().create(conversation_id, **self._opening(participant, title, leading))
        conversation_created.send_robust(type(self), **_created(stored))
        return self._bind(Binding("one", stored.participant, stored.id))

    async def astart_conversation(
        self,
        participant: Any,
        *,
        title: str | None = None,
        leading: Iterable[Message] = (),
        conversation_id: str | None = None,
    ) -> Self:
        """See start_conversation()."""
        stored = await self._store().acreate(
            conversation_id, **self._opening(participant, title, leading)
        )
        await conversation_created.asend_robust(type(self), **_created(stored))
        return self._bind(Binding("one", stored.participant, stored.id))

    @property
    def current_conversation_id(self) -> str | None:
        """The conversation that the next prompt goes to, as far as it is known."""
        if self._binding.kind == "unbound":
            return self.conversation_id
        return self._binding.conversation_id

    def with_messages(self, messages: Iterable[Message]) -> Self:
        """See Agent.with_messages(); allowed after without_memory()."""
        if self._binding.kind != "none":
            raise HistoryConflict(
                f"{type(self).__name__} remembers conversations: call without_memory() before "
                "with_messages()."
            )
        return super().with_messages(messages)

    def _store(self) -> ConversationStore:
        return get_store(self.store)

    def _participant(self, obj: Any) -> Participant | None:
        return self._store().participant_of(obj)

    def _opening(
        self, participant: Any, title: str | None, leading: Iterable[Message]
    ) -> dict[str, Any]:
        return {
            "participant": self._participant(participant),
            "agent": self.get_label(),
            "title": title or "",
            "leading": tuple(leading),
        }

    def _bind(self, binding: Binding) -> Self:
        if self._given_messages is not None and binding.kind != "none":
            raise HistoryConflict("This agent was given its history by with_messages().")
        return self._copy(_binding=binding)


def _created(stored: StoredConversation) -> dict[str, Any]:
    return {"conversation_id": stored.id, "participant": stored.participant}
