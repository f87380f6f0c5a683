"""The four ways to ask a provider, as one, and the answers of both APIs, plain and streamed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent_memory.messages import Message, Step
from agent_memory.providers import Provider, ProviderReply, ProviderRequest, ToolSpec
from agent_memory.responses import Event
from tests.providers.scripted import Answer, answer, events

WAYS = (
    "complete",
    pytest.param("acomplete", marks=pytest.mark.heavy),
    pytest.param("stream", marks=pytest.mark.heavy),
    "astream",
)
TWO_WAYS = ("complete", "astream")
"""One of each colour, plain and streamed, where the four differ in nothing else."""

WEATHER = ToolSpec(
    "get_weather",
    "Tell the weather.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


def prompt(*messages: Message | str, **fields: Any) -> ProviderRequest:
    """Make a request of messages; text is a user's."""
    told = [Message("user", item) if isinstance(item, str) else item for item in messages]
    return ProviderRequest(**{"model": "test-model", "messages": tuple(told), **fields})


def ask(
    provider: Provider, request: ProviderRequest, way: str
) -> tuple[list[Event], ProviderReply]:
    """Ask in one of the four ways; return the events and the reply that came last."""
    if way == "complete":
        return [], provider.complete(request)
    if way == "acomplete":
        return [], asyncio.run(provider.acomplete(request))
    if way == "stream":
        given = list(provider.stream(request))
    else:

        async def collect() -> list[Any]:
            return [item async for item in provider.astream(request)]

        given = asyncio.run(collect())
    *seen, reply = given
    assert isinstance(reply, ProviderReply)
    assert not any(isinstance(event, ProviderReply) for event in seen)
    return seen, reply


def step_of(provider: Provider, request: ProviderRequest, way: str) -> Step:
    return ask(provider, request, way)[1].step


def response(*output: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a Responses API answer."""
    return {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "model": "test-model-2026",
        "output": list(output),
        **fields,
    }


def said(*texts: str, **fields: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": content,
        **fields,
    }


def called(call_id: str | None, name: str, arguments: str, **fields: Any) -> dict[str, Any]:
    call = {"type": "function_call", "id": "fc_1", "name": name, "arguments": arguments}
    return {**call, "call_id": call_id, "status": "completed", **fields}


def responding(way: str, body: dict[str, Any], **headers: str) -> Answer:
    """Script a Responses API answer for one way of asking."""
    if way in ("complete", "acomplete"):
        return answer(body, **headers)
    started = {"type": "response.created", "response": {**body, "output": [], "status": "queued"}}
    done = [
        {"type": "response.output_item.done", "output_index": index, "item": item}
        for index, item in enumerate(body["output"])
    ]
    ended = {"type": f"response.{body['status']}", "response": body}
    return events(started, *done, ended, **headers)


def completion(
    message: dict[str, Any], finish_reason: str | None = "stop", **fields: Any
) -> dict[str, Any]:
    """Return a Chat Completions answer."""
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "test-model-2026",
        "choices": [choice],
        **fields,
    }


def chunk(delta: dict[str, Any], finish_reason: str | None = None, **fields: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {"object": "chat.completion.chunk", "model": "test-model-2026", "choices": [choice]} | (
        fields
    )


def completing(way: str, body: dict[str, Any], **headers: str) -> Answer:
    """Script a Chat Completions answer for one way of asking, a delta for each field of it."""
    if way in ("complete", "acomplete"):
        return answer(body, **headers)
    (choice,) = body["choices"]
    deltas = [chunk({"role": "assistant", "content": ""})]
    for key, value in choice["message"].items():
        if key == "tool_calls":
            deltas += [
                chunk({"tool_calls": [{**call, "index": index}]})
                for index, call in enumerate(value)
            ]
        elif key != "role":
            deltas.append(chunk({key: value}))
    deltas.append(chunk({}, choice["finish_reason"]))
    usage = {"object": "chat.completion.chunk", "choices": [], "usage": body.get("usage")}
    return events(*deltas, usage, done=True, **headers)


def tool_call(call_id: str | None, name: str, arguments: str, **fields: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function, **fields}
