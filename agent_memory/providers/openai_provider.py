"""What the providers on the official ``openai`` client share, whichever API they speak."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from typing import Any, ClassVar, NoReturn, Protocol
from uuid import uuid4

from agent_memory.exceptions import UnsupportedAttachment
from agent_memory.messages import Message, Part, Replay, Step, TextPart, ToolCall, step_messages
from agent_memory.providers.base import Provider, ProviderReply, ProviderRequest, ToolSpec
from agent_memory.providers.openai_client import OpenAIClients
from agent_memory.providers.openai_errors import Exchange
from agent_memory.responses import Event

MAX_DEPTH = 100
"""How deep arguments may nest; a stored turn adds some levels, and readers end near 250."""


class Assembly(Protocol):
    """The pieces of a streamed answer, put together to what the plain call gives."""

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

    ours: ClassVar[dict[str, Any]]
    """The arguments of every ``create()``, unless ``request`` overrides them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._clients = OpenAIClients(options, endpoint=self.endpoint, reserved=self.reserved)

    def shape(self, request: ProviderRequest, arguments: dict[str, Any]) -> None:
        """Add a request to the arguments of ``create()``; raises ``UnsupportedAttachment``."""
        raise NotImplementedError

    def tool(self, tool: ToolSpec) -> dict[str, Any]:
        """Return a tool as the API is told of it."""
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
        return ProviderReply(step, raw.request_id)

    async def acomplete(self, request: ProviderRequest) -> ProviderReply:
        """See complete()."""
        create = await self._clients.acreate()
        arguments = self._arguments(request, stream=False)
        with Exchange() as exchange:
            raw = exchange.answered(await self._aopen(create, arguments))
            step = self.read(raw.parse(to=object), request)
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
        return {name: escaped(value) for name, value in arguments.items() if value is not None}

    def default(self, name: str) -> Any:
        """Return what the option ``request`` gives for an argument, or ``None``."""
        return (self.options.get("request") or {}).get(name)

    def told(self, request: ProviderRequest) -> Iterator[Message | dict[str, Any]]:
        """
        Yield the history and the running turn in order.

        A finished step of the running turn is told by its own blocks, as they
        came, if this provider and model made them, else by neutral messages.
        """
        yield from request.messages
        for step in request.steps:
            messages = step_messages(step, interrupted=True)
            replay = step.replay
            if replay is None or (replay.provider, replay.model) != (self.name, request.model):
                yield from messages
            else:
                yield from replay.blocks
                yield from (message for message in messages if message.role == "tool")

    def replay(self, request: ProviderRequest, blocks: list[dict[str, Any]]) -> Replay:
        """Return blocks as those of this provider and of the model that was asked for."""
        return Replay(provider=self.name, model=request.model, blocks=tuple(blocks))

    def content(
        self, parts: tuple[Part, ...], form: Callable[[Part], dict[str, Any] | None]
    ) -> str | list[dict[str, Any]]:
        """
        Return parts as an API is sent them: one text as it is, others by their ``form``.

        Raises ``UnsupportedAttachment`` for a part that has no form.
        """
        if not parts:
            return ""
        if len(parts) == 1 and isinstance(parts[0], TextPart) and not parts[0].provider_options:
            return parts[0].text
        formed = []
        for part in parts:
            if (item := form(part)) is None:
                raise UnsupportedAttachment(
                    f"{type(self).__name__} has no form for a part of type {part.type!r}."
                )
            formed.append(item | getattr(part, "provider_options", {}))
        return formed


def spoken(message: Message) -> tuple[Part, ...]:
    """Return the parts of an assistant's message without empty texts, which some APIs refuse."""
    return tuple(part for part in message.content if not isinstance(part, TextPart) or part.text)


class CallReader:
    """Reads the tool calls of one step; a missing or repeated id is replaced by one of ours."""

    def __init__(self) -> None:
        self._ids: set[str] = set()

    def read(self, call_id: Any, name: str, arguments: Any) -> ToolCall:
        """Return a call; ``raw_arguments`` keeps what is no JSON object of sane depth."""
        if not isinstance(call_id, str) or not call_id or call_id in self._ids:
            call_id = f"call_{uuid4().hex}"
        self._ids.add(call_id)
        if isinstance(arguments, dict):
            return ToolCall(id=call_id, name=name, arguments=arguments)
        text = arguments or ""
        parsed = parse_arguments(text)
        if parsed is None:
            return ToolCall(id=call_id, name=name, raw_arguments=text)
        return ToolCall(id=call_id, name=name, arguments=parsed)


def parse_arguments(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a text is, an empty one for no text, else ``None``."""
    if not text.strip():
        return {}
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and _is_shallow(value, MAX_DEPTH) else None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


def _is_shallow(value: Any, depth: int) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        return True
    return depth > 0 and all(_is_shallow(item, depth - 1) for item in value)


def sent_arguments(call: ToolCall) -> str:
    """
    Return a call's arguments as JSON, which many servers parse.

    Those that are no JSON object are wrapped in one: sent as they are, they
    would make such a server refuse every later turn of the conversation.
    """
    arguments = call.arguments
    if call.raw_arguments is not None:
        arguments = {"raw_arguments": call.raw_arguments}
    return json.dumps(escaped(arguments), ensure_ascii=False)


def echoed_arguments(arguments: Any, call: ToolCall) -> str:
    """Return a call's arguments as they came, if that can be sent back."""
    if isinstance(arguments, str) and arguments and parse_arguments(arguments) is not None:
        return arguments
    return sent_arguments(call)


def escaped(value: Any) -> Any:
    """Return JSON data with lone surrogates, which UTF-8 has no form for, as backslash escapes."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {escaped(key): escaped(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [escaped(item) for item in value]
    return value
