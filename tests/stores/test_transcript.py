"""A conversation held as values: positions, windows, pages, totals, keys and a journal."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from agent_memory.exceptions import ConversationConflict, TurnFailed
from agent_memory.messages import Message, Step, Turn, TurnError, Usage
from agent_memory.participants import Participant
from agent_memory.records import Answered, Heading, Once, Reservation
from agent_memory.stores.transcript import Transcript
from agent_memory.testing.contract.base import plain_turn, tool_turn
from agent_memory.testing.contract.journals import entries_of

BEGUN = datetime(2030, 1, 2, tzinfo=UTC)
ENDED = BEGUN + timedelta(seconds=5)
OWNER = Participant("auth.user", "1")
LEADING = (Message("system", "1"), Message("developer", "2"))


def add(transcript: Transcript, turn: Turn, number: int = 1, **heading: str) -> None:
    made = Heading("one", OWNER, "coach", **heading)
    reservation = Reservation("one", "turn", begun_at=BEGUN)
    transcript.add(turn, made, reservation, ended=ENDED, number=number)


def test_turns_stand_at_two_positions_each_and_leading_messages_below_zero():
    transcript = Transcript("one")
    transcript.open(BEGUN, LEADING)
    add(transcript, plain_turn("a"))
    add(transcript, tool_turn("b", calls=3))
    assert [message.position for message in transcript.messages] == [-2, -1, 0, 1, 2, 3]
    assert transcript.next_position == 4
    page = transcript.page(3, None)
    assert [message.position for message in page] == [3, 2, 1]
    assert [message.position for message in transcript.page(3, 1)] == [0, -1, -2]
    assert transcript.page(3, -2).items == transcript.page(3, -900).items == ()
    assert [message.position for message in transcript.page(9, 900)] == [3, 2, 1, 0, -1, -2]


def test_a_turn_opens_its_conversation_and_tells_when_it_began_and_ended():
    transcript = Transcript("one", OWNER)
    add(transcript, plain_turn())
    stored = transcript.stored()
    assert (stored.opened_at, stored.last_activity, stored.turns) == (ENDED, ENDED, 1)
    assert [message.created_at for message in transcript.messages] == [BEGUN, ENDED]
    assert [message.participant for message in transcript.messages] == [OWNER, None]
    assert transcript.spoke == {(OWNER, "coach"): 1}


def test_a_title_is_taken_once():
    transcript = Transcript("one")
    for title in ("", "First", "Second"):
        add(transcript, plain_turn(), title=title, title_source="prompt" if title else "")
    assert (transcript.title, transcript.title_source) == ("First", "prompt")


def test_tokens_add_up_and_an_error_is_told_beside_the_message():
    transcript = Transcript("one")
    step = Step(usage=Usage(input_tokens=3))
    add(transcript, Turn(user=Message(), steps=(step, step), title_usage=Usage(output_tokens=4)))
    error = TurnError(code="Timeout", request_id="r-1")
    add(transcript, Turn(user=Message(), status="failed", error=error))
    assert transcript.usage == Usage(input_tokens=6, output_tokens=4)
    assert transcript.messages[-1].meta == {"error": {"code": "Timeout", "request_id": "r-1"}}
    assert transcript.messages[-1].status == "failed"


def test_a_turn_is_found_under_its_key_and_only_for_its_message():
    transcript = Transcript("one")
    once = Once("key", "print")
    assert transcript.answered(once) is None
    reservation = Reservation("one", "turn-1", once=once)
    stored = transcript.add(plain_turn(), Heading("one"), reservation, ended=ENDED, number=1)
    assert stored.created
    answered = transcript.answered(once)
    assert answered == Answered(plain_turn(), replace(stored, created=False))
    assert transcript.answered(None) is transcript.answered(Once("other", "print")) is None
    with pytest.raises(ConversationConflict, match="another message"):
        transcript.answered(Once("key", "other print"))


def test_a_failed_turn_is_raised_for_its_key():
    transcript = Transcript("one")
    failed = plain_turn(status="failed")
    reservation = Reservation("one", "turn-1", once=Once("key", "print"))
    transcript.add(failed, Heading("one"), reservation, ended=ENDED, number=1)
    with pytest.raises(TurnFailed) as caught:
        transcript.answered(reservation.once)
    assert caught.value.turn == failed


def test_what_was_noted_is_seen_in_no_window_and_dropped_with_the_turn():
    transcript = Transcript("one")
    assert transcript.is_hidden
    reservation = Reservation("one", "turn-1")
    entries = entries_of(tool_turn(), Heading("one"))
    for entry in entries:
        transcript.note(entry, reservation)
    assert (transcript.journal, transcript.journalled) == (entries, reservation)
    assert not transcript.is_hidden
    assert transcript.window(0) == transcript.page(2, None).items == ()
    add(transcript, tool_turn())
    assert (transcript.journal, transcript.journalled) == ([], None)


def test_what_comes_out_is_a_copy():
    transcript = Transcript("one")
    add(transcript, tool_turn())
    transcript.window(0)[1].tool_calls[0].arguments.clear()
    transcript.page(2, None).items[0].tool_calls()[0].arguments.clear()
    assert [kept.turn for kept in transcript.turns] == [tool_turn()]
    assert transcript.messages[1].tool_calls() == tool_turn().tool_calls()


def test_a_turn_that_cannot_be_stored_changes_nothing():
    transcript = Transcript("one")
    broken = Turn.model_construct(user=Message(), steps=(object(),))
    with pytest.raises(AttributeError):
        add(transcript, broken)
    assert transcript == Transcript("one")
