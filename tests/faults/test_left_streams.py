"""Streams that are closed or dropped in the middle of a turn with tools: what is stored."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from agent_memory.models import ConversationMessage
from agent_memory.responses import (
    Event,
    Finished,
    Started,
    StepFinished,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from tests.faults.acting import Acting, left_free, told

pytestmark = pytest.mark.heavy

EVENTS = [
    (Started, []),
    (TextDelta, []),
    (TextDelta, []),
    (StepFinished, told(0)),
    (ToolStarted, told(0)),
    (ToolFinished, told(1)),
    (ToolStarted, told(1)),
    (ToolFinished, told(2)),
    (TextDelta, told(2)),
    (TextDelta, told(2)),
    (StepFinished, told(2, answered=True)),
    (Finished, told(2, answered=True)),
]
"""The events of a turn with two tools, and what is stored when its stream ends there."""


def drop(stream: Any) -> None:
    del stream._events


@pytest.mark.parametrize("leave", [lambda stream: stream.close(), drop], ids=["close", "drop"])
def test_a_stream_that_is_left_at_any_event_is_recorded_as_far_as_it_came(
    acting: Acting, leave: Callable[[Any], None]
) -> None:
    for number, (kind, stored) in enumerate(EVENTS):
        acting.runs = 0
        stream = acting.coach(f"c-{number}").stream("b")
        events = [next(stream) for _ in range(number + 1)]
        assert type(events[-1]) is kind
        leave(stream)
        assert left_free(f"c-{number}") == stored, kind
        failed = ConversationMessage.objects.filter(
            conversation=f"c-{number}", status="failed", error_code="TurnAbandoned"
        )
        assert failed.exists() == (bool(stored) and kind is not Finished)


@pytest.mark.parametrize("how", ["aclose", "drop", "cancel"])
def test_an_async_stream_that_is_left_at_any_event_is_recorded_as_far_as_it_came(
    acting: Acting, how: str
) -> None:
    async def read(stream: Any, events: list[Event], upto: int) -> None:
        async with contextlib.nullcontext() if how == "drop" else stream:
            events += [await anext(stream) for _ in range(upto)]
            if how == "cancel":
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
                await asyncio.sleep(0)
        if how == "drop":
            drop(stream)
            while len(asyncio.all_tasks()) > 1:  # noqa: ASYNC110  the loop closes it in a task
                await asyncio.sleep(0.001)

    for number, (kind, stored) in enumerate(EVENTS):
        acting.runs = 0
        stream, events = acting.coach(f"c-{number}").astream("b"), []
        cancelled = pytest.raises(asyncio.CancelledError)
        with cancelled if how == "cancel" else contextlib.nullcontext():
            async_to_sync(read)(stream, events, number + 1)
        assert type(events[-1]) is kind
        assert left_free(f"c-{number}") == stored, kind
