"""``RemembersConversations``: the only code that knows both agents and stores."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from agent_memory import conf, titles
from agent_memory.agents import Agent, Noted, Outcome, Recalled
from agent_memory.calls import Call
from agent_memory.exceptions import (
    ConversationBusy,
    ConversationDoesNotExist,
    HistoryConflict,
    InvalidParticipant,
)
from agent_memory.flow import Do, Flow, pause
from agent_memory.history import check_keep_last_turns
from agent_memory.messages import Message, Turn
from agent_memory.participants import Participant
from agent_memory.records import (
    Answered,
    Reservation,
    StoredConversation,
    StoredTurn,
    check_conversation_id,
)
from agent_memory.remembering import Remembering
from agent_memory.responses import Response
from agent_memory.signals import conversation_created
from agent_memory.stores import ConversationStore, get_store
from agent_memory.tools import Tool

FLOW = ("turn", "recall", "repeat", "generate", "prepare", "hold", "journal", "remember")

SHORTEST_WAIT, LONGEST_WAIT = 0.05, 0.5
"""Seconds between two looks at a busy conversation that is waited for."""


@dataclass(frozen=True, slots=True)
class Binding:
    """Which conversation the next prompt goes to, and who speaks."""

    kind: Literal["unbound", "fresh", "one", "last", "none"] = "unbound"
    participant: Participant | None = None
    conversation_id: str | None = None
    must_own: bool | None = None


class RemembersConversations(Agent):
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

    store: ConversationStore | str | None = None
    conversation_id: str | None = None
    keep_last_turns: int | None = None
    generate_titles: bool | None = None

    attributes: ClassVar[tuple[str, ...]] = (
        *Agent.attributes,
        "store",
        "conversation_id",
        "keep_last_turns",
        "generate_titles",
    )

    _binding = Binding()

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

    # Binding.

    def for_participant(self, participant: Any) -> Self:
        """
        Start a conversation that belongs to a saved instance; ``None``: to nobody.

        Raises ``InvalidParticipant``.
        """
        return self._bind(Binding("fresh", self._participant(participant)))

    def for_user(self, user: Any) -> Self:
        """See for_participant()."""
        return self.for_participant(user)

    def continue_conversation(
        self, conversation_id: str, participant: Any = None, *, must_own: bool | None = None
    ) -> Self:
        """
        Go on with a conversation.

        Ownership is not checked, unless ``must_own`` or the setting
        ``VERIFY_OWNERSHIP`` says so: then a conversation of somebody else does
        not exist. Raises ``InvalidConversationId`` and ``InvalidParticipant``;
        the first prompt raises ``ConversationDoesNotExist``.
        """
        check_conversation_id(conversation_id)
        speaker = self._participant(participant)
        return self._bind(Binding("one", speaker, conversation_id, must_own))

    def continue_or_start(
        self, conversation_id: str | None, participant: Any, *, must_own: bool | None = None
    ) -> Self:
        """Go on with a conversation, or start one when the id is ``None``."""
        if conversation_id is None:
            return self.for_participant(participant)
        return self.continue_conversation(conversation_id, participant, must_own=must_own)

    def continue_last_conversation(self, participant: Any) -> Self:
        """
        Go on with the conversation in which this participant and agent last spoke.

        It is looked up at the first prompt; if there is none yet, one starts.
        """
        speaker = self._participant(participant)
        if speaker is None:
            raise InvalidParticipant(
                "Nobody's last conversation cannot be told: keep its id, and use "
                "continue_conversation()."
            )
        return self._bind(Binding("last", speaker))

    def without_memory(self) -> Self:
        """Return a copy that neither loads nor stores."""
        return self._bind(Binding("none"))

    def start_conversation(
        self,
        participant: Any,
        *,
        title: str | None = None,
        leading: Iterable[Message] = (),
        conversation_id: str | None = None,
    ) -> Self:
        """
        Open an empty conversation in the store, and return an agent bound to it.

        ``leading`` are system or developer messages that stay in every window.
        The id is then ``agent.current_conversation_id``. Raises
        ``ConversationConflict`` when the given id is taken.
        """
        stored = self._store().create(conversation_id, **self._opening(participant, title, leading))
        conversation_created.send_robust(type(self), **_created(stored))
        return self._bind(Binding("one", stored.participant, stored.id))

    async def astart_conversation(
        self,
        participant: Any,
        *,
        title: str | None = None,
        leading: Iterable[Message] = (),
        conversation_id: str | None = None,
    ) -> Self:
        """See start_conversation()."""
        stored = await self._store().acreate(
            conversation_id, **self._opening(participant, title, leading)
        )
        await conversation_created.asend_robust(type(self), **_created(stored))
        return self._bind(Binding("one", stored.participant, stored.id))

    @property
    def current_conversation_id(self) -> str | None:
        """The conversation that the next prompt goes to, as far as it is known."""
        if self._binding.kind == "unbound":
            return self.conversation_id
        return self._binding.conversation_id

    def with_messages(self, messages: Iterable[Message]) -> Self:
        """See Agent.with_messages(); allowed after without_memory()."""
        if self._binding.kind != "none":
            raise HistoryConflict(
                f"{type(self).__name__} remembers conversations: call without_memory() before "
                "with_messages()."
            )
        return super().with_messages(messages)

    # The path of a turn.

    def recall(self, call: Call) -> Flow[Recalled]:
        """Reserve the conversation and load its window."""
        binding, store = self._binding, self._store()
        if binding.kind == "none":
            return (yield from super().recall(call))
        conversation_id = call.conversation_id
        if binding.kind == "unbound" and conversation_id is None:
            conversation_id = self.conversation_id
            if conversation_id is None:
                return (yield from super().recall(call))
        reservation_seconds = conf.seconds("RESERVATION_SECONDS")
        turn_seconds = conf.seconds("TURN_SECONDS")
        if conversation_id is not None:
            reservation = yield from self._reserve(call, conversation_id, create=True)
        elif binding.kind == "one":
            reservation = yield from self._reserve(call, binding.conversation_id)
        elif binding.kind == "last":
            reservation = yield from self._reserve_last(call)
        else:
            reservation = yield from self._reserve_new(call)
        rebinds = conversation_id is None and binding.kind in ("fresh", "last")
        if reservation.answered is not None:
            return self._recall_answered(reservation.answered, rebinds=rebinds)
        try:
            messages = yield from self._load(store, reservation, call)
        except BaseException:
            yield Do(store.release, store.arelease, (reservation,))
            raise
        return Remembering(
            messages,
            reservation.conversation_id,
            patience=reservation_seconds / 4,
            agent=type(self),
            label=self.get_label(),
            store=store,
            reservation=reservation,
            speaker=binding.participant or reservation.participant,
            rebinds=rebinds,
            reservation_seconds=reservation_seconds,
            turn_seconds=turn_seconds,
        )

    def _recall_answered(self, answered: Answered, *, rebinds: bool) -> Recalled:
        stored = answered.stored
        if rebinds:
            self._binding = Binding("one", self._binding.participant, stored.conversation_id)
        return Recalled(response=_response(answered.turn, stored))

    def prepare(self, recalled: Recalled, call: Call) -> Flow[None]:
        """Begin to draft a title, when this turn is the first one."""
        if not isinstance(recalled, Remembering):
            return
        if recalled.is_first_turn and not recalled.reservation.title_source:
            generate = self.generate_titles
            if generate is None:
                generate = conf.setting("GENERATE_TITLES")
            model = conf.setting("TITLE_MODEL") or call.model
            recalled.draft = yield from titles.begin(
                call.provider, model, call.message.text, generate=generate
            )

    def hold(self, recalled: Recalled, *, tool: Tool | None = None) -> Flow[None]:
        """Renew the reservation, when a quarter of it has passed and before each tool."""
        if isinstance(recalled, Remembering):
            yield from recalled.hold(tool)

    def journal(self, recalled: Recalled, call: Call, noted: Noted) -> Flow[None]:
        """Journal what tools are about to do, and what they did."""
        if isinstance(recalled, Remembering):
            yield from recalled.journal(call.message, noted)

    def remember(self, recalled: Recalled, outcome: Outcome) -> Flow[Response]:
        """Append the turn with its title, and tell who listens."""
        if not isinstance(recalled, Remembering):
            return (yield from super().remember(recalled, outcome))
        if outcome.error is not None:
            yield from recalled.fail(outcome.turn, outcome.error)
            raise outcome.error
        turn, stored = yield from recalled.complete(outcome.turn)
        if recalled.rebinds:
            self._binding = Binding("one", recalled.speaker, stored.conversation_id)
        return _response(turn, stored)

    def _reserve(
        self, call: Call, conversation_id: str | None, *, create: bool = False
    ) -> Flow[Reservation]:
        store, must_own = self._store(), self._binding.must_own
        if must_own is None:
            must_own = conf.setting("VERIFY_OWNERSHIP")
        wanted = {
            "participant": self._binding.participant,
            "must_own": must_own,
            "create": create,
            "agent": self.get_label(),
            "once": call.once,
            "message": call.message,
        }
        until, seconds = time.monotonic() + call.wait, SHORTEST_WAIT
        while True:
            try:
                reservation: Reservation = yield Do(
                    store.reserve, store.areserve, (conversation_id,), wanted
                )
                return reservation
            except ConversationBusy:
                left = until - time.monotonic()
                if left <= 0:
                    raise
            yield from pause(min(seconds, left))
            seconds = min(2 * seconds, LONGEST_WAIT)

    def _reserve_new(self, call: Call) -> Flow[Reservation]:
        if call.once is None:
            return (yield from self._reserve(call, None))
        conversation_id = call.once.conversation_id(self._binding.participant, self.get_label())
        return (yield from self._reserve(call, conversation_id, create=True))

    def _reserve_last(self, call: Call) -> Flow[Reservation]:
        store = self._store()
        last = yield Do(
            store.latest_conversation_id,
            store.alatest_conversation_id,
            (self._binding.participant, self.get_label()),
        )
        if last is not None:
            try:
                return (yield from self._reserve(call, last))
            except ConversationDoesNotExist:
                pass  # cleared in between
        return (yield from self._reserve_new(call))

    def _load(
        self, store: ConversationStore, reservation: Reservation, call: Call
    ) -> Flow[tuple[Message, ...]]:
        if reservation.new:
            return ()
        keep = call.keep_last_turns
        if keep is None:
            keep = self.keep_last_turns
        if keep is None:
            keep = conf.setting("KEEP_LAST_TURNS")
        messages: tuple[Message, ...] = yield Do(
            store.load,
            store.aload,
            (reservation.conversation_id,),
            {"keep_last_turns": keep, "reservation": reservation},
        )
        return messages

    # Small things.

    def _store(self) -> ConversationStore:
        return get_store(self.store)

    def _participant(self, obj: Any) -> Participant | None:
        return self._store().participant_of(obj)

    def _opening(
        self, participant: Any, title: str | None, leading: Iterable[Message]
    ) -> dict[str, Any]:
        return {
            "participant": self._participant(participant),
            "agent": self.get_label(),
            "title": title or "",
            "leading": tuple(leading),
        }

    def _bind(self, binding: Binding) -> Self:
        if self._given_messages is not None and binding.kind != "none":
            raise HistoryConflict("This agent was given its history by with_messages().")
        return self._copy(_binding=binding)


def _response(turn: Turn, stored: StoredTurn) -> Response:
    return Response(
        turn, stored.conversation_id, stored.user_message_id, stored.assistant_message_id
    )


def _created(stored: StoredConversation) -> dict[str, Any]:
    return {"conversation_id": stored.id, "participant": stored.participant}
