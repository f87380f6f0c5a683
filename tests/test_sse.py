"""An answer over HTTP: each event with its name and data, errors with their status."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import AsyncGenerator, Generator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import SynchronousOnlyOperation
from django.core.signals import got_request_exception
from django.http import HttpRequest
from django.test import AsyncRequestFactory, RequestFactory

from agent_memory import Agent, Approve, RemembersConversations, tool
from agent_memory.approvals import PendingApproval
from agent_memory.exceptions import (
    ApprovalsPending,
    ConversationBusy,
    ConversationDoesNotExist,
    ProviderUnavailable,
    TransactionOpen,
)
from agent_memory.messages import (
    Message,
    ProviderToolCall,
    Reasoning,
    RefusalPart,
    Replay,
    Step,
    TextPart,
    ToolCall,
    ToolResult,
    Turn,
)
from agent_memory.responses import (
    ApprovalRequested,
    Event,
    Finished,
    ReasoningDelta,
    Response,
    Started,
    StepFinished,
    TextDelta,
    ToolFinished,
    ToolStarted,
    Waiting,
)
from agent_memory.sse import HEARTBEAT, aevent_stream, event_stream
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.streams import AgentStream, AsyncAgentStream
from agent_memory.testing import ScriptedProvider
from tests.agents import Noting, a_turn_with_everything, area, calling, scripted
from tests.flows import in_loop
from tests.pages import Page
from tests.sse_parsing import names, parse
from tests.sse_visits import ASGIVisit, WSGIVisit, by_both_servers, read, site, visit

# Django's handlers look after old connections at each request.
pytestmark = [pytest.mark.urls("tests.sse_visits"), pytest.mark.django_db]


class Coach(RemembersConversations, Agent):
    pass


class Telling(Agent):
    """Streams the events that it is given, and asks nobody."""

    def __init__(self, *events: Event | BaseException) -> None:
        super().__init__()
        self.events = events

    def stream(self, *_: Any, **__: Any) -> AgentStream:
        def told() -> Generator[Event, None, Response]:
            for event in self.events:
                if isinstance(event, BaseException):
                    raise event
                yield event
            return Response(Turn(user=Message()))

        return AgentStream(told())

    def astream(self, *_: Any, **__: Any) -> AsyncAgentStream:
        async def told() -> AsyncGenerator[Event, None]:
            for event in self.events:
                if isinstance(event, BaseException):
                    raise event
                yield event

        return AsyncAgentStream(told())


# What is sent.


@by_both_servers
def test_a_stream_is_sent_as_server_sent_events(server: str) -> None:
    answer = visit(server, Noting(provider=a_turn_with_everything(), tools=[area]))
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["Cache-Control"] == "no-cache"
    assert answer.headers["X-Accel-Buffering"] == "no"
    assert [event.name for event in answer.events] == [
        "started",
        *["text_delta"] * 3,
        "step",
        *["tool_call", "tool_result"] * 2,
        *["text_delta"] * 3,
        "step",
        "finished",
    ]
    told = "".join(event.data["text"] for event in answer.events if event.name == "text_delta")
    assert told == "Let me see. It is six."


PENDING = PendingApproval(
    "call_1", "refund", {"order": 7}, "It is much.", datetime(2030, 1, 2, tzinfo=UTC)
)
CALL = ToolCall(id="call_1", name="refund", arguments={"order": 7})
STEP = Step(items=(TextPart(text="Done."), CALL), finish_reason="tool_calls")
RESPONSE = Response(Turn(user=Message("user", "Hello"), steps=(STEP,)), "c", "1", "2")
USAGE = {"input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "reasoning_tokens": 0}

SENT: list[tuple[Event, str, dict[str, Any]]] = [
    (Started("c"), "started", {"conversation_id": "c"}),
    (TextDelta("Do"), "text_delta", {"text": "Do"}),
    (ReasoningDelta("Hm."), "reasoning_delta", {"text": "Hm."}),
    (
        StepFinished(STEP),
        "step",
        {"text": "Done.", "finish_reason": "tool_calls", "usage": USAGE},
    ),
    (
        ToolStarted(CALL),
        "tool_call",
        {"id": "call_1", "name": "refund", "arguments": {"order": 7}},
    ),
    (
        ToolStarted(CALL.model_copy(update={"edited": {"order": 8}})),
        "tool_call",
        {"id": "call_1", "name": "refund", "arguments": {"order": 8}},
    ),
    (
        ToolFinished(CALL.model_copy(update={"result": ToolResult(value=[1], failed=True)})),
        "tool_result",
        {"id": "call_1", "name": "refund", "result": [1], "failed": True, "denied": False},
    ),
    (
        ApprovalRequested(PENDING),
        "approval_requested",
        {
            "id": "call_1",
            "name": "refund",
            "arguments": {"order": 7},
            "reason": "It is much.",
            "expires_at": "2030-01-02T00:00:00+00:00",
        },
    ),
    (
        Finished(RESPONSE),
        "finished",
        {
            "conversation_id": "c",
            "user_message_id": "1",
            "assistant_message_id": "2",
            "status": "completed",
            "text": "Done.",
            "usage": USAGE,
        },
    ),
]


@by_both_servers
def test_each_event_has_its_name_and_its_data(server: str) -> None:
    answer = visit(server, Telling(*(event for event, _, _ in SENT)))
    assert [(event.name, event.data) for event in answer.events] == [
        (name, data) for _, name, data in SENT
    ]


def test_the_page_lists_each_event_with_its_data() -> None:
    page = Page(Path(__file__).parent.parent / "docs" / "how-to" / "streaming.md")
    rows = [line.split(" | ") for _, line in page.prose if line.startswith("| `")]
    listed = {row[0].strip("| `"): row[1].replace("`", "").split(", ") for row in rows}
    there = {name: list(data) for _, name, data in SENT}
    there["refusal_delta"] = ["text"]
    there["error"] = ["code", "error", "status"]
    assert {name: listed.get(name) for name in there} == there


@pytest.mark.parametrize(
    "text",
    [
        "two\nlines\r\nand\rmore\n\n",
        "data: forged\n\nevent: finished\ndata: {}\n\n",
        "\u2028\u2029\x00\x1b\ufeff\x85",
        "half of \ud83d",
        "whole: \U0001f642",
        "",
    ],
)
def test_any_text_arrives_as_it_was(text: str) -> None:
    answer = visit("wsgi", Telling(TextDelta(text)))
    (event,) = answer.events
    assert event.data == {"text": text}
    assert answer.body.splitlines()[2:] == [b""]


def test_numbers_that_json_lacks_arrive_as_text() -> None:
    call = CALL.model_copy(update={"arguments": {"a": [float("nan"), float("-inf")], "b": 1e300}})
    (event,) = visit("wsgi", Telling(ToolStarted(call))).events
    assert event.data["arguments"] == {"a": ["NaN", "-Infinity"], "b": 1e300}


def test_what_is_opaque_or_a_providers_own_is_not_sent() -> None:
    own = {"key": "secret"}
    call = CALL.model_copy(update={"provider_metadata": own, "result": ToolResult(value=1)})
    step = Step(
        items=(
            TextPart(text="Hm.", provider_options=own, provider_metadata=own),
            RefusalPart(text="No."),
            Reasoning(text="secret"),
            ProviderToolCall(name="web_search", data=own),
            call,
        ),
        provider="secret",
        model="secret",
        replay=Replay(provider="secret", model="secret", blocks=(own,)),
    )
    response = Response(Turn(user=Message("user", "secret"), steps=(step,)))
    events = [ToolStarted(call), ToolFinished(call), StepFinished(step), Finished(response)]
    body = visit("wsgi", Telling(*events)).body
    assert names(body) == ["tool_call", "tool_result", "step", "finished"]
    assert b"secret" not in body


@by_both_servers
def test_events_of_excluded_classes_are_kept_from_the_client(server: str) -> None:
    result = ToolFinished(CALL.model_copy(update={"result": ToolResult(value="secret")}))
    agent = Telling(Started(None), ToolStarted(CALL), result, TextDelta("Hi"))
    answer = visit(server, agent, exclude=[ToolStarted, ToolFinished])
    assert [event.name for event in answer.events] == ["started", "text_delta"]
    assert b"refund" not in answer.body


class OfAProvider(Event):
    """An event that only some provider has."""


@by_both_servers
def test_waiting_and_unknown_events_keep_the_connection_alive_and_tell_nothing(server: str) -> None:
    answer = visit(server, Telling(TextDelta("a"), Waiting(), OfAProvider(), TextDelta("b")))
    assert [event.data for event in answer.events] == [{"text": "a"}, {"text": "b"}]
    assert answer.body.split(b"\n\n")[1:3] == [HEARTBEAT.strip()] * 2


def test_a_client_hears_heartbeats_while_an_async_stream_is_silent() -> None:
    gate = threading.Event()
    site.agent = Noting(provider=ScriptedProvider(["Hello there"], gate=gate))
    site.options = {"heartbeat": 0.001}

    async def main() -> bytes:
        async with ASGIVisit() as client:
            await client.begin()
            parts = [await client.part() for _ in range(4)]
            assert names(parts[0] or b"") == ["started"]
            assert parts[1:] == [HEARTBEAT] * 3
            gate.set()
            return await client.rest()

    assert names(in_loop(main())) == ["text_delta", "text_delta", "step", "finished"]


class Resuming:
    """Answers a view by going on with a paused turn."""

    def __init__(self, agent: Coach) -> None:
        self.agent = agent

    def stream(self, _: str) -> AgentStream:
        return self.agent.stream_resume({"*": Approve()})

    def astream(self, _: str) -> AsyncAgentStream:
        return self.agent.astream_resume({"*": Approve()})


@by_both_servers
def test_a_turn_that_waits_and_one_that_goes_on_are_streams_like_others(server: str) -> None:
    @tool(needs_approval="It is much.")
    def refund(order: int) -> str:
        return f"{order} paid back."

    provider = scripted(calling("refund", order=7), "Done.")
    coach: Any = Coach(provider=provider, store=InMemoryConversationStore(), tools=[refund])
    coach = coach.for_participant(None)
    *_, asked, paused = visit(server, coach).events
    assert (asked.name, asked.data["reason"]) == ("approval_requested", "It is much.")
    assert (paused.name, paused.data["status"]) == ("finished", "paused")
    gone_on: Any = Resuming(coach)
    answer = visit(server, gone_on)
    assert [event.name for event in answer.events] == [
        "started",
        "tool_call",
        "tool_result",
        "text_delta",
        "step",
        "finished",
    ]
    assert answer.events[2].data["result"] == "7 paid back."
    assert answer.events[-1].data["status"] == "completed"


# Where it cannot stream.


@pytest.fixture
def raised() -> Iterator[list[BaseException | None]]:
    """What views have raised, and Django answers with 500."""
    errors: list[BaseException | None] = []

    def note(**_: Any) -> None:
        errors.append(sys.exc_info()[1])

    got_request_exception.connect(note)
    yield errors
    got_request_exception.disconnect(note)


def test_a_sync_stream_is_refused_under_asgi_before_anything_runs(raised: list[Any]) -> None:
    provider = scripted("never")
    site.agent, site.options = Noting(provider=provider), {}
    assert in_loop(read("/chat/")).status == 500
    assert isinstance(raised[0], SynchronousOnlyOperation)
    assert "await aevent_stream(" in str(raised[0])
    assert provider.requests == []


def test_an_async_stream_is_refused_under_wsgi_before_anything_runs(raised: list[Any]) -> None:
    provider = scripted("never")
    site.agent, site.options = Noting(provider=provider), {}
    assert WSGIVisit("/achat/").read().status == 500
    assert isinstance(raised[0], RuntimeError)
    assert "return event_stream(" in str(raised[0])
    assert provider.requests == []


class Wrapped:
    """A request as REST frameworks hand it to their views."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request

    def __getattr__(self, name: str) -> Any:
        return getattr(self._request, name)


def test_a_wrapped_request_is_known_for_what_it_wraps() -> None:
    request: Any = Wrapped(AsyncRequestFactory().get("/"))
    with pytest.raises(SynchronousOnlyOperation):
        event_stream(request, Agent(provider=scripted()).stream("Hello"))
    request = Wrapped(RequestFactory().get("/"))
    assert event_stream(request, Noting(provider=scripted("Hi")).stream("Hello")).status_code == 200


def test_each_function_names_the_other_for_the_wrong_stream() -> None:
    agent: Any = Agent(provider=scripted())
    with pytest.raises(TypeError, match="aevent_stream"):
        event_stream(RequestFactory().get("/"), agent.astream("Hello"))

    async def main() -> None:
        with pytest.raises(TypeError, match=r"there is event_stream\(\)"):
            await aevent_stream(AsyncRequestFactory().get("/"), agent)

    in_loop(main())


@by_both_servers
@pytest.mark.parametrize(
    "options", [{"exclude": ["tool_result"]}, {"exclude": [ToolCall]}, {"exclude": [TextDelta("")]}]
)
def test_what_cannot_be_excluded_is_refused_before_the_turn_begins(
    server: str, raised: list[Any], options: dict[str, Any]
) -> None:
    agent = Noting(provider=scripted("never"))
    assert visit(server, agent, **options).status == 500
    assert isinstance(raised[0], TypeError)
    assert "classes of agent_memory.responses" in str(raised[0])
    assert not hasattr(agent, "outcome")


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_heartbeat_needs_some_time(raised: list[Any], seconds: float) -> None:
    assert visit("asgi", Noting(provider=scripted("never")), heartbeat=seconds).status == 500
    assert isinstance(raised[0], ValueError)
    assert "positive number of seconds" in str(raised[0])


# Errors.

BUSY = ConversationBusy("c", since=datetime(2030, 1, 2, tzinfo=UTC), retry_after=0.2)


@by_both_servers
@pytest.mark.parametrize(
    ("error", "status", "data", "retry_after"),
    [
        (ConversationDoesNotExist("c"), 404, {"code": "conversation_does_not_exist"}, None),
        (BUSY, 409, {"code": "conversation_busy", "retry_after": 1}, "1"),
        (
            ApprovalsPending("Waits.", [PENDING]),
            409,
            {"code": "approvals_pending", "pending": [SENT[7][2]]},
            None,
        ),
    ],
)
def test_an_error_before_the_first_event_is_an_answer_with_its_status(
    server: str, error: Exception, status: int, data: dict[str, Any], retry_after: str | None
) -> None:
    answer = visit(server, Telling(error))
    assert answer.status == status
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers.get("Retry-After") == retry_after
    told = dict(parse(b"data: " + answer.body + b"\n\n")[0].data)
    assert told.pop("error")
    assert told == {"status": status, **data}


@by_both_servers
def test_a_busy_conversation_is_told_before_the_model_is_asked(server: str) -> None:
    store, provider = InMemoryConversationStore(), scripted("First.")
    coach = Coach(provider=provider, store=store).for_participant(None)
    store.reserve(coach.prompt("Hello").conversation_id)
    assert visit(server, coach).status == 409
    assert len(provider.requests) == 1


@by_both_servers
@pytest.mark.parametrize("error", [TransactionOpen(), LookupError("a bug")])
def test_an_error_that_no_client_can_mend_is_left_to_django(
    server: str, raised: list[Any], error: Exception
) -> None:
    assert visit(server, Telling(error)).status == 500
    assert raised == [error]


@by_both_servers
@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (ProviderUnavailable("Down: secret."), "provider_unavailable", 503),
        (LookupError("secret"), "internal_error", 500),
    ],
)
def test_an_error_after_the_first_event_ends_the_stream_with_an_error_event(
    server: str,
    error: Exception,
    code: str,
    status: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    answer = visit(server, Noting(provider=scripted(error)))
    assert answer.status == 200
    assert [event.name for event in answer.events] == ["started", "error"]
    told = answer.events[1].data
    assert (told["code"], told["status"]) == (code, status)
    assert b"secret" not in answer.body
    (record,) = [each for each in caplog.records if each.name == "agent_memory"]
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None
    assert record.exc_info[1] is error
