"""What goes in comes out, of every store: whatever is said, or it is refused by name before."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest
from django.contrib.contenttypes.models import ContentType
from hypothesis import assume, given
from hypothesis import strategies as st

from agent_memory.approvals import Approve, Deny, Edit, asked_in
from agent_memory.exceptions import InvalidConversationId, InvalidParticipant
from agent_memory.journals import JournalEntry
from agent_memory.messages import Message, Replay, Step, ToolCall, Turn
from agent_memory.models import ConversationAttachment
from agent_memory.participants import Participant
from agent_memory.records import Heading, Once
from agent_memory.stores.attachments import files_of, set_aside
from agent_memory.stores.database import DatabaseConversationStore
from agent_memory.testing.contract.base import messages_of, plain_turn
from tests.anything import (
    ASKED,
    CALLED,
    ITEMS,
    MESSAGES,
    OBJECTS,
    RESULTS,
    SHORT_TEXTS,
    STEPS,
    TEXTS,
    TURNS,
)
from tests.stores.every_store import ANYTHING, is_storable, reopened, store

pytestmark = pytest.mark.heavy

__all__ = ["store"]


# Whole turns.


@ANYTHING
@given(turns=st.lists(TURNS, min_size=1, max_size=3))
def test_whatever_a_turn_holds_comes_back_equal(store, turns):
    name = str(uuid4())
    for turn in turns:
        store.append(name, turn)
    again = reopened(store)
    loaded = again.load(name)
    assert loaded == messages_of(turns)
    assert repr(loaded) == repr(messages_of(turns))
    newest_first = reversed(again.paginate_conversation_messages(name).items)
    for turn, user, answer in zip(turns, newest_first, newest_first, strict=True):
        assert repr(user.parts) == repr(set_aside(name, turn.user.content))
        assert repr(answer.steps) == repr(turn.steps)
        assert (answer.status, bool(answer.meta)) == (turn.status, turn.error is not None)
        if turn.error is not None:
            assert answer.meta["error"] == turn.error.model_dump(exclude_defaults=True)


@ANYTHING
@given(leading=st.lists(ASKED, max_size=3), turn=TURNS)
def test_whatever_leads_a_conversation_comes_back_before_each_turn(store, leading, turn):
    name, message = str(uuid4()), Message("developer", leading)
    store.create(name, leading=[message])
    store.append(name, turn)
    loaded = reopened(store).load(name, keep_last_turns=1)
    assert repr(loaded) == repr((message, *turn.messages))


@ANYTHING
@given(messages=st.lists(MESSAGES, min_size=1, max_size=3))
def test_the_bytes_of_files_are_read_back_and_stored_once_each(store, messages):
    name = str(uuid4())
    for message in messages:
        store.append(name, Turn(user=message))
    again = reopened(store)
    files = [
        (attachment, part)
        for stored, message in zip(
            again.paginate_conversation_messages(name).items[-1::-2], messages, strict=True
        )
        for attachment, part in zip(
            stored.attachments,
            [part for part in message.content if getattr(part, "data", None) is not None],
            strict=True,
        )
    ]
    for attachment, part in files:
        assert again.read_attachment(name, attachment.id) == part.data
        assert (attachment.file_name, attachment.media_type) == (part.file_name, part.media_type)
    if isinstance(store, DatabaseConversationStore):
        rows = ConversationAttachment.objects.filter(conversation=name)
        assert rows.count() == len(files_of(messages))
    store.clear(name)
    assert not ConversationAttachment.objects.exists() or not isinstance(
        store, DatabaseConversationStore
    )


@ANYTHING
@given(
    user=MESSAGES,
    asked=st.fixed_dictionaries(CALLED),
    items=st.lists(ITEMS, max_size=2),
    blocks=st.lists(OBJECTS, max_size=2),
    edited=OBJECTS,
    note=TEXTS,
    reason=TEXTS,
)
def test_whatever_a_paused_turn_holds_goes_on(
    store, user, asked, items, blocks, edited, note, reason
):
    call = ToolCall(**asked, approval_reason=reason)
    replay = Replay(provider=reason, model=reason, blocks=tuple(blocks))
    step = Step(items=(*items, call), finish_reason="tool_calls", replay=replay)
    turn, name = Turn(user=user, steps=(step,), status="paused"), str(uuid4())
    waiting = asked_in(turn)
    assume(len({each.asked.id for each in waiting}) == len(waiting))
    stored = store.append(name, turn)
    again = reopened(store)
    assert repr(again.pending_approvals_for(name)) == repr(tuple(each.asked for each in waiting))
    decisions = {each.asked.id: Deny(note) for each in waiting} | {call.id: Edit(edited)}
    if "*" in decisions or not is_storable(note, 10**9):
        decisions, note = {"*": Approve()}, ""
    assert again.decide(name, decisions, note=note) == ()
    paused = reopened(store).reserve(name, resume=True).paused
    assert repr(paused.turn) == repr(turn)
    assert paused.stored == replace(stored, created=False)
    if note:
        by_id = {each.asked.id: each for each in paused.approvals}
        assert repr(by_id[call.id].edited) == repr(edited)
        assert {each.note for each in paused.approvals} == {note}


@ANYTHING
@given(user=MESSAGES, step=STEPS, results=st.lists(RESULTS, min_size=3, max_size=3))
def test_whatever_a_dead_worker_noted_is_in_the_turn_that_is_recorded(store, user, step, results):
    name = str(uuid4())
    reservation = store.reserve(name, create=True)
    entry = JournalEntry(0, -1, step, Heading(name), user)
    assert store.journal(reservation, entry, 60)
    noted = dict(enumerate(results[: len(step.tool_calls())]))
    for index, result in noted.items():
        assert store.journal(reservation, JournalEntry(0, index, result), 60)
    assert store.renew(reservation, 0)
    buried = reopened(store).reserve(name).buried
    assert repr(buried.turn.user) == repr(user)
    assert repr(buried.turn.steps) == repr((step.with_results(noted),))


# Ids, titles, labels, keys and notes.


@ANYTHING
@given(name=SHORT_TEXTS, data=st.data())
def test_an_id_is_a_conversation_of_its_own_or_refused(store, name, data):
    at = data.draw(st.integers(0, max(len(name) - 1, 0)))
    instead = data.draw(
        st.sampled_from([name[at : at + 1].swapcase(), "", " ", "\u00e4", "a\u0308"])
    )
    other = name[:at] + instead + name[at + 1 :]
    for each in {name, other}:
        if not each or not is_storable(each):
            with pytest.raises(InvalidConversationId):
                store.append(each, plain_turn(each))
            return
    for each in {name, other}:
        store.append(each, plain_turn(each))
    again = reopened(store)
    for each in {name, other}:
        assert again.load(each) == plain_turn(each).messages
        assert again.get(each).id == each
    store.clear(name)
    assert bool(store.load(other)) == (other != name)
    store.clear(other)


@ANYTHING
@given(text=SHORT_TEXTS)
def test_a_title_and_a_label_come_back_equal_or_are_refused(store, text):
    name = str(uuid4())
    if not is_storable(text):
        for refused in (
            lambda: store.create(name, title=text),
            lambda: store.create(name, agent=text),
            lambda: store.append(Heading(name, agent=text), plain_turn()),
        ):
            with pytest.raises(ValueError, match=r"A title|An agent's label"):
                refused()
        assert store.get(name) is None
        return
    store.create(name, title=text, agent=text)
    stored = reopened(store).get(name)
    assert (stored.title, stored.agent) == (text, text)
    store.rename(name, f"{text[:-1]}")
    assert reopened(store).get(name).title == text[:-1]
    listed = reopened(store).list_conversations(None, agent=text, per_page=1000)
    assert name in [each.id for each in listed]
    assert {each.agent for each in listed} == {text}


@ANYTHING
@given(key=SHORT_TEXTS, message=MESSAGES)
def test_a_key_finds_its_turn_and_no_other_or_is_refused(store, key, message):
    name = str(uuid4())
    if not key or not is_storable(key):
        with pytest.raises(ValueError, match="An idempotency key"):
            Once.of(key, message)
        return
    turn, once = Turn(user=message), Once.of(key, message)
    store.append(name, turn, reservation=store.reserve(name, create=True, once=once))
    answered = reopened(store).reserve(name, once=once).answered
    assert repr(answered.turn.user) == repr(message)
    near = Once.of(f"{key[:254]} ", message)
    assume(near != once)
    free = store.reserve(name, once=near)
    assert free.answered is None
    store.release(free)


@ANYTHING
@given(key=SHORT_TEXTS)
def test_a_participant_has_its_own_conversations_or_is_refused(store, key):
    if isinstance(store, DatabaseConversationStore):
        ContentType.objects.clear_cache()
    if not key or not is_storable(key):
        with pytest.raises(InvalidParticipant):
            Participant("auth.user", key)
        return
    who, near = Participant("auth.user", key), Participant("auth.user", f"{key[:254]} ")
    names = {each: str(uuid4()) for each in {who, near}}
    for each, name in names.items():
        store.append(Heading(name, each, "coach"), plain_turn())
    again = reopened(store)
    for each, name in names.items():
        assert again.get(name).participant == each
        assert again.latest_conversation_id(each, "coach") == name
        listed = {stored.id for stored in again.list_conversations(each, per_page=1000)}
        assert name in listed
        assert not listed & {other for one, other in names.items() if one != each}
