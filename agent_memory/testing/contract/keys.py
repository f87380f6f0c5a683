"""Idempotency keys: a turn that has one is written once, and found by whoever asks again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agent_memory.exceptions import (
    ConversationBusy,
    ConversationConflict,
    ConversationDoesNotExist,
    TurnFailed,
)
from agent_memory.messages import DocumentPart, ImagePart, Message, TextPart, Turn, TurnError
from agent_memory.records import Answered, Heading, Once, Reservation, StoredTurn
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
from agent_memory.testing.contract.fidelity import AWKWARD_IDS, every_part

KEY, OTHER_KEY = "key-1", "key-2"
HELLO = Message("user", "Hello")
TIMED_OUT = TurnError(code="Timeout", status=504)

# All are other messages than "Hello", and than each other.
OTHER_MESSAGES = (
    *(
        Message("user", text)
        for text in ("", "hello", "Hello ", "He\u0142lo", "Hello\0", "Goodbye")
    ),
    Message("user", (TextPart(text="Hel"), TextPart(text="lo"))),
    Message("user", (TextPart(text="Hello", provider_options={"cache": True}),)),
    Message("user", (TextPart(text="Hello"), ImagePart(url="https://example.com/a.png"))),
    Message("user", (TextPart(text="Hello"), DocumentPart(url="https://example.com/a.png"))),
)


class KeyPromises(Promises):
    """At most one turn of a conversation is stored under a key, and asking again finds it."""

    def reserve(
        self,
        key: str | None,
        message: Message = HELLO,
        conversation_id: str | None = ONE,
        **kwargs: Any,
    ) -> Reservation:
        once = None if key is None else Once.of(key, message)
        kwargs = {"create": True, "message": message, "once": once, **kwargs}
        return self.store.reserve(conversation_id, **kwargs)

    def keep(self, key: str, turn: Turn, conversation_id: str = ONE) -> StoredTurn:
        """Append a turn under a key."""
        reservation = self.reserve(key, turn.user, conversation_id, participant=self.owner)
        heading = Heading(conversation_id, self.owner, COACH)
        return self.store.append(heading, turn, reservation=reservation)

    def assert_answered(self, reservation: Reservation, turn: Turn, stored: StoredTurn) -> None:
        assert reservation.answered == Answered(turn, replace(stored, created=False))
        assert repr(reservation.answered.turn) == repr(turn)

    # What was stored.

    def test_a_key_finds_the_turn_that_it_has_and_where_it_was_written(self) -> None:
        self.append(ONE, "before")
        kept = [
            (f"{number}", turn, self.keep(f"{number}", turn))
            for number, turn in enumerate((plain_turn(), tool_turn(), every_part()))
        ]
        self.append(ONE, "after")
        for key, turn, stored in kept:
            self.assert_answered(self.reserve(key, turn.user), turn, stored)
            once = Once.of(key, turn.user)
            self.assert_answered(self.elsewhere.reserve(ONE, once=once), turn, stored)

    def test_a_turn_that_is_found_holds_and_changes_nothing(self) -> None:
        turn = plain_turn()
        self.keep(KEY, turn)
        before = self.store.get(ONE), self.store.load(ONE)
        found = self.reserve(KEY)
        assert found.answered is not None
        assert self.store.renew(found, 60) is False
        with raises(ConversationConflict):
            self.store.append(ONE, turn, reservation=found)
        assert (self.store.get(ONE), self.store.load(ONE)) == before
        running = self.store.reserve(ONE)
        self.store.release(found)
        assert self.store.renew(running, 60) is True

    def test_a_key_is_answered_while_another_turn_runs(self) -> None:
        turn = plain_turn()
        stored = self.keep(KEY, turn)
        self.reserve(OTHER_KEY)
        self.assert_answered(self.reserve(KEY), turn, stored)
        self.keep(KEY, turn, TWO)
        self.store.reserve(TWO)
        assert self.reserve(KEY, conversation_id=TWO).answered is not None

    def test_the_first_turn_of_a_conversation_keeps_its_key(self) -> None:
        turn = plain_turn()
        for given in (ONE, None):
            reservation = self.reserve(KEY, conversation_id=given)
            assert reservation.answered is None
            conversation_id = reservation.conversation_id
            stored = self.store.append(conversation_id, turn, reservation=reservation)
            assert stored.created
            again = self.reserve(KEY, conversation_id=conversation_id)
            self.assert_answered(again, turn, stored)

    def test_a_failed_turn_is_raised_for_its_key_and_not_run_again(self) -> None:
        for turn in (tool_turn(), plain_turn("Hello", "Half")):
            self.store.clear(ONE)
            failed = turn.model_copy(update={"status": "failed", "error": TIMED_OUT})
            self.keep(KEY, failed)
            for _ in range(2):
                with raises(TurnFailed) as caught:
                    self.reserve(KEY, turn.user)
                assert caught.exception.turn == failed
            assert self.store.load(ONE) == failed.messages
            self.store.reserve(ONE)

    def test_what_a_caller_does_to_a_turn_that_is_found_changes_nothing_stored(self) -> None:
        self.keep(KEY, tool_turn())
        self.keep(OTHER_KEY, tool_turn().model_copy(update={"status": "failed"}))
        for _ in range(2):
            found = self.reserve(KEY, tool_turn().user).answered
            assert found is not None
            with raises(TurnFailed) as caught:
                self.reserve(OTHER_KEY, tool_turn().user)
            for turn in (found.turn, caught.exception.turn):
                assert turn.tool_calls() == tool_turn().tool_calls()
                turn.tool_calls()[0].arguments.clear()

    # What was not.

    def test_a_running_turn_says_whether_it_has_the_same_key(self) -> None:
        self.append(ONE, "before")
        for conversation_id in (ONE, TWO):
            for running in (KEY, None):
                reservation = self.reserve(running, conversation_id=conversation_id)
                for asked in (KEY, OTHER_KEY, None):
                    with raises(ConversationBusy) as caught:
                        self.reserve(asked, conversation_id=conversation_id)
                    assert caught.exception.same_message is (asked == running == KEY), asked
                self.store.release(reservation)

    def test_a_key_is_that_of_the_turn_that_runs_and_of_none_before(self) -> None:
        self.append(ONE, "before")
        self.expire(self.reserve(KEY))
        self.reserve(OTHER_KEY)
        for key in (KEY, OTHER_KEY):
            with raises(ConversationBusy) as caught:
                self.reserve(key)
            assert caught.exception.same_message is (key == OTHER_KEY)

    def test_a_key_of_which_nothing_was_stored_is_free_again(self) -> None:
        turns = self.append(ONE, "before")
        for conversation_id in (ONE, TWO):
            self.store.release(self.reserve(KEY, conversation_id=conversation_id))
            self.expire(self.reserve(KEY, conversation_id=conversation_id))
            turn = plain_turn("Another one")
            assert self.keep(KEY, turn, conversation_id)
            assert self.store.load(conversation_id)[-2:] == turn.messages
        assert self.store.load(ONE) == messages_of([*turns, turn])

    def test_a_cleared_conversation_has_no_keys(self) -> None:
        self.keep(KEY, plain_turn())
        self.store.clear(ONE)
        self.append(ONE, "anew")
        stored = self.keep(KEY, plain_turn("Another one"))
        assert self.store.load(ONE)[-2:] == plain_turn("Another one").messages
        found = self.reserve(KEY, Message("user", "Another one"))
        self.assert_answered(found, plain_turn("Another one"), stored)

    # Which message, which conversation, which key.

    def test_a_key_stands_for_one_message_alone(self) -> None:
        self.keep(KEY, plain_turn())
        self.keep(OTHER_KEY, plain_turn(status="failed"))
        before = self.store.get(ONE), self.store.load(ONE)
        for busy in (False, True):
            running = self.store.reserve(ONE) if busy else None
            for message in OTHER_MESSAGES:
                for key in (KEY, OTHER_KEY):
                    with raises(ConversationConflict, msg=repr(message)) as caught:
                        self.reserve(key, message)
                    assert caught.exception.conversation_id == ONE
                    assert caught.exception.turn is None
                    assert "another message" in str(caught.exception)
            assert (self.store.get(ONE), self.store.load(ONE)) == before
            if running:
                assert self.store.renew(running, 60) is True
                self.store.release(running)
        equal = Message(content=[TextPart(text="Hello")])
        assert self.reserve(KEY, equal).answered is not None

    def test_each_conversation_has_keys_of_its_own(self) -> None:
        turns = {conversation_id: plain_turn(f"to {conversation_id}") for conversation_id in "abc"}
        stored = {key: self.keep(KEY, turn, key) for key, turn in turns.items()}
        for conversation_id, turn in turns.items():
            found = self.reserve(KEY, turn.user, conversation_id)
            self.assert_answered(found, turn, stored[conversation_id])

    def test_keys_that_look_alike_are_keys_of_their_own(self) -> None:
        turns = {key: plain_turn(key) for key in AWKWARD_IDS}
        stored = {key: self.keep(key, turn) for key, turn in turns.items()}
        assert self.store.load(ONE) == messages_of(turns.values())
        for key, turn in turns.items():
            self.assert_answered(self.reserve(key, turn.user), turn, stored[key])

    def test_two_turns_without_a_key_are_two_turns(self) -> None:
        turns = [plain_turn()] * 3
        self.keep(KEY, turns[0])
        for turn in turns[1:]:
            reservation = self.reserve(None)
            assert reservation.answered is None
            self.store.append(ONE, turn, reservation=reservation)
        assert self.store.load(ONE) == messages_of(turns)

    def test_a_foreign_conversation_never_tells_of_its_keys(self) -> None:
        self.keep(KEY, plain_turn())
        self.keep(OTHER_KEY, plain_turn(status="failed"))
        self.reserve("running")
        strangers = [(self.namesake, create) for create in (False, True)] + [(None, False)]
        for key in (KEY, OTHER_KEY, "running", "unknown"):
            for message in (HELLO, Message("user", "Another one")):
                for who, create in strangers:
                    with raises(ConversationDoesNotExist, msg=f"{key} {who}") as caught:
                        self.reserve(key, message, participant=who, must_own=True, create=create)
                    assert str(caught.exception) == str(ConversationDoesNotExist(ONE))
            with raises((TurnFailed, ConversationBusy, ConversationConflict)):
                self.reserve(key, Message("user", "Mine"), participant=self.owner, must_own=True)
