"""Beginning at the conversation that an agent is bound to, and waiting for whoever else is at it."""

from __future__ import annotations

import time

from agent_memory import conf
from agent_memory.approvals import EVERY_OTHER
from agent_memory.binding import BindsConversations
from agent_memory.calls import Call
from agent_memory.exceptions import (
    ApprovalMismatch,
    ApprovalNotResumable,
    ConversationBusy,
    ConversationDoesNotExist,
)
from agent_memory.flow import Do, Flow, pause
from agent_memory.messages import Message
from agent_memory.records import Reservation
from agent_memory.remembering import buried, give_back
from agent_memory.stores.beginning import Beginning, Begun, abegin, begin

SHORTEST_WAIT, LONGEST_WAIT = 0.05, 0.5
"""Seconds between two looks at a busy conversation that is waited for."""


class ReservesConversations(BindsConversations):
    """What an agent reserves and loads: by id, the last one, a new one, a paused one."""

    keep_last_turns: int | None = None

    def _begin(
        self,
        call: Call | None,
        conversation_id: str | None,
        *,
        create: bool = False,
        resume: bool = False,
    ) -> Flow[Begun]:
        store, must_own = self._store(), self._binding.must_own
        if must_own is None:
            must_own = conf.setting("VERIFY_OWNERSHIP")
        wanted = {
            "participant": self._binding.participant,
            "must_own": must_own,
            "create": create,
            "agent": self.get_label(),
            "once": call and call.once,
            "message": call and call.message,
        }
        if resume:
            wanted["resume"] = True
        kept = None if call is None or resume else self._kept_turns(call)
        asked = Beginning(conversation_id, wanted, kept)
        until, seconds = time.monotonic() + (call.wait if call else 0), SHORTEST_WAIT
        while True:
            try:
                begun: Begun = yield Do(begin, abegin, (store, asked))
            except ConversationBusy:
                left = until - time.monotonic()
                if left <= 0:
                    raise
            else:
                return (yield from self._begun(begun))
            yield from pause(min(seconds, left))
            seconds = min(2 * seconds, LONGEST_WAIT)

    def _begun(self, begun: Begun) -> Flow[Begun]:
        """Tell of what reserving buried, and raise what loading failed with."""
        try:
            yield from buried(type(self), begun.reservation)
            if begun.error is not None:
                raise begun.error
        except BaseException:
            yield from give_back(self._store(), begun.reservation)
            raise
        return begun

    def _begin_new(self, call: Call) -> Flow[Begun]:
        if call.once is None:
            return (yield from self._begin(call, None))
        conversation_id = call.once.conversation_id(self._binding.participant, self.get_label())
        return (yield from self._begin(call, conversation_id, create=True))

    def _begin_last(self, call: Call) -> Flow[Begun]:
        last = yield from self._last_conversation_id()
        if last is not None:
            try:
                return (yield from self._begin(call, last))
            except ConversationDoesNotExist:
                pass  # cleared in between
        return (yield from self._begin_new(call))

    def _reserve_paused(self, call: Call | None) -> Flow[Reservation]:
        conversation_id = self.current_conversation_id
        if conversation_id is None and self._binding.kind == "last":
            conversation_id = yield from self._last_conversation_id()
        if conversation_id is None:
            raise ApprovalNotResumable(
                f"This {type(self).__name__} is bound to no conversation that could wait: use "
                "continue_conversation() with the id of the one that does."
            )
        try:
            return (yield from self._begin(call, conversation_id, resume=True)).reservation
        except ApprovalNotResumable as error:
            resumption = call and call.resumption
            if resumption and set(resumption.decisions or ()) - {EVERY_OTHER}:
                raise ApprovalMismatch(str(error)) from None
            raise

    def _last_conversation_id(self) -> Flow[str | None]:
        store = self._store()
        last: str | None = yield Do(
            store.latest_conversation_id,
            store.alatest_conversation_id,
            (self._binding.participant, self.get_label()),
        )
        return last

    def _load(self, call: Call, reservation: Reservation) -> Flow[tuple[Message, ...]]:
        """Load the window of a turn that goes on."""
        store = self._store()
        messages: tuple[Message, ...] = yield Do(
            store.load,
            store.aload,
            (reservation.conversation_id,),
            {"keep_last_turns": self._kept_turns(call), "reservation": reservation},
        )
        return messages

    def _kept_turns(self, call: Call) -> int:
        """Return how many turns the model is sent; 0 is all."""
        kept = call.keep_last_turns if call.keep_last_turns is not None else self.keep_last_turns
        return conf.setting("KEEP_LAST_TURNS") if kept is None else kept
