"""A turn that waits for a person: it is stored, shown, told, and stands in the way."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from agent_memory.approvals import DENIED, EXPIRED, Approve, Decisions, Deny, PendingApproval
from agent_memory.exceptions import (
    ApprovalMismatch,
    ApprovalsPending,
    ConversationConflict,
    ConversationDoesNotExist,
    InvalidConversationId,
)
from agent_memory.messages import Message, Step, ToolCall, ToolResult, Turn
from agent_memory.records import Answered, Heading, Once
from agent_memory.testing.contract.base import (
    COACH,
    INVALID_IDS,
    ONE,
    TWO,
    messages_of,
    plain_turn,
    raises,
)
from agent_memory.testing.contract.fidelity import ODD_TEXTS, ODD_VALUES
from agent_memory.testing.contract.pausing import Pausing, answered, asked_by, asking_turn


class ApprovalPromises(Pausing):
    """A paused turn is a turn like others, but for the window; and none follows it."""

    def test_a_paused_turn_counts_and_shows_and_is_in_no_window(self) -> None:
        turns = self.append(ONE, "1", "2", "3")
        turn = asking_turn()
        stored = self.pause(turn)
        for keep in (0, 1, 2, 3, 4):
            wanted = messages_of(turns[-keep:])
            assert self.store.load(ONE, keep_last_turns=keep) == wanted
        answer, said, before, *_ = self.store.paginate_conversation_messages(ONE)
        assert (answer.id, said.id) == (stored.assistant_message_id, stored.user_message_id)
        assert [answer.position, said.position, before.position] == [7, 6, 5]
        assert (answer.status, answer.content, answer.steps) == (
            *("paused", "Let me see."),
            turn.steps,
        )
        assert (said.parts, said.participant) == (turn.user.content, self.owner)
        known = self.store.get(ONE)
        assert known is not None
        assert (known.turns, known.usage) == (4, self.used)
        assert self.store.latest_conversation_id(self.owner, COACH) == ONE

    def test_what_waits_is_told_to_whoever_asks(self) -> None:
        turn = asking_turn()
        self.pause(turn)
        self.pause(turn, TWO, expire=(self.future, None))
        first, second = asked_by(turn)
        assert first == PendingApproval(
            "call-0", "refund", {"order": 7, "part": 0}, "It costs.", None
        )
        for store in (self.store, self.elsewhere):
            assert store.pending_approvals_for(ONE) == (first, second)
            assert store.pending_approvals_for(TWO) == (
                replace(first, expires_at=self.future),
                second,
            )
        self.append("three", "Hello")
        assert self.store.pending_approvals_for("three") == ()
        assert self.store.pending_approvals_for("unknown") == ()
        for conversation_id in INVALID_IDS:
            with raises(InvalidConversationId, msg=repr(conversation_id)):
                self.store.pending_approvals_for(conversation_id)

    def test_what_is_asked_comes_back_equal_whatever_the_model_wrote(self) -> None:
        calls = [
            ToolCall(id=f"{number}{text}", name=text, arguments={text: text}, approval_reason=text)
            for number, text in enumerate((*ODD_TEXTS, "x" * 300))
        ]
        calls += [
            ToolCall(id=f"value {number}", name="f", arguments={"a": value}, approval_reason="")
            for number, value in enumerate(ODD_VALUES)
        ]
        step = Step(items=tuple(calls), finish_reason="tool_calls")
        turn = Turn(user=Message("user", "Hi"), steps=(step,), status="paused")
        self.pause(turn)
        assert repr(self.store.pending_approvals_for(ONE)) == repr(asked_by(turn))
        paused = self.look()
        assert repr(paused.turn) == repr(turn)
        assert repr(tuple(each.asked for each in paused.approvals)) == repr(asked_by(turn))
        decisions = {call.id: Approve() for call in calls}
        assert self.store.decide(ONE, decisions) == ()
        assert self.statuses() == ["approved"] * len(calls)

    def test_what_a_caller_does_to_what_waits_changes_nothing_stored(self) -> None:
        turn = asking_turn()
        described = asked_by(turn.model_copy(deep=True))
        once = Once.of(self.key, turn.user)
        reservation = self.store.reserve(ONE, create=True, once=once)
        self.store.append(Heading(ONE, approvals=described), turn, reservation=reservation)
        given = [each.arguments for each in described]
        for arguments in (*given, *(call.arguments for call in turn.tool_calls())):
            arguments.clear()
        for _ in range(2):
            found = self.store.reserve(ONE, once=once).answered
            assert found is not None
            with raises(ApprovalsPending) as caught:
                self.store.reserve(ONE)
            with raises(ApprovalMismatch) as mismatch:
                self.store.decide(ONE, {"unknown": Approve()})
            for waiting in (
                self.store.pending_approvals_for(ONE),
                tuple(approval.asked for approval in self.look().approvals),
                found.waiting,
                caught.exception.pending,
                mismatch.exception.pending,
            ):
                assert waiting == asked_by(asking_turn())
                for each in waiting:
                    each.arguments.clear()

    # In the way.

    def test_no_prompt_follows_a_paused_turn(self) -> None:
        self.append(ONE, "before")
        first = asked_by(asking_turn())
        for given in (ONE, TWO, None):
            conversation_id = self.pause(conversation_id=given).conversation_id
            before = self.store.get(conversation_id)
            for create in (False, True):
                self.assert_blocked(*first, conversation_id=conversation_id, create=create)
            with raises(ApprovalsPending) as caught:
                self.store.append(conversation_id, plain_turn("in between"))
            assert caught.exception.pending == first
            assert self.store.get(conversation_id) == before
            self.resume(conversation_id)
            self.assert_blocked(*first, conversation_id=conversation_id)
        self.append("other", "Hello")

    def test_a_paused_turn_is_the_owners_secret(self) -> None:
        self.pause(key=self.key)
        for create, resume in ((False, False), (True, False), (False, True)):
            with raises(ConversationDoesNotExist):
                self.store.reserve(
                    ONE,
                    participant=self.namesake,
                    must_own=True,
                    create=create,
                    resume=resume,
                )
        self.store.release(
            self.store.reserve(ONE, participant=self.owner, must_own=True, resume=True)
        )
        self.assert_blocked(*asked_by(asking_turn()), participant=self.owner, must_own=True)

    def test_a_key_finds_a_paused_turn_and_what_waits(self) -> None:
        earlier = plain_turn()
        once = Once.of("earlier", earlier.user)
        self.store.append(ONE, earlier, reservation=self.store.reserve(ONE, create=True, once=once))
        turn = asking_turn()
        stored = replace(
            self.pause(turn, key=self.key, expire=(self.past, self.future)), created=False
        )
        _, second = asked_by(turn)
        waiting = (replace(second, expires_at=self.future),)
        mine = Once.of(self.key, turn.user)
        for store in (self.store, self.elsewhere):
            found = store.reserve(ONE, once=mine)
            assert found.answered == Answered(turn, stored, waiting)
        assert self.store.reserve(ONE, once=once).answered is not None
        with raises(ConversationConflict):
            self.store.reserve(ONE, once=Once.of(self.key, Message("user", "Another one")))
        self.assert_blocked(*waiting, once=Once.of("key-2", turn.user))
        self.store.decide(ONE, {"call-1": Deny()})
        assert self.store.reserve(ONE, once=mine).answered == Answered(turn, stored, ())

    def test_clear_forgets_a_paused_turn(self) -> None:
        self.pause(key=self.key)
        self.store.clear(ONE)
        assert self.store.pending_approvals_for(ONE) == ()
        turns = self.append(ONE, "anew")
        assert self.store.pending_approvals_for(ONE) == ()
        assert self.store.load(ONE) == messages_of(turns)

    # Time.

    def test_what_nobody_decided_in_time_waits_no_more(self) -> None:
        self.pause(asking_turn(calls=3), expire=(self.past, self.future, None))
        waiting = self.store.pending_approvals_for(ONE)
        assert [asked.id for asked in waiting] == ["call-1", "call-2"]
        self.assert_blocked(*waiting)

    def test_a_prompt_ends_a_turn_that_expired_before_anybody_decided(self) -> None:
        cases = ((None, EXPIRED), (Deny(), DENIED), (Deny("Too much."), "Too much."))
        for number, (denial, told) in enumerate(cases):
            conversation_id = f"{number}"
            turns = self.append(conversation_id, "before")
            turn = asking_turn()
            expire = (self.past, self.past if denial is None else self.future)
            stored = self.pause(turn, conversation_id, expire=expire, key=self.key)
            if denial is not None:
                self.store.decide(conversation_id, {"call-1": denial})
            reservation = self.store.reserve(conversation_id)
            results = (ToolResult(value=text, denied=True) for text in (EXPIRED, told))
            turn = answered(turn, *results)
            turns.append(turn.model_copy(update={"status": "completed"}))
            loaded = self.store.load(conversation_id, reservation=reservation)
            assert loaded == messages_of(turns)
            assert reservation.next_position == 4
            answer, said, *_ = self.store.paginate_conversation_messages(conversation_id)
            assert (answer.id, answer.status) == (stored.assistant_message_id, "completed")
            assert (said.id, answer.steps) == (stored.user_message_id, turns[-1].steps)
            assert self.store.pending_approvals_for(conversation_id) == ()
            again = self.store.reserve(conversation_id, once=Once.of(self.key, turn.user))
            assert again.answered is not None
            assert again.answered.turn == turns[-1]
            turns.append(plain_turn("after"))
            self.store.append(conversation_id, turns[-1], reservation=reservation)
            assert self.store.load(conversation_id) == messages_of(turns)

    def test_an_append_without_a_reservation_ends_a_turn_that_expired_too(self) -> None:
        self.pause(expire=(self.past, self.past))
        self.append(ONE, "after")
        assert self.store.load(ONE)[-2:] == plain_turn("after").messages
        known = self.store.get(ONE)
        assert known is not None
        assert known.turns == 2

    def test_a_prompt_ends_no_turn_that_somebody_decided(self) -> None:
        cases: tuple[tuple[datetime, Decisions, tuple[str, ...]], ...] = (
            (self.future, {"*": Deny()}, ()),
            (self.past, {"call-1": Approve()}, ()),
            (self.future, {"call-0": Approve()}, ("call-1",)),
            (self.past, {}, ("call-1",)),
        )
        for number, (first, decisions, waiting) in enumerate(cases):
            conversation_id = f"{number}"
            self.pause(conversation_id=conversation_id, expire=(first, None))
            if decisions:
                self.store.decide(conversation_id, decisions)
            left = self.store.pending_approvals_for(conversation_id)
            assert tuple(asked.id for asked in left) == waiting
            self.assert_blocked(*left, conversation_id=conversation_id)
