"""
A process that takes turns in conversations, each under a key of its own.

Its orders: ``name``, ``turns``, ``conversations`` (ids, taken in turn), ``way``
to ask, and ``ports`` of the database: the first is used, and the next one when
that fails. The way ``append`` asks nobody and appends to the store at once.
With ``roam`` each new connection goes to the next port, which asked
asynchronously is each step of a turn; after each it reads what it has written.

It tells each answer (``key``, ``text``, ``conversation``, ``ids``), each turn
that is recorded as ``failed``, each start of a ``tool``, each error that the
store passed over (``retried``), each that it did not (``fault``), and whether
what it ``looked`` for was there or ``stale``.
"""

from __future__ import annotations

import time
from itertools import cycle, islice
from typing import Any

from django.db import DatabaseError, InterfaceError, connection

from agent_memory import Agent, Message, RemembersConversations, conversation_store, tool
from agent_memory.exceptions import (
    ConversationBusy,
    ConversationConflict,
    TurnFailed,
    TurnNotSaved,
)
from agent_memory.messages import Step, TextPart, ToolCall, Turn
from agent_memory.participants import Participant
from agent_memory.records import Heading
from agent_memory.testing import ScriptedProvider, override_provider
from tests.agents import ask
from tests.cluster.telling import tell, tell_of_retries

WAIT = 60
PAUSE = 0.01
FAULTS = DatabaseError, InterfaceError, TurnNotSaved, ConversationConflict
TOOL_EVERY = 3
APPENDED = "appended"


@tool
def note(key: str) -> str:
    """Note a key."""
    tell(tool=key)
    return "noted"


class Writer(RemembersConversations, Agent):
    label = "writer"
    tools = (note,)


def reply(request: Any) -> Any:
    """Answer with the prompt before this one, after a tool where the prompt asks for it."""
    asked = [message.text for message in request.messages if message.role == "user"]
    if asked[-1].endswith("tool") and not request.steps:
        return ToolCall(id="call", name="note", arguments={"key": asked[-1]})
    return f"after {asked[-2]}" if asked[1:] else "first"


class Work:
    """The orders of a process, and how it carries them out."""

    def __init__(self, orders: dict[str, Any]) -> None:
        self.orders = orders
        self.owner = Participant("testapp.team", orders["name"])
        self.ports = cycle(orders["ports"])
        self.roams = orders.get("roam", False)

    def run(self) -> None:
        self.use_the_next_server()
        if self.roams:
            self.roam()
        turns = self.orders["turns"]
        with override_provider(ScriptedProvider([reply] * 4 * turns)):
            conversations = islice(cycle(self.orders["conversations"]), turns)
            for number, conversation_id in enumerate(conversations):
                key = f"{self.orders['name']}.{number}"
                if number % TOOL_EVERY == 0:
                    key += ".tool"
                self.take(conversation_id, key)
                if self.roams:
                    connection.close()
                    self.look(conversation_id, key)

    def take(self, conversation_id: str, key: str) -> None:
        """Take a turn to its end, whatever happens to the server, and tell it."""
        unsaved: TurnNotSaved | None = None
        until = time.monotonic() + WAIT
        while True:
            try:
                if unsaved is None:
                    stored, text = self.prompt(conversation_id, key)
                else:
                    stored = conversation_store.append(unsaved.conversation, unsaved.turn)
                    text = unsaved.turn.text
            except TurnFailed:
                return tell(failed=key, conversation=conversation_id)
            except (ConversationBusy, *FAULTS) as error:
                if time.monotonic() > until:
                    raise
                time.sleep(PAUSE)
                if isinstance(error, ConversationBusy):
                    continue  # an append does not wait
                tell(fault=type(error).__name__, key=key)
                if isinstance(error, ConversationConflict):
                    unsaved = None  # what became of the turn is told under its key
                elif isinstance(error, TurnNotSaved):
                    unsaved = error
                self.use_the_next_server()
            else:
                ids = stored.user_message_id, stored.assistant_message_id
                return tell(key=key, text=text, conversation=conversation_id, ids=ids)

    def prompt(self, conversation_id: str, key: str) -> tuple[Any, str]:
        """Take a turn; return what has its ids, and its text."""
        way = self.orders["way"]
        if way != "append":
            options = {"conversation_id": conversation_id, "idempotency_key": key, "wait": WAIT}
            response = ask(way, Writer().for_participant(self.owner), key, **options)
            return response, response.text
        step = Step(items=(TextPart(text=APPENDED),), finish_reason="stop")
        heading = Heading(conversation_id, self.owner, Writer.label)
        turn = Turn(user=Message("user", key), steps=(step,))
        return conversation_store.append(heading, turn), APPENDED

    def look(self, conversation_id: str, key: str) -> None:
        """Read what was just written, and tell whether it is there."""
        page = conversation_store.paginate_conversation_messages(conversation_id)
        latest = conversation_store.latest_conversation_id(self.owner, Writer.label)
        there = (
            latest == conversation_id
            and conversation_store.get(conversation_id) is not None
            and key in [message.content for message in page]
        )
        tell(**{"looked" if there else "stale": key})

    def use_the_next_server(self) -> None:
        port = next(self.ports)
        if connection.settings_dict["PORT"] != port:
            connection.close()
            connection.settings_dict["PORT"] = port

    def roam(self) -> None:
        """Connect to the next server each time."""
        connect = connection.connect

        def connect_to_the_next() -> None:
            connection.settings_dict["PORT"] = next(self.ports)
            connect()

        connection.connect = connect_to_the_next  # type: ignore[method-assign]


def main(orders: dict[str, Any]) -> None:
    tell_of_retries()
    Work(orders).run()
