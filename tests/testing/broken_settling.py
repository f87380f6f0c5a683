"""Stores that break one promise of how a paused turn ends each."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agent_memory.approvals import Approval
from agent_memory.messages import Turn
from agent_memory.records import Reservation, StoredTurn, new_id
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.stores.kept import KeptTurn
from agent_memory.stores.transcript import Transcript
from tests.testing.broken import breaks
from tests.testing.broken_approvals import paused_in

Store = InMemoryConversationStore


class _SettlesOtherwise(Store):
    """Does something before a turn is settled, and something after."""

    def before(self, kept: Transcript, paused: KeptTurn, turn: Turn | None) -> None:
        pass

    def after(self, kept: Transcript, paused: KeptTurn, turn: Turn | None) -> None:
        pass

    def settle(
        self, conversation: Any, turn: Turn | None, *, reservation: Reservation
    ) -> StoredTurn | None:
        kept = self._transcripts.get(reservation.conversation_id)
        paused = None if kept is None else kept.paused
        if kept is None or paused is None:
            return super().settle(conversation, turn, reservation=reservation)
        self.before(kept, paused, turn)
        stored = super().settle(conversation, turn, reservation=reservation)
        self.after(kept, paused, turn)
        return stored


# In its place.


@breaks("test_a_settled_turn_stands_where_it_was_paused")
class WritesTheSettledTurnAnew(Store):
    def settle(
        self, conversation: Any, turn: Turn | None, *, reservation: Reservation
    ) -> StoredTurn | None:
        stored = super().settle(conversation, turn, reservation=reservation)
        kept = self._transcripts[reservation.conversation_id]
        if stored is None:
            return None
        kept.messages[-1] = replace(kept.messages[-1], id=new_id())
        return replace(stored, assistant_message_id=kept.messages[-1].id)


@breaks("test_a_settled_turn_stands_where_it_was_paused")
class KeepsTheReservationOfASettledTurn(Store):
    def settle(
        self, conversation: Any, turn: Turn | None, *, reservation: Reservation
    ) -> StoredTurn | None:
        held = self._held.get(reservation.conversation_id)
        stored = super().settle(conversation, turn, reservation=reservation)
        if held is not None:
            self._held[reservation.conversation_id] = held
        return stored


@breaks("test_a_settled_turn_stands_where_it_was_paused")
class ShowsThePausedFormOn(_SettlesOtherwise):
    def before(self, kept: Transcript, paused: KeptTurn, turn: Turn | None) -> None:
        self.shown = kept.messages[-1]

    def after(self, kept: Transcript, paused: KeptTurn, turn: Turn | None) -> None:
        if turn is not None:
            kept.messages[-1] = self.shown


@breaks("test_a_turn_settled_adds_the_tokens_that_it_took_since_the_pause")
class CountsThePausedTurnTwice(_SettlesOtherwise):
    def before(self, kept: Transcript, paused: KeptTurn, turn: Turn | None) -> None:
        kept.usage += paused.turn.usage


@breaks("test_a_turn_settled_adds_the_tokens_that_it_took_since_the_pause")
class CountsTheTitleAgain(_SettlesOtherwise):
    def after(self, kept: Transcript, paused: KeptTurn, turn: Turn | None) -> None:
        if turn is not None:
            kept.usage += turn.title_usage


@breaks("test_settling_is_activity")
class SettlesInSilence(_SettlesOtherwise):
    def before(self, kept: Transcript, paused: KeptTurn, turn: Turn | None) -> None:
        self.moment = kept.last_activity

    def after(self, kept: Transcript, paused: KeptTurn, turn: Turn | None) -> None:
        kept.last_activity = self.moment


@breaks("test_a_key_finds_what_became_of_a_paused_turn")
class FindsThePausedFormByItsKey(_SettlesOtherwise):
    def after(self, kept: Transcript, paused: KeptTurn, turn: Turn | None) -> None:
        if turn is not None and paused.once is not None:
            form = turn.model_copy(update={"status": "paused", "error": None})
            kept.keys[paused.once.key] = replace(paused, turn=form)


@breaks("test_a_key_finds_what_became_of_a_paused_turn")
class ForgetsTheKeyOfASettledTurn(_SettlesOtherwise):
    def after(self, kept: Transcript, paused: KeptTurn, turn: Turn | None) -> None:
        kept.keys.clear()


@breaks("test_a_paused_turn_may_end_as_failed")
class CompletesWhateverItSettles(Store):
    def settle(
        self, conversation: Any, turn: Turn | None, *, reservation: Reservation
    ) -> StoredTurn | None:
        if turn is not None and turn.status == "failed":
            turn = turn.model_copy(update={"status": "completed", "error": None})
        return super().settle(conversation, turn, reservation=reservation)


# Paused again.


@breaks("test_a_turn_may_pause_again_at_a_later_step")
class PausesOnce(_SettlesOtherwise):
    def before(self, kept: Transcript, paused: KeptTurn, turn: Turn | None) -> None:
        self.asked = paused.approvals

    def after(self, kept: Transcript, paused: KeptTurn, turn: Turn | None) -> None:
        if turn is not None and turn.status == "paused":
            paused.approvals = self.asked


@breaks("test_a_turn_may_pause_again_at_a_later_step")
class ShowsEarlierPausesToo(_SettlesOtherwise):
    def before(self, kept: Transcript, paused: KeptTurn, turn: Turn | None) -> None:
        self.asked = paused.approvals

    def after(self, kept: Transcript, paused: KeptTurn, turn: Turn | None) -> None:
        if paused.approvals and paused.approvals[0].step:
            paused.approvals = (*self.asked, *paused.approvals)


@breaks("test_a_turn_may_pause_again_at_a_later_step")
class ForgetsOpaqueBlocksOfALaterPause(_SettlesOtherwise):
    def after(self, kept: Transcript, paused: KeptTurn, turn: Turn | None) -> None:
        steps = tuple(step.model_copy(update={"replay": None}) for step in paused.turn.steps)
        paused.turn = paused.turn.model_copy(update={"steps": steps})


class _ChangesWhatStaysPaused(_SettlesOtherwise):
    change: Callable[[Approval], Approval]

    def after(self, kept: Transcript, paused: KeptTurn, turn: Turn | None) -> None:
        paused.approvals = tuple(map(type(self).change, paused.approvals))


@breaks("test_a_turn_that_stays_paused_keeps_its_decisions_and_what_it_did")
class AsksAgainWhatWasDecided(_ChangesWhatStaysPaused):
    @staticmethod
    def change(approval: Approval) -> Approval:
        return replace(approval, status="pending", text="")


@breaks("test_a_turn_that_stays_paused_keeps_its_decisions_and_what_it_did")
class ApprovesAgainWhatIsDone(_ChangesWhatStaysPaused):
    @staticmethod
    def change(approval: Approval) -> Approval:
        return replace(approval, status="approved") if approval.status == "done" else approval


# Given up.


@breaks("test_a_turn_given_up_before_a_tool_started_is_gone")
class FailsWhateverIsGivenUp(Store):
    def settle(
        self, conversation: Any, turn: Turn | None, *, reservation: Reservation
    ) -> StoredTurn | None:
        paused = paused_in(self, reservation.conversation_id)
        if turn is None and paused is not None:
            turn = paused.turn.model_copy(update={"status": "failed"})
        return super().settle(conversation, turn, reservation=reservation)


@breaks("test_a_turn_given_up_before_a_tool_started_is_gone")
class KeepsTheKeyOfWhatIsGone(_SettlesOtherwise):
    def after(self, kept: Transcript, paused: KeptTurn, turn: Turn | None) -> None:
        if turn is None and paused.once is not None:
            kept.keys[paused.once.key] = paused


@breaks("test_a_turn_given_up_before_a_tool_started_is_gone")
class TakesTheTokensOfWhatIsGoneBack(_SettlesOtherwise):
    def after(self, kept: Transcript, paused: KeptTurn, turn: Turn | None) -> None:
        if turn is None and paused not in kept.turns:
            kept.usage = type(kept.usage)()


@breaks("test_a_turn_given_up_before_a_tool_started_is_gone")
class LeavesAGapWhereATurnWas(_SettlesOtherwise):
    def after(self, kept: Transcript, paused: KeptTurn, turn: Turn | None) -> None:
        self.gap = turn is None

    def append(self, conversation: Any, turn: Turn, **kwargs: Any) -> StoredTurn:
        stored = super().append(conversation, turn, **kwargs)
        if getattr(self, "gap", False):
            messages = self._transcripts[stored.conversation_id].messages
            messages[-2:] = [replace(each, position=each.position + 2) for each in messages[-2:]]
        return stored


@breaks("test_a_turn_that_is_gone_was_not_spoken")
class RemembersWhoSpokeWhatIsGone(_SettlesOtherwise):
    def before(self, kept: Transcript, paused: KeptTurn, turn: Turn | None) -> None:
        self.spoke = dict(kept.spoke)

    def after(self, kept: Transcript, paused: KeptTurn, turn: Turn | None) -> None:
        kept.spoke = self.spoke


@breaks("test_a_turn_that_is_gone_was_not_spoken")
class ForgetsWhoSpokeBefore(_SettlesOtherwise):
    def after(self, kept: Transcript, paused: KeptTurn, turn: Turn | None) -> None:
        kept.spoke.clear()


@breaks("test_calls_that_were_denied_have_not_started")
class TakesADenialForAStart(Store):
    def settle(
        self, conversation: Any, turn: Turn | None, *, reservation: Reservation
    ) -> StoredTurn | None:
        paused = paused_in(self, reservation.conversation_id)
        if turn is None and paused is not None and paused.turn.tool_results():
            turn = paused.turn.model_copy(update={"status": "failed"})
        return super().settle(conversation, turn, reservation=reservation)


@breaks(
    "test_a_turn_given_up_after_a_tool_had_started_is_kept_as_failed",
    "test_a_turn_given_up_tells_of_each_call_that_may_have_run",
)
class DropsWhateverIsGivenUp(_SettlesOtherwise):
    def before(self, kept: Transcript, paused: KeptTurn, turn: Turn | None) -> None:
        if turn is None:
            steps = tuple(step.model_copy(update={"items": ()}) for step in paused.turn.steps)
            paused.turn = paused.turn.model_copy(update={"steps": steps})
            paused.approvals = ()
            kept.drop_journal()


@breaks("test_a_turn_given_up_after_a_tool_had_started_is_kept_as_failed")
class DoesNotSayWhyATurnFailed(_SettlesOtherwise):
    def after(self, kept: Transcript, paused: KeptTurn, turn: Turn | None) -> None:
        if turn is None and paused in kept.turns:
            kept.rewrite(paused, paused.turn.model_copy(update={"error": None}), ended=self._tick())


@breaks("test_a_turn_given_up_tells_of_each_call_that_may_have_run")
class ForgetsClaimsOfWhatIsGivenUp(_SettlesOtherwise):
    def before(self, kept: Transcript, paused: KeptTurn, turn: Turn | None) -> None:
        if turn is None and kept.journal:
            paused.approvals = tuple(
                replace(each, status="approved") if each.status == "claimed" else each
                for each in paused.approvals
            )


# Who may not.


@breaks("test_whoever_resumes_a_turn_appends_none_behind_it")
class AppendsBehindAPause(Store):
    def append(
        self, conversation: Any, turn: Turn, *, reservation: Reservation | None = None
    ) -> StoredTurn:
        if reservation is not None:
            reservation = replace(reservation, paused=None)
        return super().append(conversation, turn, reservation=reservation)


@breaks("test_only_whoever_resumes_a_turn_settles_it")
class LetsAnybodySettle(Store):
    def settle(
        self, conversation: Any, turn: Turn | None, *, reservation: Reservation
    ) -> StoredTurn | None:
        if paused_in(self, reservation.conversation_id) is not None:
            self._held.pop(reservation.conversation_id, None)
            self._hold(reservation)
        return super().settle(conversation, turn, reservation=reservation)


@breaks("test_only_whoever_resumes_a_turn_settles_it")
class DropsAtOnceWhatNobodyHolds(Store):
    def settle(
        self, conversation: Any, turn: Turn | None, *, reservation: Reservation
    ) -> StoredTurn | None:
        held = self._held.get(reservation.conversation_id)
        if turn is None and (held is None or held.until <= time.monotonic()):
            return None
        return super().settle(conversation, turn, reservation=reservation)
