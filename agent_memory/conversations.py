"""``RemembersConversations``: the only code that knows both agents and stores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from agent_memory import conf
from agent_memory.agents import Agent
from agent_memory.approvals import Approval, pending
from agent_memory.binding import Binding
from agent_memory.calls import Call, Resumption
from agent_memory.exceptions import HistoryConflict
from agent_memory.flow import Do, Flow
from agent_memory.history import check_keep_last_turns
from agent_memory.messages import Message
from agent_memory.recalled import Outcome, Recalled
from agent_memory.records import Answered, PausedTurn, Reservation, check_conversation_id
from agent_memory.remembering import Remembering, give_back, respond
from agent_memory.reserving import ReservesConversations
from agent_memory.responses import Response
from agent_memory.resuming import ResumesTurns, check_tools, decide_on

FLOW = ("turn", "recall", "repeat", "generate", "remember")


class RemembersConversations(ResumesTurns, ReservesConversations):
    """
    Mix it into an agent, and it remembers.

    Bind a conversation with one of the methods below; they do no I/O and return
    a bound copy, which moves onto the conversation that it opens. Without a
    binding and without a ``conversation_id`` nothing is loaded or stored.

    ``store`` is a ``ConversationStore`` or the dotted path of one;
    ``keep_last_turns`` how many turns the model is sent (0: all) and
    ``generate_titles`` whether it drafts titles. ``None`` means the setting.

    Beside what ``Agent.prompt`` names, a prompt raises
    ``ConversationDoesNotExist``, ``ConversationBusy``, ``ApprovalsPending`` and
    ``TransactionOpen`` before the model is called, ``ConversationConflict`` and
    ``TurnNotSaved`` after it.
    """

    generate_titles: bool | None = None

    attributes: ClassVar[tuple[str, ...]] = (
        *Agent.attributes,
        "store",
        "conversation_id",
        "keep_last_turns",
        "generate_titles",
    )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.messages is not Agent.messages or cls.amessages is not Agent.amessages:
            raise HistoryConflict(
                f"{cls.__name__} remembers conversations and defines messages(), which would "
                "never be called: pick one source of history."
            )
        for base in cls.__mro__:
            if issubclass(base, RemembersConversations):
                continue
            if cls.__mro__.index(base) > cls.__mro__.index(RemembersConversations):
                break
            for name in FLOW:
                if name in vars(base):
                    raise HistoryConflict(
                        f"{base.__name__}.{name}() stands before RemembersConversations in "
                        f"{cls.__name__}, so nothing would be remembered: list it after."
                    )

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        if self.conversation_id is not None:
            check_conversation_id(self.conversation_id)
        if self.keep_last_turns is not None:
            check_keep_last_turns(self.keep_last_turns)

    # The path of a turn.

    def recall(self, call: Call) -> Flow[Recalled]:
        """Reserve the conversation and load its window."""
        if call.resumption is not None:
            return (yield from self._recall_paused(call, call.resumption))
        binding = self._binding
        conversation_id = call.conversation_id
        if binding.kind == "unbound" and conversation_id is None:
            conversation_id = self.conversation_id
        if binding.kind == "none" or (binding.kind == "unbound" and conversation_id is None):
            return (yield from super().recall(call))
        self._check_tools(call)
        if conversation_id is not None:
            begun = yield from self._begin(call, conversation_id, create=True)
        elif binding.kind == "one":
            begun = yield from self._begin(call, binding.conversation_id)
        elif binding.kind == "last":
            begun = yield from self._begin_last(call)
        else:
            begun = yield from self._begin_new(call)
        rebinds = conversation_id is None and binding.kind in ("fresh", "last")
        if begun.reservation.answered is not None:
            return self._recall_answered(call, begun.reservation.answered, rebinds=rebinds)
        return self._remembering(call, begun.reservation, begun.messages, rebinds=rebinds)

    def remember(self, recalled: Recalled, outcome: Outcome) -> Flow[Response]:
        """Append the turn with its title, and tell who listens."""
        if not isinstance(recalled, Remembering):
            return (yield from super().remember(recalled, outcome))
        if outcome.error is not None:
            yield from recalled.fail(outcome.turn, outcome.error)
            raise outcome.error
        response = yield from recalled.complete(outcome)
        if recalled.rebinds:
            self._binding = Binding("one", recalled.speaker, response.conversation_id)
        return response

    def _remembering(
        self,
        call: Call,
        reservation: Reservation,
        messages: tuple[Message, ...],
        *,
        rebinds: bool = False,
    ) -> Remembering:
        paused = reservation.paused
        message = call.message if paused is None else paused.turn.user
        assert message is not None
        generate = self.generate_titles
        return Remembering(
            user=message,
            messages=messages,
            conversation_id=reservation.conversation_id,
            speaker=self._binding.participant or reservation.participant,
            agent=type(self),
            label=self.get_label(),
            store=self._store(),
            reservation=reservation,
            rebinds=rebinds,
            drafts_titles=conf.setting("GENERATE_TITLES") if generate is None else generate,
        )

    def _recall_answered(self, call: Call, answered: Answered, *, rebinds: bool) -> Recalled:
        stored = answered.stored
        if rebinds:
            self._binding = Binding("one", self._binding.participant, stored.conversation_id)
        assert call.message is not None
        return Recalled(
            user=call.message, response=respond(answered.turn, stored, answered.waiting)
        )

    def _recall_paused(self, call: Call, resumption: Resumption) -> Flow[Recalled]:
        """Reserve the paused turn and settle what is decided; go on when nothing waits."""
        store = self._store()
        self._check_tools(call)
        reservation = yield from self._reserve_paused(call)
        paused = reservation.paused
        assert paused is not None
        messages: tuple[Message, ...] = ()
        try:
            approvals = yield from self._decide(call, resumption, reservation)
            waiting = pending(approvals)
            if not waiting:
                messages = yield from self._load(call, reservation)
        except BaseException:
            yield from give_back(store, reservation)
            raise
        if waiting:
            yield from give_back(store, reservation)
            response = respond(paused.turn, paused.stored, waiting)
            return Recalled(user=paused.turn.user, response=response)
        reservation.paused = replace(paused, approvals=approvals)
        recalled = self._remembering(call, reservation, messages)
        recalled.model = resumption.model or _model_of(paused, call)
        return recalled

    def _decide(
        self, call: Call, resumption: Resumption, reservation: Reservation
    ) -> Flow[tuple[Approval, ...]]:
        """Return the approvals of the pause, with the decisions that come with a resumption."""
        store, paused = self._store(), reservation.paused
        assert paused is not None
        if resumption.decisions is None:
            check_tools(paused.approvals, call.tools)
            return paused.approvals
        by = self._participant(resumption.decided_by)
        approvals, made = decide_on(paused.approvals, resumption, call.tools, by)
        yield Do(
            store.decide,
            store.adecide,
            (reservation.conversation_id, made),
            {"decided_by": by, "note": resumption.note},
        )
        return approvals

    def discarding(self) -> Flow[None]:
        """See ResumesTurns.discarding()."""
        store = self._store()
        reservation = yield from self._reserve_paused(None)
        dropped = reservation.conversation_id, None
        try:
            yield Do(store.settle, store.asettle, dropped, {"reservation": reservation})
        except BaseException:
            yield from give_back(store, reservation)
            raise

    def _check_tools(self, call: Call) -> None:
        """
        Raise ``ValueError`` for a tool that may take longer than a turn.

        ``NotImplementedError`` names a store that cannot keep a turn which waits for a person.
        """
        conf.seconds("RESERVATION_SECONDS")
        longest = conf.seconds("TURN_SECONDS")
        for tool in call.tools.values():
            if tool.timeout is not None and tool.timeout > longest:
                raise ValueError(
                    f"The tool {tool.name!r} may take {tool.timeout:g} s, and a turn "
                    f'{longest:g}: raise AGENT_MEMORY["TURN_SECONDS"], or lower its timeout.'
                )
            if tool.needs_approval and not self._store().can_pause:
                raise NotImplementedError(
                    f"{type(self._store()).__name__} must define reserve(), decide(), settle() and "
                    f"pending_approvals_for(), since the tool {tool.name!r} waits for a person."
                )


def _model_of(paused: PausedTurn, call: Call) -> str | None:
    """Return the model that a paused turn was begun with, where the provider is the same."""
    replay = paused.turn.steps[-1].replay if paused.turn.steps else None
    return replay.model if replay and replay.provider == call.provider.name else None
