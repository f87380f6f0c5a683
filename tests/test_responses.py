"""What a call gives back: a response, and the events of a stream."""

from __future__ import annotations

import dataclasses
import pickle

import pytest

from agent_memory import responses
from agent_memory.approvals import PendingApproval
from agent_memory.messages import Message, Step, TextPart, ToolCall, Turn, Usage
from agent_memory.responses import Event, Finished, Response, Started, TextDelta

TURN = Turn(
    user=Message("user", "How big?"),
    steps=(
        Step(items=(TextPart(text="Wait."),), usage=Usage(input_tokens=1, output_tokens=2)),
        Step(
            items=(TextPart(text="It is "), ToolCall(id="a", name="b"), TextPart(text="six.")),
            usage=Usage(input_tokens=3),
        ),
    ),
    title_usage=Usage(input_tokens=100),
)


def test_a_response_is_read_by_the_text_of_its_last_step() -> None:
    response = Response(TURN)
    assert response.text == str(response) == "It is six."


def test_a_response_has_the_usage_and_the_status_of_its_turn() -> None:
    response = Response(TURN)
    assert response.usage == Usage(input_tokens=4, output_tokens=2)
    assert response.status == "completed"
    assert Response(TURN.model_copy(update={"status": "paused"})).status == "paused"


def test_a_response_without_memory_has_no_ids() -> None:
    response = Response(TURN)
    assert response.conversation_id is None
    assert response.user_message_id is None
    assert response.assistant_message_id is None


def test_a_response_to_nothing_has_no_text() -> None:
    assert Response(Turn(user=Message("user", "Hello"))).text == ""


EVENTS = [
    Started("some-id"),
    TextDelta("a"),
    responses.RefusalDelta("a"),
    responses.ReasoningDelta("a"),
    responses.ToolStarted(ToolCall(id="a", name="b")),
    responses.ToolFinished(ToolCall(id="a", name="b")),
    responses.StepFinished(TURN.steps[0]),
    responses.ApprovalRequested(PendingApproval("a", "b")),
    responses.Waiting(),
    Finished(Response(TURN, "some-id", "1", "2")),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_events_are_frozen_values(event: Event) -> None:
    assert isinstance(event, Event)
    assert pickle.loads(pickle.dumps(event)) == event
    for field in dataclasses.fields(event):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(event, field.name, None)


def test_events_of_different_kinds_are_never_equal() -> None:
    assert len(set(map(str, EVENTS))) == len(EVENTS)
    assert TextDelta("a") != responses.RefusalDelta("a") != responses.ReasoningDelta("a")


def test_these_are_all_events() -> None:
    classes = {thing for thing in vars(responses).values() if isinstance(thing, type)}
    events = {thing for thing in classes if issubclass(thing, Event) and thing is not Event}
    assert {type(event) for event in EVENTS} == events
