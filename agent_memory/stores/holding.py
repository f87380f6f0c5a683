"""One turn at a time: who may write the next one, which a store holds in this process by default."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agent_memory import conf
from agent_memory.exceptions import ConversationBusy
from agent_memory.journals import JournalEntry
from agent_memory.messages import Message
from agent_memory.records import Heading, Once, Reservation, new_id
from agent_memory.stores.participants import Knowing
from agent_memory.stores.twins import Twinned, twin


@dataclass(slots=True)
class Held:
    """Who writes the next turn, as this process knows it; ``until`` is by the store's clock."""

    token: str
    since: datetime
    until: float
    key: str | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """
    A reservation that is asked for, as ``reserve()`` was given it.

    ``heading`` has the id, the participant and the agent; ``new``: the id is ours.
    """

    heading: Heading
    new: bool
    must_own: bool
    create: bool
    once: Once | None
    message: Message | None
    resume: bool


class Holding(Knowing, Twinned):
    """The part of a store that lets one turn of a conversation run at a time."""

    _clock = staticmethod(time.monotonic)
    """Seconds by which reservations expire, if they are held by the base."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._held: dict[str, Held] = {}

    def reserve(
        self,
        conversation_id: str | None = None,
        *,
        participant: Any = None,
        must_own: bool = False,
        create: bool = False,
        agent: str = "",
        once: Once | None = None,
        message: Message | None = None,
        resume: bool = False,
    ) -> Reservation:
        """
        Take the right to write the next turn; ``None`` is a conversation yet to be.

        At once or not at all. Raises, in this order, ``ConversationDoesNotExist`` for
        an unknown id, unless ``create`` is set, and with ``must_own`` for one of
        another participant; what ``once`` has already; ``ApprovalsPending`` while a
        turn is paused; ``ConversationBusy`` while another turn holds it. And
        ``TransactionOpen`` inside a transaction of the caller's, where the store has
        such.

        With ``resume`` it is the right to go on with the paused turn, which is
        ``reservation.paused``; ``ApprovalNotResumable`` when none is. What
        nobody decided in time has expired then. A prompt on a turn of which all
        that was undecided has expired, and nothing is approved, ends it as denied.

        ``message`` is what the turn begins with: ``TooLarge`` when the store could
        not hold it. With ``once``, a turn that is stored under that key is returned as
        ``answered``, and ``TurnFailed`` is raised for a failed one.
        """
        new = conversation_id is None
        name = new_id() if conversation_id is None else conversation_id
        heading = Heading(name, self.participant_of(participant), agent)
        return self._reserve(Wanted(heading, new, must_own, create, once, message, resume))

    def _reserve(self, wanted: Wanted) -> Reservation:
        """See reserve()."""
        self._missing("reserve")

    def renew(self, reservation: Reservation, seconds: float) -> bool:
        """Hold a reservation for so many seconds from now; False: it was lost."""
        if reservation.new:
            return True
        with self._lock:
            held = self._held.get(reservation.conversation_id)
            if held is None or held.token != reservation.turn_id:
                return False
            held.until = self._clock() + seconds
            return True

    def journal(self, reservation: Reservation, entry: JournalEntry, seconds: float) -> bool:
        """
        Note what a running turn is about to do or has done, and renew; False: it was lost.

        Should the worker die, the next one finds the entries and records a
        failed turn. A store without a journal renews. In a turn that is resumed
        they are folded into it, and it stays paused, with nothing undecided; an
        approved call is claimed before it runs, and False is also the answer
        when it was claimed before.
        """
        return self.renew(reservation, seconds)

    def release(self, reservation: Reservation) -> None:
        """
        Give a reservation up without a turn; a stale one is ignored.

        A conversation that was only reserved is gone.
        """
        with self._lock:
            held = self._held.get(reservation.conversation_id)
            if held is not None and held.token == reservation.turn_id:
                del self._held[reservation.conversation_id]

    def _hold(self, reservation: Reservation) -> Reservation:
        """Note a reservation in this process; raises ``ConversationBusy``."""
        now = self._clock()
        key = reservation.once.key if reservation.once else None
        with self._lock:
            held = self._held.get(reservation.conversation_id)
            if held is not None and held.until > now:
                raise ConversationBusy(
                    reservation.conversation_id,
                    since=held.since,
                    retry_after=held.until - now,
                    same_message=key is not None and key == held.key,
                )
            self._held[reservation.conversation_id] = Held(
                reservation.turn_id,
                datetime.now(UTC),
                now + conf.setting("RESERVATION_SECONDS"),
                key,
            )
        return reservation

    areserve = twin(reserve)
    arenew = twin(renew)
    ajournal = twin(journal)
    arelease = twin(release)
