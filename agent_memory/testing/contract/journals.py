"""The journal of a turn that runs: it is the turn's alone, and goes with it."""

from __future__ import annotations

from collections.abc import Iterable

from agent_memory.exceptions import ConversationBusy, ConversationConflict, ConversationDoesNotExist
from agent_memory.journals import JournalEntry
from agent_memory.messages import Message, Step, ToolCall, Turn, TurnError
from agent_memory.records import Heading, Once, Reservation
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

HELLO = Message("user", "Hello")


def entries_of(turn: Turn, heading: Heading) -> list[JournalEntry]:
    """Return what a worker journals of a turn: each step's calls, then each of their results."""
    entries = []
    for number, step in enumerate(turn.steps):
        items = [
            item.model_copy(update={"result": None}) if isinstance(item, ToolCall) else item
            for item in step.items
        ]
        asked = step.model_copy(update={"items": tuple(items)})
        entries.append(JournalEntry(number, -1, asked, heading, turn.user))
        for index, call in enumerate(step.tool_calls()):
            if call.result is not None:
                entries.append(JournalEntry(number, index, call.result))
    return entries


def dying_turn(prompt: str = "Pay it.") -> Turn:
    """Return a turn in which a tool has answered and another one was about to."""
    unanswered = Step(items=(ToolCall(id="call-x", name="pay"),), finish_reason="tool_calls")
    answered = tool_turn(prompt, calls=1)
    return answered.model_copy(update={"steps": (answered.steps[0], unanswered)})


def interrupted(turn: Turn) -> Turn:
    """Return a turn as it is recorded when its worker has died."""
    return turn.model_copy(update={"status": "failed", "error": TurnError(code="Interrupted")})


class Journalling(Promises):
    """What the promises of the journal share."""

    def heading(self, conversation_id: str = ONE, title: str = "") -> Heading:
        return Heading(conversation_id, self.owner, COACH, title, "prompt" if title else "")

    def begin(self, conversation_id: str | None = ONE, key: str | None = None) -> Reservation:
        return self.store.reserve(
            conversation_id,
            participant=self.owner,
            agent=COACH,
            create=True,
            once=None if key is None else Once.of(key, HELLO),
        )

    def journal(self, reservation: Reservation, entries: Iterable[JournalEntry]) -> None:
        for entry in entries:
            assert self.store.journal(reservation, entry, 60) is True

    def work(
        self,
        turn: Turn,
        conversation_id: str | None = ONE,
        *,
        key: str | None = None,
        title: str = "",
    ) -> Reservation:
        """Reserve a conversation and journal a turn, as a worker that is in the middle of it."""
        reservation = self.begin(conversation_id, key)
        heading = self.heading(reservation.conversation_id, title)
        self.journal(reservation, entries_of(turn, heading))
        return reservation

    def die(
        self,
        turn: Turn,
        conversation_id: str | None = ONE,
        *,
        key: str | None = None,
        title: str = "",
    ) -> Reservation:
        """Journal a turn as a worker that dies then; its time is over at once."""
        reservation = self.work(turn, conversation_id, key=key, title=title)
        self.expire(reservation)
        return reservation


class JournalPromises(Journalling):
    """
    A running turn notes what its tools are about to do and what they have done.

    Nobody sees the entries while it lives, and its end removes them.
    """

    def test_entries_are_no_part_of_the_conversation_while_the_turn_runs(self) -> None:
        turns = self.append(ONE, "before")
        before = self.store.get(ONE)
        reservation = self.work(dying_turn(), title="Late")
        for held in (None, reservation):
            assert self.store.load(ONE, reservation=held) == messages_of(turns)
        assert len(self.store.paginate_conversation_messages(ONE)) == 2
        assert self.store.get(ONE) == before
        assert self.store.latest_conversation_id(self.owner, COACH) is None
        with raises(ConversationBusy):
            self.elsewhere.reserve(ONE)

    def test_the_first_entry_reserves_a_conversation_yet_to_be(self) -> None:
        reservation = self.work(dying_turn(), None)
        conversation_id = reservation.conversation_id
        for create in (False, True):
            with raises(ConversationBusy):
                self.elsewhere.reserve(conversation_id, create=create)
            with raises(ConversationDoesNotExist):
                self.store.reserve(
                    conversation_id, participant=self.namesake, must_own=True, create=create
                )
        assert self.store.get(conversation_id) is None
        assert self.store.conversation_belongs_to(conversation_id, self.owner) is False
        assert len(self.store.paginate_conversation_messages(conversation_id)) == 0
        assert len(self.store.list_conversations(self.owner)) == 0
        assert self.store.latest_conversation_id(self.owner, COACH) is None
        with raises(ConversationDoesNotExist):
            self.store.rename(conversation_id, "Mine")
        with raises(ConversationConflict):
            self.store.create(conversation_id)
        assert self.store.renew(reservation, 60) is True

    def test_a_turn_that_is_appended_leaves_no_entries(self) -> None:
        turns = self.append(ONE, "before")
        turns.append(tool_turn())
        self.store.append(ONE, turns[-1], reservation=self.work(turns[-1]))
        self.expire(self.store.reserve(ONE))
        turns += self.append(ONE, "after")
        assert self.store.load(ONE) == messages_of(turns)

    def test_a_first_turn_that_is_appended_leaves_no_entries(self) -> None:
        for given in (ONE, None):
            reservation = self.work(tool_turn(), given)
            heading = self.heading(reservation.conversation_id)
            stored = self.store.append(heading, tool_turn(), reservation=reservation)
            assert (stored.turn_id, stored.created) == (reservation.turn_id, True)
            self.expire(self.store.reserve(heading.id))
            self.append(heading.id, "after")
            wanted = messages_of([tool_turn(), plain_turn("after")])
            assert self.store.load(heading.id) == wanted

    def test_a_turn_that_is_given_up_leaves_no_entries(self) -> None:
        turns = self.append(ONE, "before")
        self.store.release(self.work(dying_turn()))
        self.expire(self.store.reserve(ONE))
        turns += self.append(ONE, "after")
        assert self.store.load(ONE) == messages_of(turns)

    def test_a_first_turn_that_is_given_up_leaves_neither_entries_nor_a_conversation(self) -> None:
        for given in (ONE, None):
            reservation = self.work(dying_turn(), given)
            conversation_id = reservation.conversation_id
            self.store.release(reservation)
            assert self.store.get(conversation_id) is None
            with raises(ConversationDoesNotExist):
                self.store.reserve(conversation_id)
            self.expire(self.begin(conversation_id))
            with raises(ConversationDoesNotExist):
                self.store.reserve(conversation_id)
            assert self.store.load(conversation_id) == ()

    # Whoever lost the turn notes nothing.

    def assert_refused(self, reservation: Reservation) -> None:
        """Assert that no entry of a turn is taken; the first and the next ones are not."""
        for entry in entries_of(tool_turn("Late"), self.heading(reservation.conversation_id)):
            assert self.store.journal(reservation, entry, 60) is False

    def test_an_entry_of_a_turn_that_was_overtaken_changes_nothing(self) -> None:
        turns = self.append(ONE, "before")
        stale = self.begin()
        self.expire(stale)
        taken = self.work(dying_turn())
        self.assert_refused(stale)
        self.expire(taken)
        self.assert_refused(stale)
        turns += [interrupted(dying_turn()), *self.append(ONE, "after")]
        assert self.store.load(ONE) == messages_of(turns)

    def test_an_entry_of_a_turn_that_was_given_up_changes_nothing(self) -> None:
        turns = self.append(ONE, "before")
        for conversation_id in (ONE, TWO):
            given_up = self.begin(conversation_id)
            self.store.release(given_up)
            self.assert_refused(given_up)
        self.expire(self.store.reserve(ONE))
        turns += self.append(ONE, "after")
        assert self.store.load(ONE) == messages_of(turns)
        with raises(ConversationDoesNotExist):
            self.store.reserve(TWO)

    def test_clear_removes_entries_and_no_later_one_brings_them_back(self) -> None:
        self.append(TWO, "before")
        for given in (ONE, TWO, None):
            reservation = self.work(dying_turn(), given)
            conversation_id = reservation.conversation_id
            self.store.clear(conversation_id)
            self.assert_refused(reservation)
            assert self.store.get(conversation_id) is None
            turns = self.append(conversation_id, "anew")
            self.expire(self.store.reserve(conversation_id))
            turns += self.append(conversation_id, "after")
            assert self.store.load(conversation_id) == messages_of(turns)

    def test_a_conversation_that_was_opened_meanwhile_takes_no_first_entry(self) -> None:
        reservation = self.begin(None)
        turns = self.append(reservation.conversation_id, "faster")
        self.assert_refused(reservation)
        turns += self.append(reservation.conversation_id, "after")
        assert self.store.load(reservation.conversation_id) == messages_of(turns)
