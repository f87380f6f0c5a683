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


@breaks("test_what_is_nobodys_is_handed_over_with_what_nobody_said")
class HandsOverWithoutWhatNobodySaid(Store):
    def transfer_conversation(self, conversation_id: str, participant: Any) -> None:
        self._transcripts[conversation_id].participant = self.participant_of(participant)


@breaks("test_what_is_nobodys_is_handed_over_with_what_nobody_said")
class HandsOverAllThatIsNobodys(Store):
    def transfer_conversation(self, conversation_id: str, participant: Any) -> None:
        super().transfer_conversation(conversation_id, participant)
        for transcript in self._transcripts.values():
            if transcript.participant is None:
                transcript.transfer(self.participant_of(participant))


@breaks("test_what_is_somebodys_is_handed_over_without_what_they_said")
class HandsOverWhatTheOwnerSaid(Store):
    def transfer_conversation(self, conversation_id: str, participant: Any) -> None:
        transcript = self._transcripts.get(conversation_id)
        if transcript is not None and transcript.participant is not None:
            transcript.anonymise(transcript.participant)
        super().transfer_conversation(conversation_id, participant)


@breaks("test_what_is_somebodys_is_handed_over_without_what_they_said")
class HandsOverNothingOfSomebodys(Store):
    def transfer_conversation(self, conversation_id: str, participant: Any) -> None:
        stored = self.get(conversation_id)
        if stored is None or stored.participant is None:
            super().transfer_conversation(conversation_id, participant)


@breaks("test_handing_over_changes_nothing_but_the_owner")
class CountsHandingOverAsActivity(Store):
    def transfer_conversation(self, conversation_id: str, participant: Any) -> None:
        super().transfer_conversation(conversation_id, participant)
        self._transcripts[conversation_id].last_activity = self._tick()


@breaks("test_what_is_not_there_cannot_be_handed_over_nor_to_what_can_own_nothing")
class HandsOverWhatIsMerelyReserved(Store):
    def _opened(self, conversation_id: str) -> Transcript | None:
        return self._transcripts.get(conversation_id)

    def get(self, conversation_id: str) -> StoredConversation | None:
        opened = super()._opened(conversation_id)
        return None if opened is None else opened.stored()


@breaks("test_what_is_not_there_cannot_be_handed_over_nor_to_what_can_own_nothing")
class HandsNothingOverQuietly(Store):
    def transfer_conversation(self, conversation_id: str, participant: Any) -> None:
        if self.get(conversation_id) is not None:
            super().transfer_conversation(conversation_id, participant)


@breaks("test_a_turn_that_runs_goes_on_when_its_conversation_is_handed_over")
class CutsOffWhenHandingOver(Store):
    def transfer_conversation(self, conversation_id: str, participant: Any) -> None:
        super().transfer_conversation(conversation_id, participant)
        self._cut_off(self._transcripts[conversation_id])


@breaks("test_all_conversations_of_a_participant_are_cleared_and_no_others")
class ClearsTheFirstPage(Store):
    def clear_conversations(self, participant: Any) -> None:
        for stored in self.list_conversations(self._somebody(participant)):
            self.clear(stored.id)


@breaks("test_all_conversations_of_a_participant_are_cleared_and_no_others")
class ClearsWhereverTheySpoke(Store):
    def clear_conversations(self, participant: Any) -> None:
        speaker = self._somebody(participant)
        for transcript in [*self._transcripts.values()]:
            if speaker in {who for who, _ in transcript.spoke}:
                self.clear(transcript.id)


@breaks("test_a_participant_becomes_nobody_wherever_they_are_and_others_stay")
class MakesNobodyOfOwnersAlone(Store):
    def anonymise_participant(self, participant: Any) -> None:
        gone = self._somebody(participant)
        for transcript in self._transcripts.values():
            if transcript.participant == gone:
                transcript.anonymise(gone)


@breaks("test_a_participant_becomes_nobody_wherever_they_are_and_others_stay")
class MakesNobodyOfAllWithTheKey(Store):
    def anonymise_participant(self, participant: Any) -> None:
        gone = self._somebody(participant)
        super().anonymise_participant(gone)
        for transcript in self._transcripts.values():
            for speaker in {who for who, _ in transcript.spoke if who and who.key == gone.key}:
                transcript.anonymise(speaker)


@breaks("test_who_decided_becomes_nobody_too")
class RemembersWhoDecided(Store):
    def anonymise_participant(self, participant: Any) -> None:
        kept = {
            transcript.id: transcript.paused.approvals
            for transcript in self._transcripts.values()
            if transcript.paused is not None
        }
        super().anonymise_participant(participant)
        for conversation_id, approvals in kept.items():
            paused = self._transcripts[conversation_id].paused
            assert paused is not None
            paused.approvals = approvals


@breaks(
    "test_a_turn_that_runs_when_its_owner_becomes_nobody_is_not_saved",
    "test_what_it_did_so_far_is_recorded_as_said_by_nobody",
    "test_a_paused_turn_that_is_resumed_then_stays_paused",
)
class LetsTurnsOfWhoIsGoneGoOn(Store):
    def _cut_off(self, transcript: Transcript) -> None:
        pass


@breaks("test_a_turn_that_runs_when_its_owner_becomes_nobody_is_not_saved")
class CutsOffEveryTurn(Store):
    def anonymise_participant(self, participant: Any) -> None:
        super().anonymise_participant(participant)
        self._held.clear()


@breaks("test_what_it_did_so_far_is_recorded_as_said_by_nobody")
class ForgetsWhatWasDoneSoFar(Store):
    def _cut_off(self, transcript: Transcript) -> None:
        transcript.drop_journal()
        super()._cut_off(transcript)


@breaks("test_what_it_did_so_far_is_recorded_as_said_by_nobody")
class RecordsWhoIsGone(Store):
    def anonymise_participant(self, participant: Any) -> None:
        gone = self._somebody(participant)
        for transcript in self._transcripts.values():
            transcript.anonymise(gone)
            self._cut_off(transcript)


@breaks("test_a_paused_turn_that_is_resumed_then_stays_paused")
class DropsAPauseThatIsResumed(Store):
    def _cut_off(self, transcript: Transcript) -> None:
        if transcript.paused is not None:
            transcript.discard(ended=self._tick())
        self._held.pop(transcript.id, None)


@breaks("test_only_somebody_can_be_cleared_or_become_nobody")
class ClearsAllThatIsNobodys(Store):
    def _somebody(self, obj: Any) -> Any:
        return self.participant_of(obj)
