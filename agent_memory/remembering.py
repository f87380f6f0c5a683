"""A reserved conversation while its next turn is generated: held, and then written or given up."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from django.dispatch import Signal

from agent_memory import conf, signals, titles
from agent_memory.approvals import PendingApproval
from agent_memory.calls import Call
from agent_memory.exceptions import ConversationConflict, TurnNotSaved
from agent_memory.flow import Do, Flow, TurnAbandoned
from agent_memory.journals import JournalEntry, interrupted
from agent_memory.messages import Step, ToolCall, ToolResult, Turn, Usage
from agent_memory.recalled import Noted, Outcome, Recalled
from agent_memory.records import Heading, PausedTurn, Reservation, StoredTurn, TitleSource
from agent_memory.responses import Response
from agent_memory.stores import ConversationStore
from agent_memory.tools import Tool

logger = logging.getLogger("agent_memory")

NOT_RELEASED = "The reservation could not be released; it ends by itself."


@dataclass(slots=True, kw_only=True)
class Remembering(Recalled):
    """
    What ``RemembersConversations`` recalls: a window, and the right to add to it.

    ``agent`` and ``label`` are who answers; ``rebinds`` tells whether the bound
    agent moves onto the conversation. A reservation of a paused turn is the right
    to go on with that.
    """

    agent: type[Any]
    label: str
    store: ConversationStore
    reservation: Reservation
    rebinds: bool
    drafts_titles: bool
    draft: titles.Draft | None = None
    lost: bool = False
    begun: float = field(default_factory=time.monotonic)
    held_until: float = 0
    reservation_seconds: float = 0
    turn_seconds: float = 0
    claimed: set[tuple[int, int]] = field(default_factory=set)
    """The approved calls that were begun."""

    can_pause = True

    def __post_init__(self) -> None:
        self.reservation_seconds = conf.seconds("RESERVATION_SECONDS")
        self.turn_seconds = conf.seconds("TURN_SECONDS")
        self.patience = self.reservation_seconds / 4
        self.held_until = self.begun + self.reservation_seconds
        self.turn_id = self.reservation.turn_id
        if paused := self.reservation.paused:
            self.turn_id = paused.stored.turn_id
            self.steps = paused.turn.steps
            self.approvals = {(each.step, each.index): each for each in paused.approvals}

    def begin(self, call: Call) -> Flow[None]:
        """Begin to draft a title, when this turn is the first one."""
        reservation = self.reservation
        first = reservation.new or (reservation.next_position == 0 and not reservation.paused)
        if first and not reservation.title_source:
            model = conf.setting("TITLE_MODEL") or call.model
            drafts = self.drafts_titles and bool(self.user.text.strip())
            self.draft = yield from titles.begin(
                call.provider, model, titles.subject(self.user), generate=drafts
            )

    def hold(self, tool: Tool | None = None) -> Flow[None]:
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

    def journal(self, noted: Noted) -> Flow[None]:
        """
        Note in the store what tools are about to do or have done; this renews too.

        What cannot be noted is not begun. A result that cannot is in the turn
        all the same.
        """
        entry = JournalEntry(noted.step, noted.index, noted.value)
        if isinstance(noted.value, Step):
            title = titles.fallback(self.draft.prompt) if self.draft else ""
            entry = replace(entry, heading=self._heading(title, "prompt"), user=self.user)
        seconds = self._seconds(noted.following)
        self.held_until = time.monotonic() + seconds
        try:
            kept = yield Do(
                self.store.journal, self.store.ajournal, (self.reservation, entry, seconds)
            )
        except Exception:
            if not isinstance(noted.value, ToolResult):
                raise
            logger.exception("The result of a tool could not be journalled.")
        else:
            self.lost = not kept
            if isinstance(noted.value, ToolCall):
                if self.lost:
                    raise ConversationConflict(self.reservation.conversation_id)
                self.claimed.add((noted.step, noted.index))

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

    def complete(self, outcome: Outcome) -> Flow[Response]:
        """Write an answered or paused turn, with the title that was drafted beside it."""
        title, source, usage = yield from self._take_title()
        turn = outcome.turn.model_copy(update={"title_usage": usage})
        heading = replace(self._heading(title, source), approvals=outcome.waiting)
        stored = yield from self._save(heading, turn)
        return respond(turn, stored, outcome.waiting)

    def fail(self, turn: Turn, error: BaseException) -> Flow[None]:
        """
        Record a failed turn in which a step had finished; else give the conversation back.

        One that was paused stays so, with what was done. What goes wrong meanwhile
        is logged: the caller gets the first error.
        """
        if isinstance(error, ConversationConflict):
            error.turn = turn
        try:
            if self.reservation.paused is not None:
                yield from self._fail_paused(self.reservation.paused, turn)
            elif self.lost or not turn.steps or conf.setting("FAILED_TURNS") == "discard":
                yield from self._give_back()
            else:
                title = titles.fallback(self.draft.prompt) if self.draft else ""
                yield from self._save(self._heading(title, "prompt"), turn)
        except Exception:
            logger.exception("A failed turn could not be recorded.")

    def _fail_paused(self, paused: PausedTurn, turn: Turn) -> Flow[None]:
        done = interrupted(turn, self.claimed)
        if self.lost or done.steps == paused.turn.steps:
            yield from self._give_back()
        else:
            still = done.model_copy(update={"status": "paused", "error": None})
            yield from self._write(self._heading("", ""), still)

    def _save(self, heading: Heading, turn: Turn) -> Flow[StoredTurn]:
        try:
            stored = yield from self._write(heading, turn)
        except ConversationConflict as error:
            error.turn = turn
            raise
        except Exception as error:
            yield from self._leave()
            reservation = self.reservation
            unsaved = replace(heading, turn_id=reservation.turn_id, once=reservation.once)
            if reservation.paused is not None:
                unsaved = replace(unsaved, settles=self.turn_id)
            raise TurnNotSaved(unsaved, turn) from error
        yield from tell(self.agent, heading, turn, stored)
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
        write = Do(store.append, store.aappend, (heading, turn), {"reservation": reservation})
        if reservation.paused is not None:
            write = replace(write, work=store.settle, awork=store.asettle)
        if store.append_ends_reservation or reservation.paused is not None:
            stored: StoredTurn = yield from _insist(write)
            return stored
        if not (yield from _insist(Do(store.renew, store.arenew, (reservation, 60)))):
            raise ConversationConflict(heading.id)
        written: StoredTurn | None = yield from _insist(write)
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
            logger.exception(NOT_RELEASED)

    def _take_title(self) -> Flow[tuple[str, TitleSource, Usage]]:
        if self.draft is None:
            return "", "", Usage()
        try:
            return (yield from self.draft.take())
        except TurnAbandoned:
            return titles.fallback(self.draft.prompt), "prompt", Usage()


def respond(turn: Turn, stored: StoredTurn, waiting: tuple[PendingApproval, ...] = ()) -> Response:
    """Return what the caller of a turn that is stored gets."""
    return Response(
        turn,
        stored.conversation_id,
        stored.user_message_id,
        stored.assistant_message_id,
        waiting,
    )


def buried(agent: type[Any], reservation: Reservation) -> Flow[None]:
    """Tell who listens of the failed turn that reserving made of what a dead worker left."""
    if reservation.buried is not None:
        turn, stored = reservation.buried.turn, reservation.buried.stored
        for told in _news(agent, Heading(stored.conversation_id), turn, stored):
            yield from _before_leaving(told)


def give_back(store: ConversationStore, reservation: Reservation) -> Flow[None]:
    """Release what was reserved for a turn that cannot begin."""
    try:
        yield from _before_leaving(Do(store.release, store.arelease, (reservation,)))
    except Exception:
        logger.exception(NOT_RELEASED)


def tell(agent: type[Any], heading: Heading, turn: Turn, stored: StoredTurn) -> Flow[None]:
    """Send the signals of a turn that is stored."""
    for told in _news(agent, heading, turn, stored):
        yield from _insist(told)


def _news(agent: type[Any], heading: Heading, turn: Turn, stored: StoredTurn) -> Iterator[Do]:
    news: list[tuple[Signal, dict[str, Any]]] = []
    if stored.created:
        news.append((signals.conversation_created, {"participant": heading.participant}))
    if turn.status == "paused":
        news.append((signals.approval_requested, {"pending": heading.approvals}))
    else:
        signal = signals.turn_failed if turn.status == "failed" else signals.turn_completed
        news.append((signal, {"turn": turn, "stored": stored}))
    for signal, facts in news:
        if signal.has_listeners(agent):
            facts["conversation_id"] = heading.id
            yield Do(signal.send_robust, signal.asend_robust, (agent,), facts)


def _insist(effect: Do) -> Flow[Any]:
    """Perform store work even when the caller has just left: an answer is not thrown away."""
    try:
        return (yield effect)
    except TurnAbandoned:
        return (yield effect)


def _before_leaving(effect: Do) -> Flow[None]:
    """Perform store work even when the caller has just left, and leave then."""
    try:
        yield effect
    except TurnAbandoned:
        yield effect
        raise
