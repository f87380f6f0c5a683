"""What can be asked, and what is refused before a provider hears of it."""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory import Agent
from agent_memory.calls import user_message
from agent_memory.exceptions import (
    HistoryConflict,
    InvalidConversationId,
    InvalidProvider,
    TooLarge,
    UnsupportedAttachment,
)
from agent_memory.messages import (
    DocumentPart,
    ImagePart,
    Message,
    RefusalPart,
    TextPart,
    ToolCall,
)
from agent_memory.testing import ScriptedProvider, override_agent_memory
from tests.agents import area, ask, in_every_way

CALL = ToolCall(id="call-1", name="area")
IMAGE = ImagePart(data=b"\x89PNG", media_type="image/png")
FILE = DocumentPart(url="https://a.b/c")

NOT_ASKED: list[tuple[Any, type[Exception], str]] = [
    ("", ValueError, "empty"),
    (" \n\t ", ValueError, "empty"),
    (Message("user"), ValueError, "empty"),
    (Message("user", ""), ValueError, "empty"),
    (Message("user", [TextPart(text=" "), TextPart(text="\n")]), ValueError, "empty"),
    (Message("user", [RefusalPart(text="I will not.")]), ValueError, "empty"),
    *(
        (Message(role, "Hello"), ValueError, "user message")
        for role in ("system", "developer", "assistant", "tool")
    ),
    (Message("user", "Hello", tool_calls=(CALL,)), ValueError, "tool calls"),
    (Message("user", "Hello", tool_call_id="call-1"), ValueError, "tool calls"),
    (Message("user", "Hello", tool_call_id=""), ValueError, "tool calls"),
    (Message("user", [ImagePart(data=b"")]), UnsupportedAttachment, "is empty"),
    (None, TypeError, "not NoneType"),
    (b"Hello", TypeError, "not bytes"),
    ({"role": "user", "content": "Hello"}, TypeError, "not dict"),
    ([Message("user", "Hello")], TypeError, "not list"),
]


@pytest.mark.parametrize("text", ["Hello", " Hello ", "\0", "\ud800", "0", "x" * 100_000])
def test_text_is_asked_as_it_is(text: str) -> None:
    assert user_message(text) == Message("user", text)


def test_a_user_message_is_asked_as_it_is() -> None:
    message = Message("user", [TextPart(text="a", provider_options={"x": 1}), TextPart(text="")])
    assert user_message(message) is message
    assert user_message(message, []) is message


def test_attachments_follow_what_the_message_has() -> None:
    assert user_message("See", [IMAGE, FILE]) == Message(
        "user", [TextPart(text="See"), IMAGE, FILE]
    )
    assert user_message(Message("user", [IMAGE]), [FILE]) == Message("user", [IMAGE, FILE])
    assert user_message("", [IMAGE]) == Message("user", [IMAGE])


@in_every_way
@pytest.mark.parametrize(("message", "error", "match"), NOT_ASKED)
def test_what_cannot_be_asked_is_refused_before_the_provider_is_called(
    way: str, message: Any, error: type[Exception], match: str
) -> None:
    provider = ScriptedProvider(["never"])
    with pytest.raises(error, match=match):
        ask(way, Agent(provider=provider), message)
    assert provider.requests == []


@in_every_way
@pytest.mark.parametrize(
    ("attributes", "options", "error"),
    [
        ({}, {"keep_last_turns": -1}, ValueError),
        ({}, {"keep_last_turns": True}, ValueError),
        ({}, {"keep_last_turns": 1.0}, ValueError),
        ({}, {"keep_last_turns": "3"}, ValueError),
        ({}, {"conversation_id": "some-id"}, HistoryConflict),
        ({}, {"conversation_id": ""}, InvalidConversationId),
        ({}, {"conversation_id": "a\0"}, InvalidConversationId),
        ({}, {"idempotency_key": ""}, ValueError),
        ({}, {"idempotency_key": "key"}, HistoryConflict),
        ({}, {"wait": -1}, ValueError),
        ({}, {"wait": float("nan")}, ValueError),
        ({}, {"wait": float("inf")}, ValueError),
        ({}, {"wait": True}, ValueError),
        ({}, {"wait": "1"}, ValueError),
        ({}, {"temperature": 1}, TypeError),
        ({}, {"attachments": "chart.png"}, TypeError),
        ({}, {"attachments": [ImagePart(data=b"a")]}, UnsupportedAttachment),
        ({"max_steps": 0}, {}, ValueError),
        ({"max_steps": -1}, {}, ValueError),
        ({"tools": [area, area]}, {}, ValueError),
        ({"tools": ["area"]}, {}, TypeError),
        ({"tools": [lambda x: x]}, {}, ValueError),
        ({"provider": object()}, {}, InvalidProvider),
        ({"provider": "no.such.Provider"}, {}, InvalidProvider),
    ],
)
def test_what_an_agent_cannot_be_or_do_is_refused_before_the_provider_is_called(
    way: str, attributes: dict[str, Any], options: dict[str, Any], error: type[Exception]
) -> None:
    provider = ScriptedProvider(["never"])
    agent = Agent(**{"provider": provider, **attributes})
    with pytest.raises(error):
        ask(way, agent, **options)
    assert provider.requests == []


@in_every_way
def test_a_prompt_over_the_limit_is_refused_before_the_provider_is_called(way: str) -> None:
    provider = ScriptedProvider(["ok"])
    with override_agent_memory(LIMITS={"message": 1000}):
        ask(way, Agent(provider=provider), "x" * 900)
        with pytest.raises(TooLarge, match="allows 1000"):
            ask(way, Agent(provider=provider), "x" * 1001)
    assert len(provider.requests) == 1
