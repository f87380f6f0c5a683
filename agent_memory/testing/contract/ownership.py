"""Whose a conversation is: the type and the key together, and nothing leaks to others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from agent_memory.exceptions import (
    ConversationBusy,
    ConversationDoesNotExist,
    InvalidParticipant,
)
from agent_memory.participants import Participant
from agent_memory.records import Heading
from agent_memory.testing.contract.base import COACH, ONE, TWO, Promises, plain_turn, raises


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
