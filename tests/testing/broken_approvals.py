"""Stores that break one promise of turns that wait for a person each."""

from __future__ import annotations

import copy
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from agent_memory.approvals import Approval, PendingApproval
from agent_memory.exceptions import ApprovalsPending
from agent_memory.messages import Turn
from agent_memory.records import Heading, MessagePage, Reservation, StoredTurn
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.stores.kept import KeptTurn
from tests.testing.broken import breaks

Store = InMemoryConversationStore
Pending = tuple[PendingApproval, ...]


def paused_in(store: Store, conversation_id: str | None) -> KeptTurn | None:
    """Return the paused turn that a store holds, if there is one."""
    kept = store._transcripts.get(str(conversation_id))
    return None if kept is None else kept.paused


class _ChangesPauses(Store):
    """Holds other approvals than the paused turn asked for."""

    def change(self, approvals: tuple[Approval, ...]) -> tuple[Approval, ...]:
        raise NotImplementedError

    def append(self, conversation: Any, turn: Turn, **kwargs: Any) -> StoredTurn:
        stored = super().append(conversation, turn, **kwargs)
        if (paused := paused_in(self, stored.conversation_id)) is not None:
            paused.approvals = self.change(paused.approvals)
        return stored


@breaks("test_a_paused_turn_counts_and_shows_and_is_in_no_window")
class LoadsThePausedTurn(Store):
    def load(self, conversation_id: str, *, keep_last_turns: int = 0, **kw: Any) -> Any:
        loaded = super().load(conversation_id, keep_last_turns=keep_last_turns)
        paused = paused_in(self, conversation_id)
        return loaded if paused is None else (*loaded, *paused.turn.messages)


@breaks("test_a_paused_turn_counts_and_shows_and_is_in_no_window")
class LetsThePausedTurnTakeAPlaceInTheWindow(Store):
    def load(self, conversation_id: str, *, keep_last_turns: int = 0, **kw: Any) -> Any:
        if paused_in(self, conversation_id) is not None and keep_last_turns:
            loaded = super().load(conversation_id, keep_last_turns=keep_last_turns)
            return loaded[2:] if len(loaded) == 2 * keep_last_turns else loaded
        return super().load(conversation_id, keep_last_turns=keep_last_turns)


@breaks("test_a_paused_turn_counts_and_shows_and_is_in_no_window")
class HidesThePausedTurn(Store):
    def paginate_conversation_messages(self, conversation_id: str, **kwargs: Any) -> MessagePage:
        page = super().paginate_conversation_messages(conversation_id, **kwargs)
        shown = page.items[2:] if paused_in(self, conversation_id) else page.items
        return replace(page, items=shown)


@breaks("test_what_waits_is_told_to_whoever_asks")
class ForgetsWhenCallsExpire(Store):
    def append(self, conversation: Any, turn: Turn, **kwargs: Any) -> StoredTurn:
        heading = replace(Heading.of(conversation), approvals=())
        return super().append(heading, turn, **kwargs)


@breaks("test_what_waits_is_told_to_whoever_asks")
class TellsWhatWaitsInOneProcess(Store):
    def reopened(self) -> Store:
        other = copy.copy(self)
        other.pending_approvals_for = lambda conversation_id: ()  # type: ignore[method-assign]  # broken
        return other


@breaks("test_what_waits_is_told_to_whoever_asks")
class LetsCallsThatRanWait(_ChangesPauses):
    def change(self, approvals: tuple[Approval, ...]) -> tuple[Approval, ...]:
        ran = PendingApproval("look", "look")
        return (*approvals, Approval(0, len(approvals), ran))


@breaks("test_what_is_asked_comes_back_equal_whatever_the_model_wrote")
class CutsTheIdsOfCalls(_ChangesPauses):
    def change(self, approvals: tuple[Approval, ...]) -> tuple[Approval, ...]:
        return tuple(
            replace(each, asked=replace(each.asked, id=each.asked.id[:255])) for each in approvals
        )


@breaks("test_what_is_asked_comes_back_equal_whatever_the_model_wrote")
class CleansTheReasonsOfCalls(_ChangesPauses):
    def change(self, approvals: tuple[Approval, ...]) -> tuple[Approval, ...]:
        return tuple(
            replace(each, asked=replace(each.asked, reason=each.asked.reason.replace("\0", "")))
            for each in approvals
        )


@breaks("test_what_a_caller_does_to_what_waits_changes_nothing_stored")
class SharesWhatWaits(Store):
    def pending_approvals_for(self, conversation_id: str) -> Pending:
        paused = paused_in(self, conversation_id)
        return tuple(each.asked for each in paused.approvals) if paused else ()


@breaks("test_what_a_caller_does_to_what_waits_changes_nothing_stored")
class SharesWhatItWasTold(Store):
    def append(self, conversation: Any, turn: Turn, **kwargs: Any) -> StoredTurn:
        stored = super().append(conversation, turn, **kwargs)
        if (paused := paused_in(self, stored.conversation_id)) is not None:
            told = Heading.of(conversation).approvals
            pairs = zip(paused.approvals, told, strict=False)
            paused.approvals = tuple(replace(each, asked=asked) for each, asked in pairs)
        return stored


class _TellsOtherwise(Store):
    """Tells something else of the pause that is in the way."""

    def tell(self, error: ApprovalsPending, paused: KeptTurn) -> None:
        raise NotImplementedError

    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        try:
            return super().reserve(conversation_id, **kwargs)
        except ApprovalsPending as error:
            paused = paused_in(self, conversation_id)
            assert paused is not None
            self.tell(error, paused)
            raise


@breaks("test_what_a_caller_does_to_what_waits_changes_nothing_stored")
class SharesWhatIsInTheWay(_TellsOtherwise):
    def tell(self, error: ApprovalsPending, paused: KeptTurn) -> None:
        error.pending = tuple(each.asked for each in paused.approvals)


# In the way.


@breaks("test_no_prompt_follows_a_paused_turn")
class PromptsOverAPause(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        paused = paused_in(self, conversation_id)
        if paused is not None and not kwargs.get("resume"):
            kept = self._transcripts[str(conversation_id)]
            kept.settle(paused.turn.model_copy(update={"status": "completed"}), ended=self._tick())
        return super().reserve(conversation_id, **kwargs)


@breaks("test_no_prompt_follows_a_paused_turn")
class AppendsBehindAPause(Store):
    def append(
        self, conversation: Any, turn: Turn, *, reservation: Reservation | None = None
    ) -> StoredTurn:
        heading = Heading.of(conversation)
        if reservation is None and paused_in(self, heading.id) is not None:
            return self._write(heading, turn, Reservation(heading.id, "turn"))
        return super().append(conversation, turn, reservation=reservation)


@breaks("test_no_prompt_follows_a_paused_turn")
class IsBusyBeforeItTellsWhatWaits(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        if paused_in(self, conversation_id) and self._is_held(str(conversation_id)):
            self._hold(Reservation(str(conversation_id), "token"))
        return super().reserve(conversation_id, **kwargs)


@breaks("test_a_paused_turn_is_the_owners_secret")
class TellsStrangersWhatWaits(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        kept = self._transcripts.get(str(conversation_id))
        if kept is not None and not kwargs.get("resume") and not kwargs.get("once"):
            kept.refused(datetime.now(UTC))
        return super().reserve(conversation_id, **kwargs)


@breaks("test_a_paused_turn_is_the_owners_secret")
class LetsStrangersResume(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        if kwargs.get("resume"):
            kwargs["must_own"] = False
        return super().reserve(conversation_id, **kwargs)


@breaks("test_a_key_finds_a_paused_turn_and_what_waits")
class TellsNotWhatAKeyWaitsFor(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        reservation = super().reserve(conversation_id, **kwargs)
        if reservation.answered is not None:
            reservation.answered = replace(reservation.answered, waiting=())
        return reservation


@breaks("test_a_key_finds_a_paused_turn_and_what_waits")
class BlocksKeysByAPause(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        kept = self._transcripts.get(str(conversation_id))
        if kept is not None and not kwargs.get("resume"):
            kept.refused(datetime.now(UTC))
        return super().reserve(conversation_id, **kwargs)


@breaks("test_clear_forgets_a_paused_turn")
class KeepsPausesOfTheCleared(Store):
    def __init__(self) -> None:
        super().__init__()
        self.left: dict[str, Pending] = {}

    def clear(self, conversation_id: str) -> None:
        if waiting := self.pending_approvals_for(conversation_id):
            self.left[conversation_id] = waiting
        super().clear(conversation_id)

    def pending_approvals_for(self, conversation_id: str) -> Pending:
        left = () if paused_in(self, conversation_id) else self.left.get(conversation_id, ())
        return super().pending_approvals_for(conversation_id) or left


# Time.


@breaks(
    "test_what_nobody_decided_in_time_waits_no_more",
    "test_a_prompt_ends_a_turn_that_expired_before_anybody_decided",
)
class LetsNothingExpire(_ChangesPauses):
    def change(self, approvals: tuple[Approval, ...]) -> tuple[Approval, ...]:
        return tuple(
            replace(each, asked=replace(each.asked, expires_at=None)) for each in approvals
        )


class _EndsAnother(Store):
    """Ends a turn that has expired in another way."""

    def end(self, conversation_id: str, turn: Turn) -> None:
        raise NotImplementedError

    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        kept = self._transcripts.get(str(conversation_id))
        prompted = kept is not None and not kwargs.get("resume")
        turn = kept.refused(datetime.now(UTC)) if kept is not None and prompted else None
        if turn is not None:
            self.end(str(conversation_id), turn)
        return super().reserve(conversation_id, **kwargs)


@breaks("test_a_prompt_ends_a_turn_that_expired_before_anybody_decided")
class FailsWhatHasExpired(_EndsAnother):
    def end(self, conversation_id: str, turn: Turn) -> None:
        failed = turn.model_copy(update={"status": "failed"})
        self._transcripts[conversation_id].settle(failed, ended=self._tick())


@breaks(
    "test_a_prompt_ends_a_turn_that_expired_before_anybody_decided",
    "test_an_append_without_a_reservation_ends_a_turn_that_expired_too",
)
class DropsWhatHasExpired(_EndsAnother):
    def end(self, conversation_id: str, turn: Turn) -> None:
        kept = self._transcripts[conversation_id]
        assert kept.paused is not None
        steps = (step.model_copy(update={"items": ()}) for step in turn.steps)
        kept.paused.turn = turn.model_copy(update={"steps": tuple(steps), "status": "paused"})
        kept.discard(ended=self._tick())


@breaks("test_a_prompt_ends_no_turn_that_somebody_decided")
class EndsWhatIsDecided(Store):
    def reserve(self, conversation_id: str | None = None, **kwargs: Any) -> Reservation:
        paused = paused_in(self, conversation_id)
        settled = paused is not None and not self.pending_approvals_for(str(conversation_id))
        if settled and not kwargs.get("resume"):
            assert paused is not None
            done = paused.turn.model_copy(update={"status": "completed"})
            self._transcripts[str(conversation_id)].settle(done, ended=self._tick())
        return super().reserve(conversation_id, **kwargs)


@breaks("test_a_prompt_ends_no_turn_that_somebody_decided")
class ForgetsWhatIsLeftOfAPause(_TellsOtherwise):
    def tell(self, error: ApprovalsPending, paused: KeptTurn) -> None:
        if len(error.pending) < len(paused.approvals):
            error.pending = ()
