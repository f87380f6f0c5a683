"""Whose a conversation is: the type and the key together, and nothing leaks to others."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from agent_memory import conf
from agent_memory.approvals import Approve
from agent_memory.exceptions import (
    ConversationBusy,
    ConversationConflict,
    ConversationDoesNotExist,
    InvalidConversationId,
    InvalidParticipant,
)
from agent_memory.journals import JournalEntry
from agent_memory.messages import Message
from agent_memory.participants import Participant
from agent_memory.records import Heading
from agent_memory.testing.contract.base import (
    COACH,
    INVALID_IDS,
    ONE,
    TWO,
    Promises,
    plain_turn,
    raises,
    tool_turn,
)
from agent_memory.testing.contract.pausing import asking_turn


class _Unsaved:
    """What a model instance looks like before it is saved."""

    id = pk = None
    _state = SimpleNamespace(adding=True)
    _meta = SimpleNamespace(object_name="Order")


# What can be nobody: no participant, no model instance, one without a key.
NOBODIES: tuple[Any, ...] = (
    *("auth.user", 7, ("auth.user", "1"), object(), {}, Participant, _Unsaved()),
    SimpleNamespace(is_anonymous=True, is_authenticated=False, id=None, pk=None),
)


class OwnershipPromises(Promises):
    """A conversation belongs to the participant of its first turn, or to nobody."""

    @property
    def others(self) -> tuple[Participant | None, ...]:
        swapped = Participant(self.namesake.type, self.sibling.key)
        return (self.namesake, self.sibling, swapped, None)

    def test_a_conversation_belongs_to_its_type_and_key_together(self) -> None:
        self.store.append(Heading(ONE, self.owner, COACH), plain_turn())
        assert self.store.conversation_belongs_to(ONE, self.owner) is True
        for other in self.others:
            assert self.store.conversation_belongs_to(ONE, other) is False, other
        assert self.store.conversation_belongs_to(TWO, self.owner) is False
        assert self.store.conversation_belongs_to(TWO, None) is False

    def test_a_conversation_without_an_owner_belongs_to_nobody(self) -> None:
        self.store.append(Heading(ONE, None, COACH), plain_turn())
        assert self.store.conversation_belongs_to(ONE, None) is True
        assert self.store.conversation_belongs_to(ONE, self.owner) is False

    def test_the_owner_stays_when_somebody_else_speaks(self) -> None:
        self.store.append(Heading(ONE, self.owner, COACH), plain_turn())
        for other in self.others:
            self.store.append(Heading(ONE, other, COACH), plain_turn())
        stored = self.store.get(ONE)
        assert stored is not None
        assert stored.participant == self.owner
        spoke = [
            message.participant
            for message in self.store.paginate_conversation_messages(ONE)
            if message.role == "user"
        ]
        assert spoke == [*reversed(self.others), self.owner]

    def test_must_own_lets_the_owner_in_and_creates_what_is_new(self) -> None:
        self.store.append(Heading(ONE, self.owner, COACH), plain_turn())
        self.store.release(self.store.reserve(ONE, participant=self.owner, must_own=True))
        self.store.append(Heading(TWO, None, COACH), plain_turn())
        self.store.release(self.store.reserve(TWO, participant=None, must_own=True))
        new = self.store.reserve("new", participant=self.owner, must_own=True, create=True)
        self.store.append(Heading("new", self.owner, COACH), plain_turn(), reservation=new)
        assert self.store.conversation_belongs_to("new", self.owner)

    def test_without_must_own_anybody_goes_on(self) -> None:
        self.store.append(Heading(ONE, self.owner, COACH), plain_turn())
        for other in self.others:
            self.store.release(self.store.reserve(ONE, participant=other))

    def test_with_must_own_a_foreign_conversation_looks_like_a_missing_one(self) -> None:
        self.store.append(Heading(ONE, self.owner, COACH), plain_turn())
        self.store.append(Heading("nobody's", None, COACH), plain_turn())
        foreign = [(ONE, other, create) for other in self.others for create in (False, True)]
        foreign += [("nobody's", self.owner, create) for create in (False, True)]
        for busy in (False, True):
            if busy:
                self.store.reserve(ONE, participant=self.owner)
                self.store.reserve("nobody's")
            for conversation_id, other, create in foreign:
                with raises(ConversationDoesNotExist, msg=f"{other} {busy} {create}") as caught:
                    self.store.reserve(
                        conversation_id, participant=other, must_own=True, create=create
                    )
                with raises(ConversationDoesNotExist) as missing:
                    self.store.reserve(TWO, participant=other, must_own=True)
                told = str(caught.exception).replace(repr(conversation_id), repr(TWO))
                assert told == str(missing.exception)
        with raises(ConversationBusy):
            self.store.reserve(ONE, participant=self.owner, must_own=True)

    def test_a_foreign_first_turn_looks_like_a_missing_conversation(self) -> None:
        self.store.reserve(ONE, participant=self.owner, create=True)
        for other in self.others:
            with raises(ConversationDoesNotExist):
                self.store.reserve(ONE, participant=other, must_own=True)
            with raises(ConversationDoesNotExist):
                self.store.reserve(ONE, participant=other, must_own=True, create=True)

    def test_a_dead_first_turn_belongs_to_nobody(self) -> None:
        for other in self.others:
            dead = self.store.reserve(ONE, participant=self.owner, create=True)
            self.expire(dead)
            with raises(ConversationDoesNotExist):
                self.store.reserve(ONE, participant=self.owner)
            taken = self.store.reserve(ONE, participant=other, must_own=True, create=True)
            with raises(ConversationDoesNotExist):
                self.store.reserve(ONE, participant=self.owner, must_own=True, create=True)
            heading = Heading(ONE, other, COACH)
            assert self.store.append(heading, plain_turn(), reservation=taken).created
            assert self.store.conversation_belongs_to(ONE, other)
            self.store.clear(ONE)

    def test_what_can_own_no_conversation_is_refused_before_anything_is_changed(self) -> None:
        self.store.append(Heading(ONE, self.owner, COACH), plain_turn())
        for nobody in NOBODIES:
            with raises(InvalidParticipant, msg=repr(nobody)):
                self.store.reserve(ONE, participant=nobody)
            with raises(InvalidParticipant, msg=repr(nobody)):
                self.store.reserve(participant=nobody)
            with raises(InvalidParticipant, msg=repr(nobody)):
                self.store.create(TWO, participant=nobody)
            with raises(InvalidParticipant, msg=repr(nobody)):
                self.store.list_conversations(nobody)
            with raises(InvalidParticipant, msg=repr(nobody)):
                self.store.latest_conversation_id(nobody, COACH)
            with raises(InvalidParticipant, msg=repr(nobody)):
                self.store.conversation_belongs_to(ONE, nobody)
        assert self.store.get(TWO) is None
        self.store.reserve(ONE)

    # Handing over.

    def speakers_in(self, conversation_id: str) -> list[Participant | None]:
        """Return who said what, oldest first."""
        page = self.store.paginate_conversation_messages(conversation_id)
        return [message.participant for message in page if message.role == "user"][::-1]

    def ids_of(self, owner: Participant | None) -> set[str]:
        return {stored.id for stored in self.store.list_conversations(owner)}

    def let_speak(self, conversation_id: str, *speakers: Participant | None) -> None:
        for speaker in speakers:
            self.store.append(Heading(conversation_id, speaker, COACH), plain_turn())

    def test_what_is_nobodys_is_handed_over_with_what_nobody_said(self) -> None:
        self.let_speak(ONE, None, self.sibling, None)
        self.let_speak(TWO, None)
        self.store.transfer_conversation(ONE, self.owner)
        assert self.store.conversation_belongs_to(ONE, self.owner)
        assert (self.ids_of(self.owner), self.ids_of(None)) == ({ONE}, {TWO})
        assert self.speakers_in(ONE) == [self.owner, self.sibling, self.owner]
        assert self.speakers_in(TWO) == [None]
        assert self.store.latest_conversation_id(self.owner, COACH) == ONE
        self.store.release(self.store.reserve(ONE, participant=self.owner, must_own=True))

    def test_what_is_somebodys_is_handed_over_without_what_they_said(self) -> None:
        self.let_speak(ONE, self.owner, None)
        for new in (self.sibling, None):
            self.store.transfer_conversation(ONE, new)
            assert self.store.conversation_belongs_to(ONE, new)
            assert (self.ids_of(self.owner), self.ids_of(new)) == (set(), {ONE})
            assert self.speakers_in(ONE) == [self.owner, None]

    def test_handing_over_changes_nothing_but_the_owner(self) -> None:
        leading = (Message("system", "Be kind."),)
        self.store.create(ONE, agent=COACH, title="Plans", leading=leading)
        self.let_speak(ONE, None)
        before, window = self.store.get(ONE), self.store.load(ONE)
        assert before is not None
        self.store.transfer_conversation(ONE, self.owner)
        assert self.store.get(ONE) == replace(before, participant=self.owner)
        assert self.store.load(ONE) == window
        *_, oldest = self.store.paginate_conversation_messages(ONE)
        assert (oldest.content, oldest.participant) == ("Be kind.", None)

    def test_what_is_not_there_cannot_be_handed_over_nor_to_what_can_own_nothing(self) -> None:
        self.let_speak(ONE, None)
        self.store.reserve(TWO, create=True)
        for unknown in ("unknown", TWO):
            with raises(ConversationDoesNotExist):
                self.store.transfer_conversation(unknown, self.owner)
        for nobody in NOBODIES:
            with raises(InvalidParticipant, msg=repr(nobody)):
                self.store.transfer_conversation(ONE, nobody)
        for invalid in INVALID_IDS:
            with raises(InvalidConversationId, msg=repr(invalid)):
                self.store.transfer_conversation(invalid, self.owner)
        assert self.store.conversation_belongs_to(ONE, None)

    def test_a_turn_that_runs_goes_on_when_its_conversation_is_handed_over(self) -> None:
        self.let_speak(ONE, None)
        running = self.store.reserve(ONE)
        self.store.transfer_conversation(ONE, self.owner)
        self.store.append(Heading(ONE, self.sibling, COACH), plain_turn(), reservation=running)
        assert self.store.conversation_belongs_to(ONE, self.owner)
        assert self.speakers_in(ONE) == [self.owner, self.sibling]

    # Who is gone.

    def test_all_conversations_of_a_participant_are_cleared_and_no_others(self) -> None:
        many = [f"mine {number}" for number in range(conf.setting("MESSAGES_PER_PAGE") + 2)]
        for conversation_id in many:
            self.let_speak(conversation_id, self.owner)
        for other in self.others:
            self.let_speak(f"of {other}", other, self.owner)
        running = self.store.reserve(many[0])
        self.store.clear_conversations(self.owner)
        assert self.ids_of(self.owner) == set()
        assert not any(self.store.load(conversation_id) for conversation_id in many)
        for other in self.others:
            assert self.ids_of(other) == {f"of {other}"}
        heading = Heading(many[0], self.owner, COACH)
        with raises(ConversationConflict):
            self.store.append(heading, plain_turn(), reservation=running)

    def test_a_participant_becomes_nobody_wherever_they_are_and_others_stay(self) -> None:
        self.let_speak(ONE, self.owner, self.sibling)
        self.let_speak(TWO, self.sibling, self.owner, self.namesake)
        self.store.anonymise_participant(self.owner)
        assert self.store.conversation_belongs_to(ONE, None)
        assert self.store.conversation_belongs_to(TWO, self.sibling)
        assert self.ids_of(self.owner) == set()
        assert self.speakers_in(ONE) == [None, self.sibling]
        assert self.speakers_in(TWO) == [self.sibling, None, self.namesake]
        assert self.store.latest_conversation_id(self.owner, COACH) is None
        assert len(self.store.load(ONE)) == 4

    def test_who_decided_becomes_nobody_too(self) -> None:
        self.let_speak(ONE, self.sibling)
        turn = asking_turn(calls=2)
        self.store.append(ONE, turn, reservation=self.store.reserve(ONE))
        self.store.decide(ONE, {"call-0": Approve()}, decided_by=self.owner)
        self.store.decide(ONE, {"call-1": Approve()}, decided_by=self.namesake)
        self.store.anonymise_participant(self.owner)
        paused = self.store.reserve(ONE, resume=True).paused
        assert paused is not None
        assert [each.decided_by for each in paused.approvals] == [None, self.namesake]

    def test_a_turn_that_runs_when_its_owner_becomes_nobody_is_not_saved(self) -> None:
        self.let_speak(ONE, self.owner)
        self.let_speak(TWO, self.sibling)
        mine, other = self.store.reserve(ONE), self.store.reserve(TWO)
        self.store.anonymise_participant(self.owner)
        heading = Heading(ONE, self.owner, COACH)
        with raises(ConversationConflict):
            self.store.append(heading, plain_turn(), reservation=mine)
        self.store.release(self.store.reserve(ONE))
        assert self.speakers_in(ONE) == [None]
        self.store.append(Heading(TWO, self.sibling), plain_turn(), reservation=other)

    def test_a_paused_turn_that_is_resumed_then_stays_paused(self) -> None:
        heading = Heading(ONE, self.owner, COACH)
        self.store.append(heading, asking_turn())
        resumed = self.store.reserve(ONE, resume=True)
        self.store.anonymise_participant(self.owner)
        with raises(ConversationConflict):
            self.store.settle(heading, None, reservation=resumed)
        again = self.store.reserve(ONE, resume=True).paused
        assert again is not None
        assert resumed.paused is not None
        assert again.turn == resumed.paused.turn
        assert self.speakers_in(ONE) == [None]

    def test_what_it_did_so_far_is_recorded_as_said_by_nobody(self) -> None:
        self.let_speak(ONE, self.owner)
        running = self.store.reserve(ONE)
        heading = Heading(ONE, self.owner, COACH)
        step = tool_turn().steps[0].model_copy(update={"finish_reason": "tool_calls"})
        entry = JournalEntry(0, -1, step, heading, Message("user", "Look."))
        assert self.store.journal(running, entry, 60)
        self.store.anonymise_participant(self.owner)
        with raises(ConversationConflict):
            self.store.append(heading, plain_turn("Look."), reservation=running)
        self.store.release(self.store.reserve(ONE))
        assert [message.text for message in self.store.load(ONE)][2] == "Look."
        assert self.speakers_in(ONE) == [None, None]

    def test_only_somebody_can_be_cleared_or_become_nobody(self) -> None:
        self.let_speak(ONE, None)
        for nobody in (None, *NOBODIES):
            with raises(InvalidParticipant, msg=repr(nobody)):
                self.store.clear_conversations(nobody)
            with raises(InvalidParticipant, msg=repr(nobody)):
                self.store.anonymise_participant(nobody)
        assert self.ids_of(None) == {ONE}
