"""
The events of an answer as server-sent events.

A turn that cannot begin is answered with the status of its error. When it
breaks off later, the status has been sent: an ``error`` event of the same data
ends the stream.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterable
from typing import Any

from django.core.exceptions import SynchronousOnlyOperation
from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase

from agent_memory.http_errors import ERRORS, error_payload, error_response, json_text, pending_data
from agent_memory.messages import Step, ToolCall, ToolResult
from agent_memory.responses import (
    ApprovalRequested,
    Event,
    Finished,
    ReasoningDelta,
    RefusalDelta,
    Response,
    Started,
    StepFinished,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from agent_memory.streams import AgentStream, AsyncAgentStream

HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
    # Else GZipMiddleware would hold events back until it has enough to compress.
    "Content-Encoding": "identity",
}
HEARTBEAT = b":\n\n"


def event_stream(
    request: HttpRequest, stream: AgentStream, *, exclude: Iterable[type[Event]] = ()
) -> HttpResponseBase:
    """
    Return a response that streams the events of an answer; for sync views under WSGI.

    The turn begins here: an error of ``http_errors.ERRORS`` becomes the response,
    any other is raised. Events of the classes in ``exclude`` are kept from the
    client. Raises ``SynchronousOnlyOperation`` under ASGI, where Django would
    collect all events before it sends the first.
    """
    if not isinstance(stream, AgentStream):
        raise TypeError(
            f"event_stream() takes what stream() returns, not {type(stream).__name__}; for "
            "astream() there is aevent_stream()."
        )
    if _is_asgi(request):
        raise SynchronousOnlyOperation(
            "Under ASGI Django collects a sync stream before it sends anything: make the view "
            "async, and return await aevent_stream(request, agent.astream(...))."
        )
    excluded = _event_classes(exclude)
    try:
        stream.__enter__()
    except tuple(ERRORS) as error:
        return error_response(error)
    return EventStreamResponse(stream, excluded)


async def aevent_stream(
    request: HttpRequest,
    stream: AsyncAgentStream,
    *,
    exclude: Iterable[type[Event]] = (),
    heartbeat: float = 15,
) -> HttpResponseBase:
    """
    See event_stream(); for async views under ASGI.

    After ``heartbeat`` seconds without an event the client is sent a comment.
    Raises ``RuntimeError`` under WSGI, where the view's event loop ends before
    the response is read.
    """
    if not isinstance(stream, AsyncAgentStream):
        raise TypeError(
            f"aevent_stream() takes what astream() returns, not {type(stream).__name__}; for "
            "stream() there is event_stream()."
        )
    if not _is_asgi(request):
        raise RuntimeError(
            "Under WSGI an async view cannot stream: make it sync, and return "
            "event_stream(request, agent.stream(...)). In tests use AsyncClient or "
            "AsyncRequestFactory."
        )
    excluded = _event_classes(exclude)
    if not heartbeat > 0:
        raise ValueError(f"heartbeat is a positive number of seconds, not {heartbeat!r}.")
    try:
        await stream.__aenter__()
    except tuple(ERRORS) as error:
        return error_response(error)
    return AsyncEventStreamResponse(stream, excluded, heartbeat)


class EventStreamResponse(StreamingHttpResponse):
    """Streams the events of a turn that has begun; closing it ends the turn."""

    def __init__(self, stream: AgentStream, exclude: tuple[type[Event], ...]) -> None:
        self._stream = stream
        super().__init__(_messages(stream, exclude), headers=HEADERS)

    def close(self) -> None:
        # Closing a generator that nobody has read would not reach the stream behind it.
        try:
            self._stream.close()
        finally:
            super().close()


class AsyncEventStreamResponse(StreamingHttpResponse):
    """See EventStreamResponse; the turn ends when whoever reads it leaves."""

    def __init__(
        self, stream: AsyncAgentStream, exclude: tuple[type[Event], ...], heartbeat: float
    ) -> None:
        self._stream = stream
        self._messages = _amessages(stream, exclude, heartbeat)
        super().__init__(self._messages, headers=HEADERS)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        # Whatever middleware has wrapped around them, these are closed here and now.
        async with self._stream, contextlib.aclosing(self._messages):
            async for part in super().__aiter__():
                yield part


def _event_classes(given: Iterable[type[Event]]) -> tuple[type[Event], ...]:
    classes = tuple(given)
    for each in classes:
        if not (isinstance(each, type) and issubclass(each, Event)):
            raise TypeError(
                f"exclude takes classes of agent_memory.responses, such as ToolFinished, not "
                f"{each!r:.80}."
            )
    return classes


def _is_asgi(request: HttpRequest) -> bool:
    return hasattr(request, "scope")  # wrappers of requests pass it on


def _messages(
    stream: AgentStream, exclude: tuple[type[Event], ...]
) -> Generator[bytes, None, None]:
    try:
        for event in stream:
            yield _message(event, exclude)
    except Exception as error:  # the status is sent: whatever went wrong, only an event can tell
        yield _encoded("error", error_payload(error))


async def _amessages(
    stream: AsyncAgentStream, exclude: tuple[type[Event], ...], heartbeat: float
) -> AsyncGenerator[bytes, None]:
    coming: asyncio.Future[Event | None] | None = None
    try:
        while True:
            # A heartbeat leaves it pending: to cancel it would be to end the turn.
            coming = coming or asyncio.ensure_future(anext(stream, None))
            await asyncio.wait({coming}, timeout=heartbeat)
            if not coming.done():
                yield HEARTBEAT
                continue
            event, coming = coming.result(), None
            if event is None:
                return
            yield _message(event, exclude)
    except Exception as error:  # see _messages()
        yield _encoded("error", error_payload(error))
    finally:
        if coming is not None:
            await _end(coming)


async def _end(coming: asyncio.Future[Any]) -> None:
    """Cancel it and wait until it has ended, also when cancelled meanwhile."""
    coming.cancel()
    while not coming.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait({coming})


def _message(event: Event, exclude: tuple[type[Event], ...]) -> bytes:
    """Return an event as the client gets it; what it does not get becomes a heartbeat."""
    described = None if isinstance(event, exclude) else _described(event)
    return HEARTBEAT if described is None else _encoded(*described)


def _encoded(name: str, data: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json_text(data)}\n\n".encode("ascii")


def _described(event: Event) -> tuple[str, dict[str, Any]] | None:
    """Return the name and the data of an event, or ``None`` where there is nothing to tell."""
    match event:
        case Started(conversation_id):
            return "started", {"conversation_id": conversation_id}
        case TextDelta(text):
            return "text_delta", {"text": text}
        case RefusalDelta(text):
            return "refusal_delta", {"text": text}
        case ReasoningDelta(text):
            return "reasoning_delta", {"text": text}
        case StepFinished(step):
            return "step", _step(step)
        case ToolStarted(call):
            return "tool_call", _call(call)
        case ToolFinished(call):
            return "tool_result", _result(call)
        case ApprovalRequested(pending):
            return "approval_requested", pending_data(pending)
        case Finished(response):
            return "finished", _finished(response)
    return None


def _step(step: Step) -> dict[str, Any]:
    return {
        "text": step.text,
        "finish_reason": step.finish_reason,
        "usage": step.usage.model_dump(),
    }


def _call(call: ToolCall) -> dict[str, Any]:
    """Return a call as it runs: with the arguments that a person gave it, if one did."""
    arguments = call.arguments if call.edited is None else call.edited
    return {"id": call.id, "name": call.name, "arguments": arguments}


def _result(call: ToolCall) -> dict[str, Any]:
    result = call.result or ToolResult()
    return {
        "id": call.id,
        "name": call.name,
        "result": result.value,
        "failed": result.failed,
        "denied": result.denied,
    }


def _finished(response: Response) -> dict[str, Any]:
    return {
        "conversation_id": response.conversation_id,
        "user_message_id": response.user_message_id,
        "assistant_message_id": response.assistant_message_id,
        "status": response.status,
        "text": response.text,
        "usage": response.usage.model_dump(),
    }
