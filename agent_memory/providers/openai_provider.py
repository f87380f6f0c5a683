"""What the providers on the official ``openai`` client share, whichever API they speak."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from typing import Any, ClassVar, Protocol

from agent_memory.exceptions import UnsupportedAttachment
from agent_memory.messages import (
    DocumentPart,
    ImagePart,
    Message,
    Part,
    ProviderToolCall,
    Reasoning,
    Replay,
    Role,
    Step,
    TextPart,
    answers,
)
from agent_memory.providers.base import Provider, ProviderReply, ProviderRequest, ToolSpec
from agent_memory.providers.openai_calls import escaped
from agent_memory.providers.openai_client import OpenAIClients
from agent_memory.providers.openai_errors import Exchange
from agent_memory.providers.openai_files import Takes, given_by, in_words
from agent_memory.providers.pairing import Pairing
from agent_memory.responses import Event

logger = logging.getLogger("agent_memory")

MAX_TOKENS = 2**31 - 1
"""The largest count of tokens that a row holds."""


class Assembly(Protocol):
    """
    The pieces of a streamed answer, put together to what the plain call gives.

    The client's own helpers want indexes that compatible servers leave out.
    """

    def take(self, piece: Any) -> Iterator[Event]:
        """Take one piece; yield what a reader may see of it."""

    def whole(self) -> Any:
        """Return the answer; raises ``ProviderUnavailable`` if it broke off."""


class OpenAIProvider(Provider):
    """
    Base of the providers on the official client: a subclass knows one API's shapes.

    ``options`` are the client's own arguments (``api_key``, ``base_url``,
    ``timeout``, ``max_retries``...); what is left out, the client reads from its
    usual environment variables. Two more: ``request``, a dict of arguments for
    every ``create()``, of which ``None`` leaves one out that is sent otherwise;
    and ``async_http_client``, a callable that makes the HTTP client of async
    calls, one for each event loop, where ``http_client`` is that of sync calls.
    """

    endpoint: ClassVar[str]
    """The dotted path from a client to the resource whose ``create()`` is called."""

    reserved: ClassVar[frozenset[str]]
    """The arguments of ``create()`` that ``request`` may not hold."""

    history: ClassVar[str]
    """The argument of ``create()`` that takes the messages."""

    ours: ClassVar[dict[str, Any]]
    """The arguments of every ``create()``, unless ``request`` overrides them."""

    takes: ClassVar[Takes]
    """By which of its fields the API is sent a user's file, by the type of the part."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._clients = OpenAIClients(options, endpoint=self.endpoint, reserved=self.reserved)

    def shape(self, request: ProviderRequest, arguments: dict[str, Any]) -> None:
        """Add a request to the arguments of ``create()``; raises ``UnsupportedAttachment``."""
        raise NotImplementedError

    def tool(self, tool: ToolSpec) -> dict[str, Any]:
        """Return a tool as the API is told of it."""
        raise NotImplementedError

    def form(self, part: Part, role: Role) -> dict[str, Any] | None:
        """
        Return a part of a message as the API is sent it, ``None`` if it has no form for it.

        Raises ``UnsupportedAttachment`` for a file that is given in another way
        than the API takes.
        """
        raise NotImplementedError

    def amend(self, arguments: dict[str, Any], error: Any) -> bool:
        """Change arguments that the model does not take; return whether to try again."""
        raise NotImplementedError

    def assembly(self) -> Assembly:
        """Return what puts a streamed answer together."""
        raise NotImplementedError

    def read(self, answer: Any, request: ProviderRequest) -> Step:
        """
        Return the step of a whole answer.

        Raises ``ProviderUnavailable`` and ``ProviderRefused``, and any error of a
        failed lookup for an answer in another shape.
        """
        raise NotImplementedError

    def complete(self, request: ProviderRequest) -> ProviderReply:
        """See Provider.complete(); raises ``InvalidProvider`` if no client can be built."""
        create = self._clients.create()
        arguments = self._arguments(request, stream=False)
        with Exchange() as exchange:
            raw = exchange.answered(self._open(create, arguments))
            step = self.read(raw.parse(to=object), request)
        exchange.settle()
        return ProviderReply(step, raw.request_id)

    async def acomplete(self, request: ProviderRequest) -> ProviderReply:
        """See complete()."""
        create = await self._clients.acreate()
        arguments = self._arguments(request, stream=False)
        with Exchange() as exchange:
            raw = exchange.answered(await self._aopen(create, arguments))
            step = self.read(raw.parse(to=object), request)
        exchange.settle()
        return ProviderReply(step, raw.request_id)

    def stream(self, request: ProviderRequest) -> Generator[Event | ProviderReply, None, None]:
        """See Provider.stream(); closing the generator closes the connection."""
        from openai import Stream

        create = self._clients.create()
        arguments = self._arguments(request, stream=True)
        assembly = self.assembly()
        with Exchange() as exchange:
            raw = exchange.answered(self._open(create, arguments))
            try:
                for piece in raw.parse(to=Stream[object]):
                    yield from assembly.take(piece)
            finally:
                raw.http_response.close()
            step = self.read(assembly.whole(), request)
        exchange.settle()
        yield ProviderReply(step, raw.request_id)

    async def astream(
        self, request: ProviderRequest
    ) -> AsyncGenerator[Event | ProviderReply, None]:
        """See stream()."""
        create = await self._clients.acreate()  # which imports openai beside the loop
        from openai import AsyncStream

        arguments = self._arguments(request, stream=True)
        assembly = self.assembly()
        with Exchange() as exchange:
            raw = exchange.answered(await self._aopen(create, arguments))
            try:
                async for piece in raw.parse(to=AsyncStream[object]):
                    for event in assembly.take(piece):
                        yield event
            finally:
                await raw.http_response.aclose()
            step = self.read(assembly.whole(), request)
        exchange.settle()
        yield ProviderReply(step, raw.request_id)

    def _open(self, create: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        from openai import BadRequestError

        while True:
            try:
                return create(**arguments)
            except BadRequestError as error:
                if not self.amend(arguments, error):
                    raise

    async def _aopen(self, create: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        from openai import BadRequestError

        while True:
            try:
                return await create(**arguments)
            except BadRequestError as error:
                if not self.amend(arguments, error):
                    raise

    def _arguments(self, request: ProviderRequest, *, stream: bool) -> dict[str, Any]:
        arguments = self.ours | (self.options.get("request") or {})
        tools = [*(arguments.get("tools") or ()), *map(self.tool, request.tools)]
        arguments |= {"model": request.model, "stream": stream, "tools": tools or None}
        if not tools:  # both are refused without tools
            arguments |= {"tool_choice": None, "parallel_tool_calls": None}
        self.shape(request, arguments)
        given = {name: escaped(value) for name, value in arguments.items() if value is not None}
        return given | self._as_they_are(given)

    def _as_they_are(self, given: dict[str, Any]) -> dict[str, Any]:
        """
        Return the arguments that send messages and tools as the JSON data that they are.

        Given as arguments of their own, the client rebuilds them field by field,
        which takes it longer than all else that a request needs.
        """
        plain = {name: given.pop(name) for name in (self.history, "tools") if name in given}
        return {self.history: [], "extra_body": plain | (given.get("extra_body") or {})}

    def default(self, name: str) -> Any:
        """Return what the option ``request`` gives for an argument, or ``None``."""
        return (self.options.get("request") or {}).get(name)

    def told(self, request: ProviderRequest) -> Iterator[Message | dict[str, Any]]:
        """
        Yield the history and the running turn in order, each call with its result.

        A finished step of the running turn is told by its own blocks, as they
        came, if this provider and model made them, else by neutral messages. What
        those have no form for, and files of the history that the API does not take,
        are named in a warning; a file of the prompt is ``UnsupportedAttachment``.
        """
        own = [step for step in request.steps if self._has_blocks(step, request)]
        pairing = Pairing(taken=(call.id for step in own for call in step.tool_calls()))
        left_out: Counter[str] = Counter()
        history = [self._tellable(message, left_out) for message in request.messages[:-1]]
        yield from pairing.mended([*history, *request.messages[-1:]])
        for step in request.steps:
            messages = tuple(answers([step.items], interrupted=True))
            if step.replay is not None and self._has_blocks(step, request):
                yield from step.replay.blocks
                yield from (message for message in messages if message.role == "tool")
            else:
                left_out.update(_untellable(step))
                yield from pairing.mended(messages)
        if left_out:
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(left_out.items()))
            logger.warning("Not sent to %s of %s: %s.", request.model, self.name, kinds)

    def _tellable(self, message: Message, left_out: Counter[str]) -> Message:
        """Return a message with words in the place of the files that the API does not take."""
        content: list[Part] = []
        for part in message.content:
            if isinstance(part, ImagePart | DocumentPart):
                given = given_by(part)
                if given not in self.takes[part.type]:
                    left_out[f"{part.type} by {given}"] += 1
                    part = in_words(part)
            content.append(part)
        if tuple(content) == message.content:
            return message
        return message.model_copy(update={"content": tuple(content)})

    def _has_blocks(self, step: Step, request: ProviderRequest) -> bool:
        made_by = step.replay and (step.replay.provider, step.replay.model)
        return made_by == (self.name, request.model)

    def replay(self, request: ProviderRequest, blocks: list[dict[str, Any]]) -> Replay:
        """Return blocks as those of this provider and of the model that was asked for."""
        return Replay(provider=self.name, model=request.model, blocks=tuple(blocks))

    def content(self, parts: tuple[Part, ...], role: Role) -> str | list[dict[str, Any]]:
        """
        Return parts as an API is sent them: one text as it is, others by their ``form()``.

        Raises ``UnsupportedAttachment`` for a part that has no form.
        """
        if not parts:
            return ""
        if len(parts) == 1 and isinstance(parts[0], TextPart) and not parts[0].provider_options:
            return parts[0].text
        forms = []
        for part in parts:
            if (form := self.form(part, role)) is None:
                raise UnsupportedAttachment(
                    f"{type(self).__name__} has no form for a part of type {part.type!r} in a "
                    f"message of role {role!r}."
                )
            forms.append(form)
        return forms


def spoken(message: Message) -> tuple[Part, ...]:
    """Return the parts of an assistant's message without empty texts, which some APIs refuse."""
    return tuple(part for part in message.content if not isinstance(part, TextPart) or part.text)


def tokens(usage: Any, *path: str) -> int:
    """Return a count of tokens; what is no such count is 0, and no reason to lose an answer."""
    for name in path:
        usage = usage.get(name) if isinstance(usage, dict) else None
    return min(usage, MAX_TOKENS) if type(usage) is int and usage > 0 else 0


def _untellable(step: Step) -> Iterator[str]:
    for item in step.items:
        if isinstance(item, ProviderToolCall):
            yield item.name
        elif isinstance(item, Reasoning):
            yield item.type
