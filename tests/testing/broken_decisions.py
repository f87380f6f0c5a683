"""Stores that break one promise of deciding each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from agent_memory.approvals import Approval, Approve, Deny, Edit, PendingApproval
from agent_memory.exceptions import (
    ApprovalMismatch,
    ApprovalNotResumable,
    ConversationBusy,
    ConversationDoesNotExist,
    InvalidParticipant,
)
from agent_memory.stores.inmemory import InMemoryConversationStore
from tests.testing.broken import breaks
from tests.testing.broken_approvals import paused_in

Store = InMemoryConversationStore
Pending = tuple[PendingApproval, ...]


class _ChangesWhatIsDecided(Store):
    """Keeps something else of a decision than what was decided."""

    def change(self, approval: Approval) -> Approval:
        raise NotImplementedError

    def decide(self, conversation_id: str, decisions: Any, **kwargs: Any) -> Pending:
        waiting = super().decide(conversation_id, decisions, **kwargs)
        paused = paused_in(self, conversation_id)
        assert paused is not None
        paused.approvals = tuple(
            each if each.is_undecided else self.change(each) for each in paused.approvals
        )
        return waiting


# What is kept.


@breaks("test_decisions_are_kept_with_who_made_them_and_why")
class ForgetsWhoDecided(_ChangesWhatIsDecided):
    def change(self, approval: Approval) -> Approval:
        return replace(approval, decided_by=None)


@breaks("test_decisions_are_kept_with_who_made_them_and_why")
class ForgetsWhenItWasDecided(_ChangesWhatIsDecided):
    def change(self, approval: Approval) -> Approval:
        return replace(approval, decided_at=None)


@breaks("test_decisions_are_kept_with_who_made_them_and_why")
class CutsNotes(_ChangesWhatIsDecided):
    def change(self, approval: Approval) -> Approval:
        return replace(approval, note=approval.note[:255])


@breaks("test_decisions_are_kept_with_who_made_them_and_why")
class KeepsEditedArgumentsAlone(_ChangesWhatIsDecided):
    def change(self, approval: Approval) -> Approval:
        arguments = approval.asked.arguments if approval.edited is None else approval.edited
        return replace(approval, asked=replace(approval.asked, arguments=arguments))


@breaks("test_what_is_left_waits_on")
class DeniesWhatIsNotNamed(Store):
    def decide(self, conversation_id: str, decisions: Any, **kwargs: Any) -> Pending:
        if isinstance(decisions, Mapping) and decisions:
            decisions = {"*": Deny(), **decisions}
        return super().decide(conversation_id, decisions, **kwargs)


@breaks("test_what_is_left_waits_on")
class ReturnsWhatWaitedBefore(Store):
    def decide(self, conversation_id: str, decisions: Any, **kwargs: Any) -> Pending:
        before = self.pending_approvals_for(conversation_id)
        super().decide(conversation_id, decisions, **kwargs)
        return before


@breaks("test_a_star_decides_on_all_that_no_other_key_names")
class LetsTheStarDecideOnAll(Store):
    def decide(self, conversation_id: str, decisions: Any, **kwargs: Any) -> Pending:
        if isinstance(decisions, Mapping) and decisions.get("*") is not None:
            decisions = dict.fromkeys(decisions, decisions["*"])
        return super().decide(conversation_id, decisions, **kwargs)


@breaks("test_a_star_decides_on_all_that_no_other_key_names")
class LetsTheStarDecideAgain(Store):
    def decide(self, conversation_id: str, decisions: Any, **kwargs: Any) -> Pending:
        waiting = super().decide(conversation_id, decisions, **kwargs)
        if "*" in decisions and (paused := paused_in(self, conversation_id)) is not None:
            paused.approvals = tuple(
                replace(each, status="approved", text="") for each in paused.approvals
            )
        return waiting


@breaks("test_what_a_person_wrote_comes_back_equal")
class ReplacesSurrogatesOfDecisions(_ChangesWhatIsDecided):
    def change(self, approval: Approval) -> Approval:
        text = approval.text.encode("utf-8", "replace").decode()
        return replace(approval, text=text)


@breaks("test_what_a_person_wrote_comes_back_equal")
class SortsEditedArguments(_ChangesWhatIsDecided):
    def change(self, approval: Approval) -> Approval:
        edited = approval.edited
        return replace(approval, edited=json.loads(json.dumps(edited, sort_keys=True)))


@breaks("test_what_a_person_wrote_comes_back_equal")
class TakesNoArgumentsForNoEdit(_ChangesWhatIsDecided):
    def change(self, approval: Approval) -> Approval:
        return replace(approval, edited=approval.edited or None)


@breaks("test_what_a_caller_does_to_decisions_given_changes_nothing_stored")
class SharesDecisions(Store):
    def decide(self, conversation_id: str, decisions: Any, **kwargs: Any) -> Pending:
        waiting = super().decide(conversation_id, decisions, **kwargs)
        paused, edit = paused_in(self, conversation_id), decisions.get("*")
        if paused is not None and isinstance(edit, Edit):
            paused.approvals = tuple(
                replace(each, edited=edit.arguments) for each in paused.approvals
            )
        return waiting


@breaks("test_a_decision_is_made_while_the_turn_is_resumed")
class IsTooBusyToDecide(Store):
    def decide(self, conversation_id: str, decisions: Any, **kwargs: Any) -> Pending:
        if self._is_held(conversation_id):
            raise ConversationBusy(conversation_id, since=datetime.now(UTC), retry_after=1)
        return super().decide(conversation_id, decisions, **kwargs)


@breaks("test_a_decision_is_made_while_the_turn_is_resumed")
class TakesTheTurnToDecide(Store):
    def decide(self, conversation_id: str, decisions: Any, **kwargs: Any) -> Pending:
        waiting = super().decide(conversation_id, decisions, **kwargs)
        self._held.pop(conversation_id, None)
        return waiting


# What is refused.


@breaks("test_a_call_is_decided_once")
class DecidesAgain(Store):
    def decide(self, conversation_id: str, decisions: Any, **kwargs: Any) -> Pending:
        if (paused := paused_in(self, conversation_id)) is not None:
            paused.approvals = tuple(
                replace(each, status="pending", text="", edited=None)
                if isinstance(decisions, Mapping) and each.asked.id in decisions
                else each
                for each in paused.approvals
            )
        return super().decide(conversation_id, decisions, **kwargs)


@breaks("test_a_call_is_decided_once")
class TakesALateStarForDone(Store):
    def decide(self, conversation_id: str, decisions: Any, **kwargs: Any) -> Pending:
        try:
            return super().decide(conversation_id, decisions, **kwargs)
        except ApprovalMismatch as error:
            if list(decisions) != ["*"]:
                raise
            return error.pending


@breaks("test_all_that_are_named_are_decided_or_none")
class DecidesWhatItCan(Store):
    def decide(self, conversation_id: str, decisions: Any, **kwargs: Any) -> Pending:
        try:
            return super().decide(conversation_id, decisions, **kwargs)
        except ApprovalMismatch as error:
            waiting = {asked.id for asked in error.pending}
            known = {key: value for key, value in decisions.items() if key in waiting}
            if known:
                super().decide(conversation_id, known, **kwargs)
            raise


@breaks("test_all_that_are_named_are_decided_or_none")
class IgnoresUnknownCalls(Store):
    def decide(self, conversation_id: str, decisions: Any, **kwargs: Any) -> Pending:
        try:
            return super().decide(conversation_id, decisions, **kwargs)
        except ApprovalMismatch as error:
            if "*" not in decisions or len(decisions) == 1:
                raise
            return error.pending


@breaks("test_all_that_are_named_are_decided_or_none")
class TellsNotWhatReallyWaits(Store):
    def decide(self, conversation_id: str, decisions: Any, **kwargs: Any) -> Pending:
        try:
            return super().decide(conversation_id, decisions, **kwargs)
        except ApprovalMismatch as error:
            error.pending = ()
            raise


@breaks("test_a_call_that_has_expired_is_not_decided")
class DecidesWhatHasExpired(Store):
    def decide(self, conversation_id: str, decisions: Any, **kwargs: Any) -> Pending:
        if (paused := paused_in(self, conversation_id)) is None:
            return super().decide(conversation_id, decisions, **kwargs)
        expires = [each.asked.expires_at for each in paused.approvals]
        paused.approvals = tuple(
            replace(each, asked=replace(each.asked, expires_at=None)) for each in paused.approvals
        )
        try:
            return super().decide(conversation_id, decisions, **kwargs)
        finally:
            paused.approvals = tuple(
                replace(each, asked=replace(each.asked, expires_at=at))
                for each, at in zip(paused.approvals, expires, strict=True)
            )


@breaks("test_what_is_no_decision_is_refused")
class LeavesOutWhatIsNoDecision(Store):
    def decide(self, conversation_id: str, decisions: Any, **kwargs: Any) -> Pending:
        if isinstance(decisions, Mapping):
            decided = {k: v for k, v in decisions.items() if isinstance(v, Approve | Deny | Edit)}
            decisions = decided or decisions
        return super().decide(conversation_id, decisions, **kwargs)


@breaks("test_what_is_no_decision_is_refused")
class TakesAnyNote(Store):
    def decide(self, conversation_id: str, decisions: Any, note: Any = "", **kw: Any) -> Pending:
        return super().decide(conversation_id, decisions, note=str(note)[:0], **kw)


@breaks("test_what_is_no_decision_is_refused")
class DecidesForNobodyInDoubt(Store):
    def decide(
        self, conversation_id: str, decisions: Any, decided_by: Any = None, **kw: Any
    ) -> Pending:
        with suppress(InvalidParticipant):
            return super().decide(conversation_id, decisions, decided_by=decided_by, **kw)
        return super().decide(conversation_id, decisions, **kw)


@breaks("test_nothing_is_decided_where_nothing_is_paused")
class HasNothingToDecideInAnUnknownConversation(Store):
    def decide(self, conversation_id: str, decisions: Any, **kwargs: Any) -> Pending:
        try:
            return super().decide(conversation_id, decisions, **kwargs)
        except ConversationDoesNotExist:
            raise ApprovalNotResumable("Nothing is paused.") from None


@breaks("test_nothing_is_decided_where_nothing_is_paused")
class DecidesOnNothing(Store):
    def decide(self, conversation_id: str, decisions: Any, **kwargs: Any) -> Pending:
        with suppress(ApprovalNotResumable):
            return super().decide(conversation_id, decisions, **kwargs)
        return ()


@breaks("test_nothing_is_decided_where_nothing_is_paused")
class HasNothingToResumeForAnId(Store):
    def decide(self, conversation_id: str, decisions: Any, **kwargs: Any) -> Pending:
        try:
            return super().decide(conversation_id, decisions, **kwargs)
        except ApprovalMismatch as error:
            if paused_in(self, conversation_id) is None:
                raise ApprovalNotResumable(str(error)) from None
            raise


# Which call.


@breaks("test_a_call_id_is_one_of_the_turn_that_is_paused")
class DecidesInEveryConversation(Store):
    def decide(self, conversation_id: str, decisions: Any, **kwargs: Any) -> Pending:
        for other in self._transcripts:
            if other != conversation_id:
                with suppress(ApprovalMismatch, ApprovalNotResumable, ValueError):
                    super().decide(other, decisions, **kwargs)
        return super().decide(conversation_id, decisions, **kwargs)


class _RemembersDecisions(Store):
    """Takes a call id for the same as before."""

    def __init__(self) -> None:
        super().__init__()
        self.decided: dict[tuple[str, ...], Any] = {}

    def name(self, conversation_id: str) -> tuple[str, ...]:
        raise NotImplementedError

    def decide(self, conversation_id: str, decisions: Any, **kwargs: Any) -> Pending:
        name = self.name(conversation_id)
        if name in self.decided:
            raise ApprovalMismatch("This call was decided.")
        waiting = super().decide(conversation_id, decisions, **kwargs)
        self.decided |= {name: decisions} if not waiting else {}
        return waiting


@breaks("test_a_call_id_is_one_of_the_turn_that_is_paused")
class DecidesOnAnIdOnce(_RemembersDecisions):
    def name(self, conversation_id: str) -> tuple[str, ...]:
        return (conversation_id,)


@breaks("test_a_call_id_is_one_of_the_last_pause_of_its_turn")
class DecidesOnAnIdOnceInATurn(_RemembersDecisions):
    def name(self, conversation_id: str) -> tuple[str, ...]:
        paused = paused_in(self, conversation_id)
        return (conversation_id, paused.stored.turn_id if paused else "")
