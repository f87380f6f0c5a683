"""What a turn holds while a model or a tool is at work, and what it does not hold."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import connection

from agent_memory import Agent, RemembersConversations, conversation_store, tool
from agent_memory.exceptions import ConversationBusy
from agent_memory.messages import ToolCall
from agent_memory.responses import TextDelta
from agent_memory.testing import ScriptedProvider, override_agent_memory, override_provider
from tests.fixtures import WAYS

SECONDS = 1.2
"""How long a worker that gives no sign of life holds a conversation here."""

CALL = ToolCall(id="call_1", name="work")

pytestmark = pytest.mark.django_db(transaction=True)


class Coach(RemembersConversations, Agent):
    pass


def refused(conversation_id: str) -> ConversationBusy:
    """Ask a conversation that is answering; return what the second prompt got."""
    asked = override_provider(ScriptedProvider())
    with asked as provider, pytest.raises(ConversationBusy) as caught:
        Coach().continue_conversation(conversation_id).prompt("Me too.")
    assert provider.requests == []
    return caught.value


@pytest.fixture
def short() -> Iterator[None]:
    with override_agent_memory(RESERVATION_SECONDS=SECONDS):
        yield


def test_a_slow_tool_holds_its_conversation_for_its_time_out(store, way, ask, short):
    found: list[ConversationBusy] = []

    @tool(timeout=60)
    def work() -> str:
        """Take longer than a reservation."""
        time.sleep(1.5 * SECONDS)
        found.append(refused("one"))
        return "done"

    store.create("one")
    script = ScriptedProvider([CALL, "Done."])
    agent = Coach(provider=script, tools=[work], generate_titles=False)
    assert ask(agent.continue_conversation("one"), "Work.").text == "Done."
    assert len(found) == 1


@pytest.mark.parametrize("way", ["stream", "stream in a task"])
def test_a_long_stream_holds_its_conversation_while_it_is_read(way, short):
    conversation_store.create("one")
    script = ScriptedProvider([" ".join(["word"] * 9)])
    agent = Coach(provider=script, generate_titles=False).continue_conversation("one")
    pause, seen = SECONDS / 6, 0  # in between the machine may be busy with others
    if way == "stream":
        for event in agent.stream("Count."):
            if isinstance(event, TextDelta):
                time.sleep(pause)
                seen += isinstance(refused("one"), ConversationBusy)
    else:

        async def read() -> int:
            count = 0
            async for event in agent.astream("Count."):
                if isinstance(event, TextDelta):
                    await asyncio.sleep(pause)
                    count += isinstance(await sync_to_async(refused)("one"), ConversationBusy)
            return count

        seen = async_to_sync(read)()
    assert seen * pause > SECONDS
    assert len(conversation_store.load("one")) == 2


def test_who_is_refused_is_told_since_when_and_how_soon_to_come_back(store, way, ask):
    found: list[ConversationBusy] = []

    @tool
    def work() -> str:
        """Look what another prompt gets."""
        found.append(refused("one"))
        return "done"

    store.create("one")
    before = datetime.now(UTC)
    agent = Coach(provider=ScriptedProvider([CALL, "Done."]), tools=[work], generate_titles=False)
    ask(agent.continue_conversation("one"), "Work.")
    (busy,) = found
    assert timedelta(seconds=-2) < busy.since - before < timedelta(seconds=30)
    assert 0 < busy.retry_after <= 60
    assert not busy.same_message


def test_other_conversations_do_not_wait_for_it(store, way, ask):
    other: list[str] = []

    @tool
    def work() -> str:
        """Ask another conversation."""
        agent = Coach(provider=ScriptedProvider(["At once."]), generate_titles=False)
        other.append(agent.continue_conversation("two").prompt("Hello").text)
        return "done"

    store.create("one")
    store.create("two")
    agent = Coach(provider=ScriptedProvider([CALL, "Done."]), tools=[work], generate_titles=False)
    ask(agent.continue_conversation("one"), "Work.")
    assert other == ["At once."]


@pytest.mark.parametrize("way", WAYS)
def test_no_transaction_is_open_while_a_model_answers(way, ask):
    class Looking(ScriptedProvider):
        def look(self) -> None:
            assert not connection.in_atomic_block
            self.looked = True

        def complete(self, request: Any) -> Any:
            self.look()
            return super().complete(request)

        async def acomplete(self, request: Any) -> Any:
            await sync_to_async(self.look)()
            return await super().acomplete(request)

        def stream(self, request: Any) -> Any:
            self.look()
            yield from super().stream(request)

        async def astream(self, request: Any) -> Any:
            await sync_to_async(self.look)()
            async for event in super().astream(request):
                yield event

    provider = Looking(["Done."])
    ask(Coach(provider=provider, generate_titles=False).for_participant(None), "Hello")
    assert provider.looked


@pytest.mark.parametrize("way", ["task", "stream in a task"])
def test_async_calls_hold_no_connection_while_a_model_answers(way, ask):
    held: list[Any] = []

    class Looking(ScriptedProvider):
        async def look(self) -> None:
            held.append(await sync_to_async(lambda: connection.connection)())

        async def acomplete(self, request: Any) -> Any:
            await self.look()
            return await super().acomplete(request)

        async def astream(self, request: Any) -> Any:
            await self.look()
            async for event in super().astream(request):
                yield event

    agent = Coach(provider=Looking(["One.", "Two."]), generate_titles=False)
    bound = agent.for_participant(None)
    ask(bound, "Hello")
    ask(bound, "Again")
    assert len(held) == 2
    if connection.vendor != "sqlite":  # a database in memory lives in its connection
        assert held == [None, None]


@pytest.mark.parametrize("hook", ["get_instructions", "get_tools", "get_label"])
def test_a_hook_that_raises_leaves_the_conversation_free(store, way, ask, hook):
    def broken(self: Any) -> Any:
        raise LookupError("not today")

    store.create("one")
    provider = ScriptedProvider(["Done."])
    attributes = {hook: broken, "provider": provider, "generate_titles": False}
    breaking = type("Breaking", (Coach,), attributes)
    with pytest.raises(LookupError):
        ask(breaking().continue_conversation("one"), "Hello")
    assert provider.requests == []
    sound = Coach(provider=provider, generate_titles=False).continue_conversation("one")
    assert ask(sound, "Hello").text == "Done."
