"""A reserved conversation while its next turn is generated: held, and then written or given up."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field, replace
from typing import Any

from django.dispatch import Signal

from agent_memory import conf, signals, titles
from agent_memory.agents import Noted, Recalled
from agent_memory.exceptions import ConversationConflict, TurnNotSaved
from agent_memory.flow import Do, Flow, TurnAbandoned
from agent_memory.journals import JournalEntry
from agent_memory.messages import Message, Step, Turn, Usage
from agent_memory.participants import Participant
from agent_memory.records import (
    Heading,
    Reservation,
    StoredTurn,
    TitleSource,
)
from agent_memory.stores import ConversationStore
from agent_memory.tools import Tool

logger = logging.getLogger("agent_memory")


@dataclass(slots=True, kw_only=True)
class Remembering(Recalled):
    """
    What ``RemembersConversations`` recalls: a window, and the right to add to it.

    ``speaker`` is who asks, ``agent`` and ``label`` who answers; ``rebinds``
    tells whether the bound agent moves onto the conversation.
    """

    agent: type[Any]
    label: str
    store: ConversationStore
    reservation: Reservation
    speaker: Participant | None
    rebinds: bool
    reservation_seconds: float
    turn_seconds: float
    draft: titles.Draft | None = None
    lost: bool = False
    begun: float = field(default_factory=time.monotonic)
    held_until: float = 0

    def __post_init__(self) -> None:
        self.held_until = self.begun + self.reservation_seconds

    @property
    def is_first_turn(self) -> bool:
        return self.reservation.new or self.reservation.next_position == 0

    def hold(self, tool: Tool | None) -> Flow[None]:
        """
        Renew the reservation, when it is time to or a tool is about to run.

        A lost one is noted. It is ``ConversationConflict`` before a tool, which
        then does not start, and when the turn is appended; an answer that is
        still coming is waited for, since the caller gets it with the error.
        """
        if not self.reservation.new:
            seconds = self._seconds(tool)
            passed = seconds - (self.held_until - time.monotonic())
            due = passed >= (min(1, seconds / 4) if tool else seconds / 4)
            if seconds and due and not self.lost:
                yield from self._renew(seconds)
        if tool is not None and self.lost:
            raise ConversationConflict(self.reservation.conversation_id)

    def journal(self, user: Message, noted: Noted) -> Flow[None]:
        """
        Note in the store what tools are about to do or have done; this renews too.

        What cannot be noted is not begun. A result that cannot is in the turn
        all the same.
        """
        entry = JournalEntry(noted.step, noted.index, noted.value)
        if isinstance(noted.value, Step):
            title = titles.fallback(user.text) if self.draft else ""
            entry = replace(entry, heading=self._heading(title, "prompt"), user=user)
        seconds = self._seconds(noted.following)
        self.held_until = time.monotonic() + seconds
        try:
            kept = yield Do(
                self.store.journal, self.store.ajournal, (self.reservation, entry, seconds)
            )
        except Exception:
            if noted.index == -1:
                raise
            logger.exception("The result of a tool could not be journalled.")
        else:
            self.lost = not kept

    def _seconds(self, tool: Tool | None) -> float:
        """Return for how long to hold the conversation: never longer after the longest turn."""
        left = self.begun + self.turn_seconds - time.monotonic()
        if left <= 0:
            return max(0, self.held_until - time.monotonic())
        return max(self.reservation_seconds, min((tool and tool.timeout) or 0, left))

    def _renew(self, seconds: float) -> Flow[None]:
        self.held_until = time.monotonic() + seconds
        try:
            kept = yield Do(self.store.renew, self.store.arenew, (self.reservation, seconds))
        except Exception:
            logger.exception("The reservation could not be renewed; it may still hold.")
        else:
            self.lost = not kept

    def complete(self, turn: Turn) -> Flow[tuple[Turn, StoredTurn]]:
        """Append an answered turn with the title that was drafted beside it."""
        title, source, usage = yield from self._take_title()
        turn = turn.model_copy(update={"title_usage": usage})
        return turn, (yield from self._append(turn, title, source))

    def fail(self, turn: Turn, error: BaseException) -> Flow[None]:
        """
        Record a failed turn in which a step had finished; else give the conversation back.

        What goes wrong meanwhile is logged: the caller gets the first error.
        """
        if isinstance(error, ConversationConflict):
            error.turn = turn
        try:
            if self.lost or not turn.steps or conf.setting("FAILED_TURNS") == "discard":
                yield from self._give_back()
            else:
                title = titles.fallback(turn.user.text) if self.draft else ""
                yield from self._append(turn, title, "prompt")
        except Exception:
            logger.exception("A failed turn could not be recorded.")

    def _append(self, turn: Turn, title: str, source: TitleSource) -> Flow[StoredTurn]:
        heading = self._heading(title, source)
        try:
            stored = yield from self._write(heading, turn)
        except ConversationConflict as error:
            error.turn = turn
            raise
        except Exception as error:
            yield from self._leave()
            reservation = self.reservation
            unsaved = replace(heading, turn_id=reservation.turn_id, once=reservation.once)
            raise TurnNotSaved(unsaved, turn) from error
        if stored.created:
            yield from self._tell(
                signals.conversation_created,
                conversation_id=heading.id,
                participant=heading.participant,
            )
        yield from self._tell(
            signals.turn_failed if turn.status == "failed" else signals.turn_completed,
            conversation_id=heading.id,
            turn=turn,
            stored=stored,
        )
        return stored

    def _heading(self, title: str, source: TitleSource) -> Heading:
        return Heading(
            self.reservation.conversation_id,
            self.speaker,
            self.label,
            title,
            source if title else "",
        )

    def _write(self, heading: Heading, turn: Turn) -> Flow[StoredTurn]:
        store, reservation = self.store, self.reservation
        append = Do(store.append, store.aappend, (heading, turn), {"reservation": reservation})
        if store.append_ends_reservation:
            stored: StoredTurn = yield from _insist(append)
            return stored
        if not (yield from _insist(Do(store.renew, store.arenew, (reservation, 60)))):
            raise ConversationConflict(heading.id)
        written: StoredTurn | None = yield from _insist(append)
        yield from _insist(Do(store.release, store.arelease, (reservation,)))
        return written or StoredTurn(heading.id, reservation.turn_id)

    def _give_back(self) -> Flow[None]:
        yield from self._end(Do(self.store.release, self.store.arelease, (self.reservation,)))

    def _leave(self) -> Flow[None]:
        """Give the conversation back, but not what the journal tells of tools that acted."""
        if self.reservation.journalled:
            yield from self._end(Do(self.store.renew, self.store.arenew, (self.reservation, 0)))
        else:
            yield from self._give_back()

    def _end(self, effect: Do) -> Flow[None]:
        try:
            yield from _insist(effect)
        except Exception:
            logger.exception("The reservation could not be released; it ends by itself.")

    def _take_title(self) -> Flow[tuple[str, TitleSource, Usage]]:
        if self.draft is None:
            return "", "", Usage()
        try:
            return (yield from self.draft.take())
        except TurnAbandoned:
            return titles.fallback(self.draft.prompt), "prompt", Usage()

    def _tell(self, signal: Signal, **news: Any) -> Flow[None]:
        if signal.has_listeners(self.agent):
            yield from _insist(Do(signal.send_robust, signal.asend_robust, (self.agent,), news))


def _insist(effect: Do) -> Flow[Any]:
    """Perform store work even when the caller has just left: an answer is not thrown away."""
    try:
        return (yield effect)
    except TurnAbandoned:
        return (yield effect)
