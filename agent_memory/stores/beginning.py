"""How a turn begins at a store: the right to write it, and its window, in one hop if it can be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agent_memory.messages import Message
from agent_memory.records import Reservation
from agent_memory.stores.base import ConversationStore


@dataclass(frozen=True, slots=True)
class Beginning:
    """
    What a turn asks for: what ``reserve()`` is given, and the length of the window.

    ``keep_last_turns`` is None where no window is loaded yet.
    """

    conversation_id: str | None
    wanted: dict[str, Any]
    keep_last_turns: int | None

    def window(self, reservation: Reservation) -> dict[str, Any] | None:
        """Return what ``load()`` is given beside the id; None: there is nothing to load."""
        if self.keep_last_turns is None or reservation.new or reservation.answered is not None:
            return None
        return {"keep_last_turns": self.keep_last_turns, "reservation": reservation}


@dataclass(frozen=True, slots=True)
class Begun:
    """
    A reservation, and the messages that a model is sent.

    ``error`` is what loading them failed with; the reservation holds all the same.
    """

    reservation: Reservation
    messages: tuple[Message, ...] = ()
    error: BaseException | None = None


def begin(store: ConversationStore, asked: Beginning) -> Begun:
    """Reserve and load; raises what ``reserve()`` raises."""
    reservation = store.reserve(asked.conversation_id, **asked.wanted)
    window = asked.window(reservation)
    if window is None:
        return Begun(reservation)
    try:
        return Begun(reservation, store.load(reservation.conversation_id, **window))
    except BaseException as error:
        return Begun(reservation, error=error)


async def abegin(store: ConversationStore, asked: Beginning) -> Begun:
    """See begin(); one hop, unless the store has async methods of its own for it."""
    kind, base = type(store), ConversationStore
    if (kind.areserve, kind.aload) == (base.areserve, base.aload):
        return await store.hop(begin, store, asked)
    reservation = await store.areserve(asked.conversation_id, **asked.wanted)
    window = asked.window(reservation)
    if window is None:
        return Begun(reservation)
    try:
        return Begun(reservation, await store.aload(reservation.conversation_id, **window))
    except BaseException as error:
        return Begun(reservation, error=error)
