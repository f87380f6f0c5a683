"""What ``load``, ``append`` and ``clear`` promise of a history."""

from __future__ import annotations

from typing import Any

from agent_memory.messages import INTERRUPTED, Message, Step, ToolCall, Turn, TurnError
from agent_memory.records import Heading
from agent_memory.testing.contract.base import (
    COACH,
    ONE,
    TWO,
    Promises,
    messages_of,
    plain_turn,
    raises,
    tool_turn,
)


class HistoryPromises(Promises):
    """A history is whole turns, in the order in which they were appended."""

    def test_an_unknown_conversation_has_no_history(self) -> None:
        assert self.store.load(ONE) == ()

    def test_turns_come_back_equal_and_in_the_order_they_were_appended(self) -> None:
        turns = self.append(ONE, *(f"prompt {number}" for number in range(12)))
        turns.append(tool_turn())
        self.store.append(ONE, turns[-1])
        assert self.store.load(ONE) == messages_of(turns)

    def test_each_conversation_has_a_history_of_its_own(self) -> None:
        first = self.append(ONE, "to one")
        second = self.append(TWO, "to two")
        first += self.append(ONE, "to one again")
        assert self.store.load(ONE) == messages_of(first)
        assert self.store.load(TWO) == messages_of(second)

    def test_a_heading_and_its_bare_id_mean_the_same_conversation(self) -> None:
        turns = [plain_turn("one"), plain_turn("two")]
        self.store.append(Heading(ONE, self.owner, COACH), turns[0])
        self.store.append(ONE, turns[1])
        assert self.store.load(ONE) == messages_of(turns)

    def test_append_tells_where_the_turn_was_written(self) -> None:
        first = self.store.append(ONE, plain_turn())
        second = self.store.append(ONE, plain_turn())
        assert (first.conversation_id, second.conversation_id) == (ONE, ONE)
        assert (first.created, second.created) == (True, False)
        ids = [
            message_id
            for stored in (first, second)
            for message_id in (stored.user_message_id, stored.assistant_message_id)
        ]
        assert all(isinstance(message_id, str) and message_id for message_id in ids)
        assert len(set(ids)) == 4
        assert first.turn_id
        assert first.turn_id != second.turn_id

    # The window.

    def test_a_window_is_the_last_turns_and_zero_is_all(self) -> None:
        turns = self.append(ONE, "1", "2", "3", "4")
        for keep in (1, 2, 3, 4, 5, 1000):
            assert self.store.load(ONE, keep_last_turns=keep) == messages_of(turns[-keep:]), keep
        assert self.store.load(ONE, keep_last_turns=0) == messages_of(turns)

    def test_a_window_never_parts_a_tool_call_from_its_result(self) -> None:
        turns = [plain_turn("before"), tool_turn(calls=3), tool_turn("And now?", calls=1)]
        for turn in turns:
            self.store.append(ONE, turn)
        for keep in (1, 2, 3):
            assert self.store.load(ONE, keep_last_turns=keep) == messages_of(turns[-keep:]), keep

    def test_a_window_is_no_other_thing_than_a_whole_number_of_turns(self) -> None:
        self.append(ONE, "Hello")
        wrong: tuple[Any, ...] = (-1, True, 1.5, "2", None)
        for keep in wrong:
            with raises(ValueError, msg=repr(keep)):
                self.store.load(ONE, keep_last_turns=keep)
            with raises(ValueError, msg=f"{keep!r}, unknown id"):
                self.store.load(TWO, keep_last_turns=keep)

    def test_a_failed_turn_counts_and_its_unanswered_calls_are_told_as_interrupted(self) -> None:
        answered = tool_turn(calls=1).steps[0]
        unanswered = Step(items=(ToolCall(id="call-x", name="pay"),), finish_reason="tool_calls")
        failed = Turn(
            user=Message("user", "Pay it."),
            steps=(answered, unanswered),
            status="failed",
            error=TurnError(code="ProviderUnavailable", status=503, request_id="r-1"),
        )
        self.append(ONE, "before")
        self.store.append(ONE, failed)
        (last,) = self.append(ONE, "after")
        assert self.store.load(ONE, keep_last_turns=2) == messages_of([failed, last])
        told = self.store.load(ONE, keep_last_turns=2)[4]
        assert (told.role, told.text, told.tool_call_id) == ("tool", INTERRUPTED, "call-x")

    # Forgetting.

    def test_clear_forgets_one_conversation_and_no_other(self) -> None:
        self.append(ONE, "Hello")
        kept = self.append(TWO, "Hello")
        self.store.clear(ONE)
        assert self.store.load(ONE) == ()
        assert self.store.load(TWO) == messages_of(kept)

    def test_clearing_an_unknown_conversation_is_no_error(self) -> None:
        self.store.clear(ONE)
        self.append(ONE, "Hello")
        self.store.clear(ONE)
        self.store.clear(ONE)

    def test_a_cleared_id_begins_anew(self) -> None:
        self.append(ONE, "old", "older")
        self.store.clear(ONE)
        stored = self.store.append(ONE, plain_turn("new"))
        assert stored.created
        assert self.store.load(ONE) == plain_turn("new").messages

    # Whole or not at all, and nobody else's.

    def test_a_turn_is_written_whole_or_not_at_all(self) -> None:
        steps: Any = (plain_turn().steps[0], object())
        broken = Turn.model_construct(user=Message("user", "Half"), steps=steps)
        turns = self.append(ONE, "before")
        for conversation_id in (ONE, TWO):
            with raises(Exception, msg="A turn that holds no step was stored."):
                self.store.append(conversation_id, broken)
        assert self.store.load(ONE) == messages_of(turns)
        assert self.store.load(TWO) == ()
        turns += self.append(ONE, "after")
        assert self.store.load(ONE) == messages_of(turns)
        assert self.store.append(TWO, plain_turn()).created

    def test_what_a_caller_does_to_values_given_or_loaded_changes_nothing_stored(self) -> None:
        given, wanted = tool_turn(), messages_of([tool_turn()])
        self.store.append(ONE, given)
        given.tool_calls()[0].arguments["city"] = "Rome"
        loaded = self.store.load(ONE)
        assert loaded == wanted
        loaded[1].tool_calls[0].arguments.clear()
        assert isinstance(loaded, tuple)
        assert self.store.load(ONE) == wanted
