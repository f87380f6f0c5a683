"""Stores that break one promise of ownership each."""

from __future__ import annotations

from typing import Any

from agent_memory.exceptions import ConversationDoesNotExist, InvalidParticipant
from agent_memory.participants import Participant
from agent_memory.records import Heading, Reservation, StoredConversation
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.stores.transcript import Transcript
from tests.testing.broken import breaks
from tests.testing.broken_conversations import ChangesAfterAppend

Store = InMemoryConversationStore


@breaks("test_a_conversation_belongs_to_its_type_and_key_together")
class BelongsByKeyAlone(Store):
    def conversation_belongs_to(self, conversation_id: str, participant: Any) -> bool:
        stored, owner = self.get(conversation_id), self.participant_of(participant)
        if stored is None or stored.participant is None or owner is None:
            return super().conversation_belongs_to(conversation_id, participant)
        return stored.participant.key == owner.key


@breaks("test_a_conversation_belongs_to_its_type_and_key_together")
class BelongsByTypeAlone(Store):
    def conversation_belongs_to(self, conversation_id: str, participant: Any) -> bool:
        stored, owner = self.get(conversation_id), self.participant_of(participant)
        if stored is None or stored.participant is None or owner is None:
            return super().conversation_belongs_to(conversation_id, participant)
        return stored.participant.type == owner.type


@breaks("test_a_conversation_without_an_owner_belongs_to_nobody")
class WithoutOwnerBelongsToAll(Store):
    def conversation_belongs_to(self, conversation_id: str, participant: Any) -> bool:
        stored = self.get(conversation_id)
        return (stored is not None and stored.participant is None) or (
            super().conversation_belongs_to(conversation_id, participant)
        )


@breaks("test_the_owner_stays_when_somebody_else_speaks")
class BelongsToWhoSpokeLast(ChangesAfterAppend):
    def change(self, kept: Any, before: StoredConversation | None, heading: Heading) -> None:
        kept.participant = heading.participant


@breaks("test_must_own_lets_the_owner_in_and_creates_what_is_new")
class CreatesNothingThatIsToBeOwned(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        if kwargs.get("must_own") and conversation_id is not None:
            kwargs["create"] = False
        return super().reserve(conversation_id, **kwargs)


@breaks("test_without_must_own_anybody_goes_on")
class AsksAlwaysForTheOwner(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        return super().reserve(conversation_id, **{**kwargs, "must_own": True})


@breaks("test_with_must_own_a_foreign_conversation_looks_like_a_missing_one")
class AsksNeverForTheOwner(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        return super().reserve(conversation_id, **{**kwargs, "must_own": False})


@breaks("test_with_must_own_a_foreign_conversation_looks_like_a_missing_one")
class IsBusyForStrangers(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        if isinstance(conversation_id, str) and conversation_id in self._held:
            self._hold(Reservation(conversation_id, "token"))
        return super().reserve(conversation_id, **kwargs)


@breaks("test_with_must_own_a_foreign_conversation_looks_like_a_missing_one")
class SaysWhoseItIs(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        try:
            return super().reserve(conversation_id, **kwargs)
        except ConversationDoesNotExist as missing:
            if missing.conversation_id in self._transcripts:
                missing.args = ("It belongs to somebody else.",)
            raise


@breaks("test_a_foreign_first_turn_looks_like_a_missing_conversation")
class PlaceholdersBelongToNobody(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        kept = self._transcripts.get(str(conversation_id))
        if kept is not None and kept.opened_at is None:
            kwargs["must_own"] = False
        return super().reserve(conversation_id, **kwargs)


@breaks("test_a_dead_first_turn_belongs_to_nobody")
class LeavesADeadFirstTurnToItsSpeaker(Store):
    def _living(self, conversation_id: str) -> Transcript | None:
        return self._transcripts.get(conversation_id)


@breaks("test_a_dead_first_turn_belongs_to_nobody")
class FindsADeadFirstTurn(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        kept = self._transcripts.get(str(conversation_id))
        if kept is not None and kept.is_hidden and not self._is_held(kept.id):
            kwargs["create"] = True
        return super().reserve(conversation_id, **kwargs)


@breaks("test_what_can_own_no_conversation_is_refused_before_anything_is_changed")
class TakesAnybody(Store):
    def participant_of(self, obj: Any) -> Participant | None:
        try:
            return super().participant_of(obj)
        except InvalidParticipant:
            return Participant(type(obj).__name__, "1")
