"""Any order of calls: a store does what a model of a few lines does."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    multiple,
    rule,
    run_state_machine_as_test,
)

from agent_memory import Message
from agent_memory.approvals import Approve, Decision, Deny
from agent_memory.exceptions import (
    ApprovalMismatch,
    ApprovalNotResumable,
    ApprovalsPending,
    ConversationBusy,
    ConversationConflict,
    ConversationDoesNotExist,
)
from agent_memory.journals import JournalEntry
from agent_memory.messages import Step, TextPart, ToolCall, Turn
from agent_memory.records import (
    Heading,
    Reservation,
)
from agent_memory.stores import ConversationStore
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.testing.contract.pausing import asking_turn

IDS = st.sampled_from(["a", "A", "a "])
CALLS = st.sampled_from(["call-0", "call-1", "*"])
CALLING = Step(items=(ToolCall(id="1", name="f"),), finish_reason="tool_calls")


@dataclass
class Kept:
    """What the model knows of one conversation."""

    opened: bool = False
    said: list[str] = field(default_factory=list)
    token: str | None = None
    expired: bool = False
    journalled: list[str] = field(default_factory=list)
    paused: dict[str, str] = field(default_factory=dict)

    @property
    def is_dead(self) -> bool:
        return not self.opened and not self.journalled and (self.token is None or self.expired)

    @property
    def loaded(self) -> list[str]:
        return self.said[:-1] if self.paused else self.said

    @property
    def waiting(self) -> list[str]:
        return [call_id for call_id, status in self.paused.items() if status == "pending"]


class StoreMachine(RuleBasedStateMachine):
    """One conversation store beside a dict."""

    reservations = Bundle("reservations")
    resumes = Bundle("resumes")

    def make_store(self) -> ConversationStore:
        return InMemoryConversationStore()

    def __init__(self) -> None:
        super().__init__()
        self.store = self.make_store()
        self.kept: dict[str, Kept] = {}
        self.appended: set[str] = set()
        self.number = 0

    def take(self, conversation_id: str, token: str) -> None:
        kept = self.kept.setdefault(conversation_id, Kept())
        if kept.journalled:
            kept.said.append(kept.journalled[0])
            kept.opened = True
        kept.token, kept.expired, kept.journalled = token, False, []

    def expected(self, conversation_id: str, *, create: bool) -> type[Exception] | None:
        kept = self.kept.get(conversation_id)
        if kept is not None and kept.is_dead:
            del self.kept[conversation_id]
            kept = None
        if kept is None:
            return None if create else ConversationDoesNotExist
        if not kept.opened and not kept.journalled and not create:
            return ConversationDoesNotExist
        if kept.paused:
            return ApprovalsPending
        return ConversationBusy if kept.token is not None and not kept.expired else None

    def a_turn(self) -> Turn:
        self.number += 1
        step = Step(items=(TextPart(text="answer"),))
        return Turn(user=Message("user", f"turn {self.number}"), steps=(step,))

    def holds(self, reservation: Reservation) -> bool:
        kept = self.kept.get(reservation.conversation_id)
        return kept is not None and kept.token == reservation.turn_id

    @rule(target=reservations, conversation_id=IDS, create=st.booleans())
    def reserve(self, conversation_id: str, create: bool) -> object:
        error = self.expected(conversation_id, create=create)
        if error is not None:
            with pytest.raises(error):
                self.store.reserve(conversation_id, create=create)
            return multiple()
        reservation = self.store.reserve(conversation_id, create=create)
        self.take(conversation_id, reservation.turn_id)
        return reservation

    @rule(reservation=reservations, pauses=st.booleans())
    def append(self, reservation: Reservation, pauses: bool) -> None:
        if reservation.turn_id in self.appended:
            return  # appending again may be a success: the commit was not seen
        turn, held = self.a_turn(), self.holds(reservation)
        if pauses:
            turn = asking_turn(turn.user.text, ran=False)
        heading = Heading(reservation.conversation_id)
        if not held:
            with pytest.raises(ConversationConflict):
                self.store.append(heading, turn, reservation=reservation)
            return
        self.store.append(heading, turn, reservation=reservation)
        self.appended.add(reservation.turn_id)
        kept = self.kept[reservation.conversation_id]
        kept.said.append(turn.user.text)
        kept.opened, kept.token, kept.journalled = True, None, []
        if pauses:
            kept.paused = {"call-0": "pending", "call-1": "pending"}

    @rule(conversation_id=IDS, call_id=CALLS, decision=st.sampled_from([Approve(), Deny()]))
    def decide(self, conversation_id: str, call_id: str, decision: Decision) -> None:
        kept = self.kept.get(conversation_id, Kept())
        named = kept.waiting if call_id == "*" else [call_id]
        error: type[Exception] | None = None
        if not kept.opened:
            error = ConversationDoesNotExist
        elif call_id == "*" and not kept.paused:
            error = ApprovalNotResumable
        elif not named or not set(named) <= set(kept.waiting):
            error = ApprovalMismatch
        if error is not None:
            with pytest.raises(error):
                self.store.decide(conversation_id, {call_id: decision})
            return
        left = self.store.decide(conversation_id, {call_id: decision})
        status = "approved" if isinstance(decision, Approve) else "denied"
        kept.paused |= dict.fromkeys(named, status)
        assert [asked.id for asked in left] == kept.waiting

    @rule(target=resumes, conversation_id=IDS)
    def resume(self, conversation_id: str) -> object:
        kept = self.kept.get(conversation_id, Kept())
        error: type[Exception] | None = None
        if not kept.opened and not kept.journalled:
            error = ConversationDoesNotExist
        elif not kept.paused:
            error = ApprovalNotResumable
        elif kept.token is not None and not kept.expired:
            error = ConversationBusy
        if error is not None:
            with pytest.raises(error):
                self.store.reserve(conversation_id, resume=True)
            return multiple()
        reservation = self.store.reserve(conversation_id, resume=True)
        kept.token, kept.expired = reservation.turn_id, False
        for call_id, status in kept.paused.items():
            if status == "claimed":
                kept.paused[call_id] = "interrupted"
        assert reservation.paused is not None
        approvals = reservation.paused.approvals
        assert {each.asked.id: each.status for each in approvals} == kept.paused
        assert reservation.paused.turn.user.text == kept.said[-1]
        return reservation

    @rule(reservation=resumes, index=st.sampled_from([0, 1]))
    def claim(self, reservation: Reservation, index: int) -> None:
        kept, call_id = self.kept.get(reservation.conversation_id, Kept()), f"call-{index}"
        assert reservation.paused is not None
        call = reservation.paused.turn.tool_calls()[index]
        claimed = self.store.journal(reservation, JournalEntry(0, index, call), 60)
        assert claimed == (self.holds(reservation) and kept.paused.get(call_id) == "approved")
        if claimed:
            kept.paused[call_id], kept.expired = "claimed", False

    @rule(reservation=resumes, how=st.sampled_from(["completed", "paused", "discarded"]))
    def settle(self, reservation: Reservation, how: str) -> None:
        if reservation.turn_id in self.appended:
            return
        assert reservation.paused is not None
        turn = reservation.paused.turn.model_copy(update={"status": how})
        given = None if how == "discarded" else turn
        conversation_id = reservation.conversation_id
        if not self.holds(reservation):
            with pytest.raises(ConversationConflict):
                self.store.settle(conversation_id, given, reservation=reservation)
            return
        kept = self.kept[conversation_id]
        if how == "paused" and "claimed" in kept.paused.values():
            return  # whoever claims a call settles it with a result
        stored = self.store.settle(conversation_id, given, reservation=reservation)
        self.appended.add(reservation.turn_id)
        kept.token = None
        if how != "paused":
            started = {"claimed", "interrupted"} & set(kept.paused.values())
            if given is None and not started:
                kept.said.pop()
            assert (stored is None) == (given is None and not started)
            kept.paused = {}

    @rule(conversation_id=IDS)
    def append_directly(self, conversation_id: str) -> None:
        turn, error = self.a_turn(), self.expected(conversation_id, create=True)
        if error is not None:
            with pytest.raises(error):
                self.store.append(conversation_id, turn)
            return
        self.store.append(conversation_id, turn)
        self.take(conversation_id, "")
        kept = self.kept[conversation_id]
        kept.said.append(turn.user.text)
        kept.opened, kept.token = True, None

    @rule(reservation=reservations | resumes)
    def release(self, reservation: Reservation) -> None:
        kept = self.kept.get(reservation.conversation_id, Kept())
        if "claimed" in kept.paused.values():
            return  # what was claimed is found by whoever resumes next
        self.store.release(reservation)
        if self.holds(reservation):
            kept = self.kept[reservation.conversation_id]
            kept.token, kept.journalled = None, []
            if not kept.opened:
                del self.kept[reservation.conversation_id]

    @rule(reservation=reservations | resumes, seconds=st.sampled_from([0, 60]))
    def renew(self, reservation: Reservation, seconds: int) -> None:
        assert self.store.renew(reservation, seconds) == self.holds(reservation)
        if self.holds(reservation):
            self.kept[reservation.conversation_id].expired = not seconds

    @rule(reservation=reservations)
    def journal(self, reservation: Reservation) -> None:
        kept = self.kept.get(reservation.conversation_id, Kept())
        if kept.journalled:
            return
        self.number += 1
        user = Message("user", f"journalled {self.number}")
        heading = Heading(reservation.conversation_id)
        entry = JournalEntry(0, -1, CALLING, heading, user)
        assert self.store.journal(reservation, entry, 60) == self.holds(reservation)
        if self.holds(reservation):
            kept.journalled, kept.expired = [user.text], False

    @rule(conversation_id=IDS)
    def clear(self, conversation_id: str) -> None:
        self.store.clear(conversation_id)
        self.kept.pop(conversation_id, None)

    @rule(conversation_id=IDS, turns=st.sampled_from([0, 1, 2]))
    def look(self, conversation_id: str, turns: int) -> None:
        kept = self.kept.get(conversation_id, Kept())
        said, loaded = kept.said, kept.loaded
        window = self.store.load(conversation_id, keep_last_turns=turns)
        assert [m.text for m in window if m.role == "user"] == loaded[-turns:]
        waiting = self.store.pending_approvals_for(conversation_id)
        assert [asked.id for asked in waiting] == kept.waiting
        page = self.store.paginate_conversation_messages(conversation_id, per_page=1000)
        assert [m.position for m in page] == list(range(2 * len(said)))[::-1]
        assert [m.content for m in page if m.role == "user"] == said[::-1]
        known = self.store.get(conversation_id)
        assert (known.turns if known else 0) == len(said)


class DatabaseMachine(StoreMachine):
    def make_store(self) -> ConversationStore:
        from agent_memory.models import Conversation
        from agent_memory.stores.database import DatabaseConversationStore

        store = DatabaseConversationStore()
        for conversation_id in Conversation.objects.values_list("id", flat=True):
            store.clear(conversation_id)
        return store


ANY_ORDER = settings(max_examples=12, stateful_step_count=20, deadline=None, derandomize=True)
UNSHRUNK = settings(ANY_ORDER, phases=[Phase.generate])


@pytest.mark.parametrize("machine", [StoreMachine, DatabaseMachine])
def test_a_store_does_in_any_order_what_the_model_does(db: None, machine: type) -> None:
    run_state_machine_as_test(machine, settings=ANY_ORDER)


def test_a_store_that_does_not_is_caught(db: None) -> None:
    class Forgets(InMemoryConversationStore):
        def clear(self, conversation_id: str) -> None:
            pass

    class Machine(StoreMachine):
        def make_store(self) -> ConversationStore:
            return Forgets()

    with pytest.raises(BaseException):  # noqa: B017, PT011  whichever rule meets it first
        run_state_machine_as_test(Machine, settings=UNSHRUNK)
