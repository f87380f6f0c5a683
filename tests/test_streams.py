"""A stream runs while it is read, tells where it is, and ends when its reader leaves."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from agent_memory import Agent, RemembersConversations
from agent_memory.exceptions import ProviderUnavailable
from agent_memory.flow import TurnAbandoned
from agent_memory.responses import Finished, Started, StepFinished, TextDelta
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.streams import AgentStream
from agent_memory.testing import ScriptedProvider
from tests.agents import Noting, area, calling, scripted
from tests.flows import in_loop

REPLY = "one two three"


class Coach(RemembersConversations, Agent):
    pass


def three_words() -> Noting:
    return Noting(provider=scripted(REPLY))


def test_nothing_runs_before_a_stream_is_iterated() -> None:
    provider = scripted("never")
    stream = Agent(provider=provider).stream("Hello")
    assert provider.requests == []
    stream.close()
    assert list(stream) == []
    assert provider.requests == []


def test_nothing_runs_before_an_async_stream_is_iterated() -> None:
    provider = scripted("never")

    async def main() -> None:
        stream = Agent(provider=provider).astream("Hello")
        await asyncio.sleep(0)
        assert provider.requests == []
        await stream.aclose()
        assert [event async for event in stream] == []

    in_loop(main())
    assert provider.requests == []


def test_hooks_are_not_called_before_a_stream_is_iterated() -> None:
    class Computing(Agent):
        def get_tools(self) -> list[object]:
            raise AssertionError

    Computing(provider=scripted("never")).stream("Hello").close()


def test_a_stream_is_an_iterator() -> None:
    assert isinstance(Agent(provider=scripted()).stream("Hello"), Iterator)
    assert isinstance(Agent(provider=scripted()).astream("Hello"), AsyncIterator)


def test_the_response_is_there_once_the_stream_has_ended() -> None:
    stream = three_words().stream("Hello")
    for event in stream:
        assert (stream.response is None) is not isinstance(event, Finished)
    assert stream.response is not None
    assert stream.response.text == REPLY
    assert next(stream, None) is None


def test_the_response_is_there_once_the_async_stream_has_ended() -> None:
    async def main() -> None:
        stream = three_words().astream("Hello")
        async for event in stream:
            assert (stream.response is None) is not isinstance(event, Finished)
        assert stream.response is not None
        assert stream.response.text == REPLY
        assert await anext(stream, None) is None

    in_loop(main())


def test_the_conversation_is_known_from_the_first_event_on() -> None:
    store = InMemoryConversationStore()
    coach = Coach(provider=scripted(REPLY), store=store).for_participant(None)
    stream = coach.stream("Hello")
    assert stream.conversation_id is None
    first = next(stream)
    assert first == Started(stream.conversation_id)
    *_, last = stream
    assert isinstance(last, Finished)
    assert stream.conversation_id == last.response.conversation_id is not None


def test_without_memory_there_is_no_conversation() -> None:
    with three_words().stream("Hello") as stream:
        assert stream.conversation_id is None
        assert next(stream) == Started(None)


# With-blocks.


def test_entering_a_stream_starts_it_and_loses_no_event() -> None:
    store = InMemoryConversationStore()
    coach = Coach(provider=scripted(REPLY), store=store).for_participant(None)
    with coach.stream("Hello") as stream:
        assert stream.conversation_id is not None
        assert list(stream) == list(events_of(REPLY, stream))


def events_of(reply: str, stream: AgentStream) -> Iterator[object]:
    """Return the events of a reply of one step."""
    response = stream.response
    assert response is not None
    yield Started(response.conversation_id)
    yield from (TextDelta(word) for word in ("one ", "two ", "three"))
    yield StepFinished(response.turn.steps[0])
    yield Finished(response)


def test_entering_an_async_stream_starts_it_and_loses_no_event() -> None:
    store = InMemoryConversationStore()
    coach = Coach(provider=scripted(REPLY), store=store).for_participant(None)

    async def main() -> None:
        async with coach.astream("Hello") as stream:
            assert stream.conversation_id is not None
            told = [event async for event in stream]
            assert told[0] == Started(stream.conversation_id)
            assert [type(event).__name__ for event in told] == [
                "Started",
                *["TextDelta"] * 3,
                "StepFinished",
                "Finished",
            ]

    in_loop(main())


def test_a_stream_that_was_begun_or_read_to_its_end_may_still_be_entered() -> None:
    stream = three_words().stream("Hello")
    assert next(stream) == Started(None)
    with stream:
        assert next(stream) == TextDelta("one ")
        list(stream)
    with stream:
        assert list(stream) == []


def test_an_async_stream_that_was_begun_or_read_to_its_end_may_still_be_entered() -> None:
    async def main() -> None:
        stream = three_words().astream("Hello")
        assert await anext(stream) == Started(None)
        async with stream:
            assert await anext(stream) == TextDelta("one ")
            assert [event async for event in stream]
        async with stream:
            assert [event async for event in stream] == []

    in_loop(main())


def test_leaving_the_block_ends_the_turn_and_the_stream() -> None:
    agent = three_words()
    with agent.stream("Hello") as stream:
        pass
    assert isinstance(agent.outcome.error, TurnAbandoned)
    assert list(stream) == []
    assert stream.response is None


def test_leaving_the_async_block_ends_the_turn_and_the_stream() -> None:
    agent = three_words()

    async def main() -> None:
        async with agent.astream("Hello") as stream:
            pass
        assert isinstance(agent.outcome.error, TurnAbandoned)
        assert [event async for event in stream] == []
        assert stream.response is None

    in_loop(main())


def test_an_error_in_the_block_ends_the_turn_and_is_the_callers_own() -> None:
    agent = three_words()
    with pytest.raises(ZeroDivisionError), agent.stream("Hello"):
        1 / 0  # noqa: B018  to raise
    assert isinstance(agent.outcome.error, TurnAbandoned)


def test_an_error_before_the_first_event_is_raised_on_entering() -> None:
    class Failing(Agent):
        def messages(self) -> list[object]:
            raise LookupError("no history")

    with pytest.raises(LookupError, match="no history"), Failing(provider=scripted()).stream("Hi"):
        raise AssertionError


# Early ends.


@pytest.mark.parametrize("read", range(1, 11))
def test_a_stream_left_after_any_event_is_a_failed_turn_with_its_finished_steps(read: int) -> None:
    provider = scripted(["Wait. ", calling("area", width=2, height=3)], "It is six.")
    agent = Noting(provider=provider, tools=[area])
    stream = agent.stream("How big?")
    told = [type(next(stream)).__name__ for _ in range(read)]
    stream.close()
    turn = agent.outcome.turn
    if told[-1] == "Finished":
        assert turn.status == "completed"
        return
    assert turn.status == "failed"
    assert turn.error is not None
    assert turn.error.code == "TurnAbandoned"
    assert len(turn.steps) == told.count("StepFinished")
    assert len(turn.tool_results()) == told.count("ToolFinished")


def test_a_dropped_stream_ends_its_turn() -> None:
    agent = three_words()
    stream = agent.stream("Hello")
    next(stream)
    del stream
    gc.collect()
    assert isinstance(agent.outcome.error, TurnAbandoned)


def test_an_async_stream_left_by_a_time_out_ends_its_turn() -> None:
    agent = Noting(provider=ScriptedProvider([REPLY], gate=threading.Event()))

    async def main() -> None:
        async with asyncio.timeout(None) as limit, agent.astream("Hello") as stream:
            limit.reschedule(asyncio.get_running_loop().time())
            async for _ in stream:
                pass

    with pytest.raises(TimeoutError):
        in_loop(main())
    assert isinstance(agent.outcome.error, TurnAbandoned)


def test_an_error_of_the_provider_is_raised_where_the_stream_is_read() -> None:
    stream = Agent(provider=scripted(ProviderUnavailable("Down."))).stream("Hello")
    assert next(stream) == Started(None)
    with pytest.raises(ProviderUnavailable):
        next(stream)
    assert list(stream) == []
    assert stream.response is None
