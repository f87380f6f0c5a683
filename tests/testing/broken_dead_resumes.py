"""Stores that break one promise of what a dead worker did of a paused turn each."""

from __future__ import annotations

from dataclasses import replace

from agent_memory.approvals import Approval, ApprovalStatus
from agent_memory.messages import Step
from agent_memory.records import Reservation
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.stores.transcript import Transcript
from tests.testing.broken import breaks
from tests.testing.broken_approvals import paused_in

Store = InMemoryConversationStore


class _FoldsOtherwise(Store):
    """Makes something else of what a dead worker noted."""

    def fold(self, transcript: Transcript) -> None:
        raise NotImplementedError

    def _resume(self, transcript: Transcript, reservation: Reservation) -> None:
        dead = transcript.paused is not None and not self._is_held(transcript.id)
        if dead and transcript.journal:
            self.fold(transcript)
        super()._resume(transcript, reservation)


class _MistakesApprovals(_FoldsOtherwise):
    mistaken: tuple[ApprovalStatus, ApprovalStatus]

    def fold(self, transcript: Transcript) -> None:
        assert transcript.paused is not None
        there, taken_for = self.mistaken
        transcript.paused.approvals = tuple(
            replace(each, status=taken_for) if each.status == there else each
            for each in transcript.paused.approvals
        )


@breaks(
    "test_a_dead_resume_leaves_its_results_and_no_call_in_doubt",
    "test_a_dead_resume_leaves_the_steps_that_followed",
)
class ForgetsWhatADeadResumeDid(_FoldsOtherwise):
    def fold(self, transcript: Transcript) -> None:
        transcript.drop_journal()


@breaks("test_a_dead_resume_leaves_its_results_and_no_call_in_doubt")
class ApprovesAgainWhatADeadResumeClaimed(_MistakesApprovals):
    mistaken = ("claimed", "approved")


@breaks("test_a_dead_resume_leaves_its_results_and_no_call_in_doubt")
class FailsADeadResume(_FoldsOtherwise):
    def fold(self, transcript: Transcript) -> None:
        transcript.resume(self._tick())
        transcript.discard(ended=self._tick())


@breaks("test_what_a_dead_resume_did_not_claim_is_claimed_by_the_next")
class InterruptsWhatWasNotClaimed(_MistakesApprovals):
    mistaken = ("approved", "claimed")


@breaks("test_a_dead_resume_leaves_the_steps_that_followed")
class ForgetsTheStepsThatFollowed(_FoldsOtherwise):
    def fold(self, transcript: Transcript) -> None:
        transcript.journal = [
            entry for entry in transcript.journal if not isinstance(entry.value, Step)
        ]


@breaks("test_a_dead_resume_leaves_the_steps_that_followed")
class AsksAnewForADeadWorker(_FoldsOtherwise):
    def fold(self, transcript: Transcript) -> None:
        whole = transcript.resume(self._tick())
        transcript.settle(whole.turn, ended=self._tick())


@breaks("test_a_dead_resume_leaves_the_steps_that_followed")
class CountsNoTokensOfADeadResume(_FoldsOtherwise):
    def fold(self, transcript: Transcript) -> None:
        before = transcript.usage
        transcript.resume(self._tick())
        transcript.usage = before


@breaks("test_a_resume_that_is_given_up_after_a_claim_leaves_what_it_did")
class ForgetsWhatAResumeDidThatIsGivenUp(Store):
    def release(self, reservation: Reservation) -> None:
        if paused_in(self, reservation.conversation_id) is not None:
            self._transcripts[reservation.conversation_id].drop_journal()
        super().release(reservation)


@breaks("test_a_resume_that_is_given_up_after_a_claim_leaves_what_it_did")
class FreesTheClaimsOfAResumeThatIsGivenUp(Store):
    def release(self, reservation: Reservation) -> None:
        if (paused := paused_in(self, reservation.conversation_id)) is not None:
            paused.approvals = tuple(map(freed, paused.approvals))
        super().release(reservation)


def freed(approval: Approval) -> Approval:
    return replace(approval, status="approved") if approval.status == "claimed" else approval
