"""A store of three methods, in either colour, is a store."""

from __future__ import annotations

import asyncio
import inspect
import threading
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from agent_memory.approvals import Approve
from agent_memory.exceptions import ConversationBusy, ConversationDoesNotExist
from agent_memory.history import window
from agent_memory.messages import DocumentPart, ImagePart, Message, TextPart, Turn
from agent_memory.participants import Participant
from agent_memory.records import (
    Heading,
    Once,
    Reservation,
    StoredTurn,
    check_conversation_id,
    new_id,
)
from agent_memory.stores.base import ConversationStore
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.testing import (
    AsyncBasicConversationStoreContract,
    BasicConversationStoreContract,
)
from agent_memory.testing.contract.base import plain_turn, tool_turn
from agent_memory.testing.contract.fidelity import AWKWARD_IDS, odd_turns
from agent_memory.testing.contract.journals import entries_of
from agent_memory.testing.contract.keys import OTHER_MESSAGES

TWINS = {
    *(
        "load",
        "append",
        "clear",
        "reserve",
        "renew",
        "release",
        "journal",
        "create",
        "get",
        "rename",
    ),
    *("transfer_conversation", "clear_conversations", "anonymise_participant"),
    *("list_conversations", "latest_conversation_id", "conversation_belongs_to"),
    *("paginate_conversation_messages", "pending_approvals_for", "decide", "settle"),
    "read_attachment",
}


class ThreeMethods(ConversationStore):
    """As small as a store may be."""

    def __init__(self) -> None:
        super().__init__()
        self.histories: dict[str, tuple[Turn, ...]] = {}

    def load(
        self,
        conversation_id: str,
        *,
        keep_last_turns: int = 0,
        reservation: Reservation | None = None,
    ) -> tuple[Message, ...]:
        turns = self.histories.get(check_conversation_id(conversation_id), ())
        messages = [message for turn in turns for message in turn.messages]
        copies = tuple(message.model_copy(deep=True) for message in messages)
        return window(copies, keep_last_turns)

    def append(
        self, conversation: Heading | str, turn: Turn, *, reservation: Reservation | None = None
    ) -> StoredTurn:
        heading = Heading.of(conversation)
        own = None if reservation else self.reserve(heading.id, create=True)
        try:
            before = self.histories.get(heading.id, ())
            assert turn.messages
            self.histories[heading.id] = (*before, turn.model_copy(deep=True))
        finally:
            if own:
                self.release(own)
        turn_id = (reservation or own).turn_id
        return StoredTurn(heading.id, turn_id, new_id(), new_id(), created=not before)

    def clear(self, conversation_id: str) -> None:
        self.histories.pop(check_conversation_id(conversation_id), None)


class ThreeAsyncMethods(ConversationStore):
    """As small as a store may be that awaits."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = ThreeMethods()

    async def aload(self, conversation_id: str, **kwargs: Any) -> tuple[Message, ...]:
        await asyncio.sleep(0)
        return self.kept.load(conversation_id, **kwargs)

    async def aappend(self, conversation: Any, turn: Turn, **kwargs: Any) -> StoredTurn:
        await asyncio.sleep(0)
        return self.kept.append(conversation, turn, **kwargs)

    async def aclear(self, conversation_id: str) -> None:
        await asyncio.sleep(0)
        self.kept.clear(conversation_id)


class TestThreeMethods(BasicConversationStoreContract):
    def make_store(self) -> ConversationStore:
        return ThreeMethods()


@pytest.mark.heavy
class TestThreeMethodsAwaited(AsyncBasicConversationStoreContract):
    def make_store(self) -> ConversationStore:
        return ThreeMethods()


@pytest.mark.heavy
class TestThreeAsyncMethods(BasicConversationStoreContract):
    def make_store(self) -> ConversationStore:
        return ThreeAsyncMethods()


class TestThreeAsyncMethodsAwaited(AsyncBasicConversationStoreContract):
    def make_store(self) -> ConversationStore:
        return ThreeAsyncMethods()

    @pytest.mark.heavy
    def test_every_part_text_name_and_number_comes_back_equal(self) -> None:
        super().test_every_part_text_name_and_number_comes_back_equal()


def test_every_method_has_a_twin_that_is_awaited():
    public = {name for name in dir(ConversationStore) if name[0] != "_"}
    methods = {name for name in public if inspect.isfunction(getattr(ConversationStore, name))}
    twins = {name for name in methods if name[0] == "a" and name[1:] in methods}
    assert {name[1:] for name in twins} == TWINS
    assert methods - twins - TWINS == {"hop", "participant_of"}
    for name in twins:
        twin = getattr(ConversationStore, name)
        assert inspect.iscoroutinefunction(twin)
        assert (twin.__name__, twin.__doc__) == (name, f"See {name[1:]}().")


def test_a_twin_runs_what_a_subclass_wrote_on_the_thread_of_its_caller():
    class Traced(ThreeMethods):
        def clear(self, conversation_id: str) -> None:
            self.seen = (conversation_id, threading.current_thread())

    store = Traced()
    async_to_sync(store.aclear)("one")
    assert store.seen == ("one", threading.current_thread())


@pytest.mark.parametrize(
    ("method", "call"),
    [
        ("load", lambda store: store.load("one")),
        ("append", lambda store: store.append("one", plain_turn())),
        ("clear", lambda store: store.clear("one")),
        ("create", lambda store: store.create("one")),
        ("get", lambda store: store.get("one")),
        ("rename", lambda store: store.rename("one", "Title")),
        ("list_conversations", lambda store: store.list_conversations(None)),
        ("latest_conversation_id", lambda store: store.latest_conversation_id(None, "coach")),
        ("get", lambda store: store.conversation_belongs_to("one", None)),
        ("transfer_conversation", lambda store: store.transfer_conversation("one", None)),
        (
            "list_conversations",
            lambda store: store.clear_conversations(Participant("auth.user", "1")),
        ),
        (
            "anonymise_participant",
            lambda store: store.anonymise_participant(Participant("auth.user", "1")),
        ),
        ("read_attachment", lambda store: store.read_attachment("one", "a")),
        (
            "paginate_conversation_messages",
            lambda store: store.paginate_conversation_messages("one"),
        ),
        ("reserve", lambda store: store.reserve("one", once=Once("key", ""), create=True)),
        ("reserve", lambda store: store.reserve(once=Once("key", ""))),
        ("reserve", lambda store: async_to_sync(store.areserve)("one", once=Once("key", ""))),
        ("reserve", lambda store: store.reserve("one", resume=True)),
        ("pending_approvals_for", lambda store: store.pending_approvals_for("one")),
        ("decide", lambda store: store.decide("one", {"*": Approve()})),
        ("settle", lambda store: store.settle("one", None, reservation=Reservation("one", "t"))),
        ("load", lambda store: async_to_sync(store.aload)("one")),
        ("get", lambda store: async_to_sync(store.aget)("one")),
    ],
)
def test_a_method_that_a_store_lacks_is_named(method, call):
    class Bare(ConversationStore):
        pass

    with pytest.raises(NotImplementedError, match=rf"^Bare must define {method}\(\) for this\.$"):
        call(Bare())


def test_a_store_refuses_options_that_it_does_not_know():
    for store in (ThreeMethods, InMemoryConversationStore, ConversationStore):
        with pytest.raises(TypeError):
            store(path="/tmp")
    with pytest.raises(TypeError, match="takes no option 'path'"):
        InMemoryConversationStore(path="/tmp")


def test_must_own_asks_the_store_whose_a_conversation_is():
    class Owned(ThreeMethods):
        def conversation_belongs_to(self, conversation_id: str, participant: Any) -> bool:
            return participant == owner

    owner, other = Participant("auth.user", "1"), Participant("auth.user", "2")
    store = Owned()
    store.append("one", plain_turn())
    store.release(store.reserve("one", participant=owner, must_own=True))
    with pytest.raises(ConversationDoesNotExist):
        store.reserve("one", participant=other, must_own=True)
    store.reserve("two", participant=other, must_own=True, create=True)


def test_reservations_of_two_stores_are_apart():
    first, second = ThreeMethods(), ThreeMethods()
    for store in (first, second):
        store.append("one", plain_turn())
        store.reserve("one")
    with pytest.raises(ConversationBusy):
        first.reserve("one")


def test_a_store_without_keys_holds_nothing_after_it_has_said_so():
    store = ThreeMethods()
    store.append("one", plain_turn())
    with pytest.raises(NotImplementedError):
        store.reserve("one", once=Once("key", ""))
    store.reserve("one")


def test_a_store_without_a_journal_only_renews_for_an_entry():
    store = ThreeMethods()
    reservation = store.reserve("one", create=True)
    store.renew(reservation, 0)
    for entry in entries_of(tool_turn(), Heading("one")):
        assert store.journal(reservation, entry, 60) is True
        assert async_to_sync(store.ajournal)(reservation, entry, 60) is True
    with pytest.raises(ConversationBusy):
        store.reserve("one", create=True)
    store.renew(reservation, 0)
    store.reserve("one", create=True)
    assert store.load("one") == ()
    yet_to_be = store.reserve()
    assert store.journal(yet_to_be, entry, 60) is True


# Keys.


@pytest.mark.parametrize("key", ["", "x" * 256, "a\0b", "a\ud800", 7, b"key", None, ["key"], False])
def test_what_is_no_text_of_1_to_255_storable_characters_is_no_key(key):
    with pytest.raises(ValueError, match="An idempotency key"):
        Once.of(key, Message("user", "Hello"))


@pytest.mark.parametrize("key", [*AWKWARD_IDS, "x" * 255, "\U0001f600" * 255])
def test_any_other_text_is_a_key_as_it_is(key):
    assert Once.of(key, Message("user", "Hello")).key == key


def test_a_key_has_one_fingerprint_for_each_message_however_it_was_given():
    messages = (
        *OTHER_MESSAGES,
        *(turn.user for turn in odd_turns()),
        Message("user", (ImagePart(data=b"a", media_type="image/png"),)),
        Message("user", (ImagePart(data=b"b", media_type="image/png"),)),
        Message("user", (DocumentPart(data=b"a", media_type="image/png"),)),
        Message("user", (TextPart(text="a", provider_options={"a": 1, "b": [1, 2]}),)),
        Message("user", (TextPart(text="a", provider_options={"a": 1, "b": [2, 1]}),)),
    )
    distinct = {repr(message): message for message in messages}.values()
    assert len({Once.of("key", message).fingerprint for message in distinct}) == len(distinct)
    assert len(distinct) > 40
    for message in distinct:
        again = Message.model_validate(message.model_dump())
        assert Once.of("key", again) == Once.of("key", message)
    options = ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    made = [Message(content=[TextPart(text="a", provider_options=each)]) for each in options]
    assert made[0] == made[1]
    assert Once.of("key", made[0]) == Once.of("key", made[1])


def test_fingerprints_that_are_stored_already_stay_what_they_are():
    fingerprint = "c820cd20948b21896be7295053f786bc8b6c046423086643cecc371141236117"
    assert Once.of("key", Message("user", "Hello")).fingerprint == fingerprint


def test_a_first_message_opens_the_same_conversation_for_the_same_key_speaker_and_agent():
    once, other = (Once.of(key, Message("user", "Hello")) for key in ("key", "other"))
    speakers = (None, Participant("auth.user", "1"), Participant("auth.group", "1"))
    ids = [
        each.conversation_id(speaker, agent)
        for each in (once, other)
        for speaker in speakers
        for agent in ("", "coach")
    ]
    assert len(set(ids)) == len(ids) == 12
    again = Once.of("key", Message("user", "Another one"))
    assert again.conversation_id(None, "") == once.conversation_id(None, "") == ids[0]
    assert [check_conversation_id(each) for each in ids] == ids
