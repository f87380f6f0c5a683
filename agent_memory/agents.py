"""
An agent answers. It knows a provider and nothing of memory.

``Agent.turn`` is the path of every prompt: *recall, generate, remember*. It is
written once, as a flow of effects, and run by one of four drivers.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, ClassVar, Self, Unpack

from asgiref.sync import sync_to_async
from django.core.exceptions import SynchronousOnlyOperation

from agent_memory import conf, flow
from agent_memory.calls import Call, PromptOptions, check_options, make_call
from agent_memory.exceptions import HistoryConflict, InvalidProvider, ProviderError
from agent_memory.flow import Do, Emit, Flow
from agent_memory.generation import Generation
from agent_memory.history import check_window, window
from agent_memory.messages import Message, TurnError
from agent_memory.providers import Provider, get_provider
from agent_memory.recalled import Outcome, Recalled
from agent_memory.responses import (
    ApprovalRequested,
    Finished,
    Response,
    Started,
    StepFinished,
    TextDelta,
)
from agent_memory.streams import AgentStream, AsyncAgentStream
from agent_memory.tools import Tool, tools_by_name


class Agent:
    """
    Answers prompts; subclass it and set its attributes.

    Each attribute may also be given to the constructor. ``tools`` are
    functions or ``Tool`` objects. ``max_steps`` is how many requests one turn
    may make; the calls of the last one are not run. ``label`` is the name under
    which conversations are filed, by default module and class.
    """

    instructions: str = ""
    provider: Provider | str | None = None
    model: str | None = None
    tools: Sequence[Tool | Callable[..., Any]] = ()
    max_steps: int = 20
    label: str = ""

    attributes: ClassVar[tuple[str, ...]] = (
        "instructions",
        "provider",
        "model",
        "tools",
        "max_steps",
        "label",
    )

    _given_messages: tuple[Message, ...] | None = None

    def __init__(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            if name not in self.attributes:
                raise TypeError(
                    f"{type(self).__name__} has no attribute {name!r} to set; it has "
                    f"{', '.join(self.attributes)}."
                )
            setattr(self, name, value)

    @classmethod
    def fake(cls, script: Iterable[Any] = ()) -> Any:
        """
        Answer from a script instead of the provider, inside ``with`` or as a decorator.

        For tests: see ``agent_memory.testing.fake()``.
        """
        return import_module("agent_memory.testing").fake(cls, script)

    # Hooks.

    def get_instructions(self) -> str:
        """Return the instructions of this prompt; may use the ORM, in async calls too."""
        return self.instructions

    def get_tools(self) -> Sequence[Tool | Callable[..., Any]]:
        """Return the tools of this prompt; may use the ORM, in async calls too."""
        return self.tools

    def get_label(self) -> str:
        """Return the name under which conversations with this agent are filed."""
        return self.label or f"{type(self).__module__}.{type(self).__qualname__}"

    def messages(self) -> Iterable[Message]:
        """Return a history of your own, oldest first; override it to keep history yourself."""
        return ()

    async def amessages(self) -> Iterable[Message]:
        """See messages(), which it calls on the thread of the ORM unless overridden."""
        if type(self).messages is Agent.messages:
            return ()
        return await sync_to_async(lambda: tuple(self.messages()))()

    def with_messages(self, messages: Iterable[Message]) -> Self:
        """
        Return a copy that is sent this history, which is never stored.

        It replaces one that was given before. Raises ``HistoryConflict`` on an
        agent that keeps a history itself.
        """
        if self._has_own_messages():
            raise HistoryConflict(
                f"{type(self).__name__} defines messages(): pick one source of history."
            )
        given = tuple(messages)
        for message in given:
            if not isinstance(message, Message):
                raise TypeError(f"A history is made of Message objects, not {message!r:.80}.")
        return self._copy(_given_messages=given)

    # The four ways to ask.

    def prompt(self, message: str | Message, **options: Unpack[PromptOptions]) -> Response:
        """
        Ask, and return the answer once it is complete and saved.

        ``message`` is text or a user ``Message``; ``PromptOptions`` tells the
        options. Raises ``ValueError`` for what cannot be asked,
        ``ProviderError`` when no answer came, and what
        ``RemembersConversations`` names.
        """
        refuse_running_loop("prompt", "aprompt")
        return flow.run(self.turn(self._call(message, options)))

    async def aprompt(self, message: str | Message, **options: Unpack[PromptOptions]) -> Response:
        """See prompt()."""
        return await flow.arun(self.turn(self._call(message, options)))

    def stream(self, message: str | Message, **options: Unpack[PromptOptions]) -> AgentStream:
        """
        Ask, and return an iterator of events that ends with ``Finished``.

        Nothing runs before it is iterated, or entered with ``with``.
        """
        refuse_running_loop("stream", "astream")
        return AgentStream(flow.stream(self.turn(self._call(message, options, streamed=True))))

    def astream(self, message: str | Message, **options: Unpack[PromptOptions]) -> AsyncAgentStream:
        """See stream()."""
        turn = self.turn(self._call(message, options, streamed=True))
        return AsyncAgentStream(flow.astream(turn, result=lambda _: None))

    # The path of a turn.

    def turn(self, call: Call) -> Flow[Response]:
        """Recall, generate, remember."""
        call = yield from self.equip(call)
        recalled = yield from self.recall(call)
        if recalled.response is not None:
            response = yield from self.repeat(recalled.response, call)
        else:
            outcome = yield from self.generate(recalled, call)
            response = yield from self.remember(recalled, outcome)
        for pending in response.pending_approvals:
            yield Emit(ApprovalRequested(pending))
        yield Emit(Finished(response))
        return response

    def equip(self, call: Call) -> Flow[Call]:
        """Return the prompt with its instructions and tools; the hooks may use the ORM."""
        equipped: Call = yield Do(self._equipped, self._aequipped, (call,))
        return equipped

    def recall(self, call: Call) -> Flow[Recalled]:
        """Return the history that this prompt is sent with."""
        if call.conversation_id is not None or call.once is not None:
            raise HistoryConflict(
                f"{type(self).__name__} keeps no conversation here: mix in "
                "RemembersConversations and bind it, or drop conversation_id and idempotency_key."
            )
        assert call.message is not None
        messages = self._given_messages
        if messages is None:
            messages = tuple((yield Do(self.messages, self.amessages)))
        return Recalled(user=call.message, messages=window(messages, call.keep_last_turns or 0))

    def generate(self, recalled: Recalled, call: Call) -> Flow[Outcome]:
        """Ask the provider, run tools, ask again; whatever happens, return the outcome."""
        answer = Generation(self, recalled, call, self.max_steps)
        try:
            yield Emit(Started(recalled.conversation_id))
            check_window(recalled.messages)
            yield from recalled.begin(call)
            status = yield from answer.run()
        except BaseException as error:
            return Outcome(answer.turn("failed", _describe(error)), error)
        return Outcome(answer.turn(status), waiting=answer.waiting)

    def repeat(self, response: Response, call: Call) -> Flow[Response]:
        """Tell an answer that was given before, as a stream would have told it."""
        yield Emit(Started(response.conversation_id))
        for step in response.turn.steps if call.resumption is None else ():
            if step.text:
                yield Emit(TextDelta(step.text))
            yield Emit(StepFinished(step))
        return response

    def remember(self, recalled: Recalled, outcome: Outcome) -> Flow[Response]:
        """Return the response, or raise what the turn failed with."""
        yield from ()
        if outcome.error is not None:
            raise outcome.error
        return Response(outcome.turn)

    # Small things.

    def _call(
        self, message: str | Message, options: PromptOptions, *, streamed: bool = False
    ) -> Call:
        check_options("A prompt", options, PromptOptions)
        provider, model = self._provider_and_model(options.get("model"))
        return make_call(message, options, provider, model, streamed=streamed)

    def _provider_and_model(self, wanted: str | None) -> tuple[Provider, str]:
        if self.max_steps < 1:
            raise ValueError(f"max_steps is at least 1, not {self.max_steps!r}.")
        model = wanted or self.model or conf.setting("MODEL")
        if not model:
            raise InvalidProvider(
                'No model is configured: set AGENT_MEMORY["MODEL"], the model of '
                f"{type(self).__name__}, or pass model=..."
            )
        return get_provider(self.provider, type(self)), model

    def _equipped(self, call: Call) -> Call:
        tools = tools_by_name(self.get_tools())
        return replace(call, instructions=str(self.get_instructions() or ""), tools=tools)

    async def _aequipped(self, call: Call) -> Call:
        hooks = type(self).get_instructions, type(self).get_tools
        if hooks == (Agent.get_instructions, Agent.get_tools):
            return self._equipped(call)
        return await sync_to_async(self._equipped)(call)

    def _copy(self, **changes: Any) -> Self:
        changed = copy.copy(self)
        for name, value in changes.items():
            setattr(changed, name, value)
        return changed

    def _has_own_messages(self) -> bool:
        return type(self).messages is not Agent.messages or (
            type(self).amessages is not Agent.amessages
        )


class AnonymousAgent(Agent):
    """An agent made on the spot: ``AnonymousAgent(instructions, messages, tools)``."""

    def __init__(
        self,
        instructions: str = "",
        messages: Iterable[Message] = (),
        tools: Sequence[Tool | Callable[..., Any]] = (),
        **attributes: Any,
    ) -> None:
        super().__init__(instructions=instructions, tools=tools, **attributes)
        if given := tuple(messages):
            vars(self).update(vars(self.with_messages(given)))


def _describe(error: BaseException) -> TurnError:
    if isinstance(error, ProviderError):
        return TurnError(
            code=type(error).__name__, status=error.status, request_id=error.request_id
        )
    return TurnError(code=type(error).__name__)


def refuse_running_loop(name: str, twin: str) -> None:
    """Raise ``SynchronousOnlyOperation`` where an event loop runs, and name the async twin."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise SynchronousOnlyOperation(
        f"{name}() would block the event loop that is running here: use {twin}() instead."
    )
