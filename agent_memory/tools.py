"""Tools that a model may call: functions, or objects with a ``call()`` and state of their own."""

from __future__ import annotations

import functools
import inspect
import logging
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Self, TypedDict, Unpack, overload

from asgiref.sync import async_to_sync, sync_to_async
from django.utils.functional import Promise
from django.utils.text import camel_case_to_spaces

from agent_memory.connections import closed_afterwards
from agent_memory.exceptions import ToolError
from agent_memory.gates import NeedsApproval, Rule, check_expiry
from agent_memory.messages import ToolCall, ToolResult
from agent_memory.participants import Participant
from agent_memory.providers.base import ToolSpec
from agent_memory.results import Unreturnable, as_result
from agent_memory.signatures import InvalidArguments, Signature

logger = logging.getLogger("agent_memory")

NAME = re.compile("[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class ToolContext:
    """
    What a tool may know of the call, if a parameter's hint is ``ToolContext``.

    ``agent`` is the agent that runs. ``participant`` is who speaks, ``None``
    without one; ``conversation_id`` is where the turn is stored, ``None`` without
    memory. ``call_id`` is the provider's name of the call, which some reuse.
    ``idempotency_key`` is that of this call alone, the same after a crash and when
    its turn is resumed.
    """

    agent: Any = None
    participant: Participant | None = None
    conversation_id: str | None = None
    call_id: str = ""
    idempotency_key: str = ""

    def get_participant(self) -> Any:
        """
        Return the saved instance that speaks, ``None`` for nobody.

        Raises ``ParticipantDoesNotExist``.
        """
        return None if self.participant is None else self.participant.get_object()

    async def aget_participant(self) -> Any:
        """See get_participant()."""
        return None if self.participant is None else await self.participant.aget_object()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        raise TypeError(
            "A model cannot give a ToolContext: take it as a parameter of its own, "
            "context: ToolContext."
        )


class ToolOptions(TypedDict, total=False):
    """
    What a tool is beside its function; a subclass of ``Tool`` has them as attributes.

    - ``name`` (``""``): 1 to 64 ASCII letters, digits, underscores and hyphens;
      empty: the function's, or the class's in snake case.
    - ``description`` (``""``): what the model is told of it; empty: the docstring.
    - ``needs_approval`` (``False``): ``True``, a reason, or a function that answers
      with one of these or ``False`` for the arguments that it names.
    - ``approval_expires`` (``None``): a ``timedelta`` after which a missing answer is
      a denial.
    - ``timeout`` (``None``): how many seconds a call may take before another turn may
      take the conversation over; ``None``: the setting ``RESERVATION_SECONDS``.
    - ``concurrent`` (``False``): whether calls of one step may run beside each other.
    """

    name: str
    description: str | Promise
    needs_approval: NeedsApproval
    approval_expires: timedelta | None
    timeout: float | None
    concurrent: bool


class Tool:
    """
    A function as a model sees it, or the base of a class whose ``call()`` is one.

    ``Tool(function, **options)`` is what ``@tool`` makes. A subclass writes
    ``call()``, whose type hints are its parameters, sets options as attributes,
    and has a constructor of its own. Raises ``TypeError`` for a function that a
    model cannot call, and ``ValueError`` for options that do not fit.
    """

    name: str = ""
    description: str | Promise = ""
    needs_approval: NeedsApproval = False
    approval_expires: timedelta | None = None
    timeout: float | None = None
    concurrent: bool = False

    _signature: Signature

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "call" in vars(cls):
            name = _check_name(cls.name or _snake_case(cls))
            bound = vars(cls)["call"].__get__(object(), cls)
            cls._signature = Signature(bound, name, ToolContext)

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        made = super().__new__(cls)
        if cls is not Tool and not cls.name:
            made.name = _snake_case(cls)
        return made

    def __init__(
        self, function: Callable[..., Any] | None = None, **options: Unpack[ToolOptions]
    ) -> None:
        for option, value in options.items():
            if option not in ToolOptions.__annotations__:
                raise TypeError(
                    f"A tool takes no {option!r}; it takes "
                    f"{', '.join(ToolOptions.__annotations__)}."
                )
            setattr(self, option, value)
        if function is not None:
            _check_function(function)
            self.function = function
            self.name = _check_name(options.get("name") or _name_of(function))
            self._signature = Signature(function, self.name, ToolContext)
        self.check()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Do what the tool is for; write it in a subclass, as a method or an async one."""
        return self.function(*args, **kwargs)

    def check(self) -> None:
        """Raise ``TypeError`` or ``ValueError`` for a tool that no agent can use."""
        if not hasattr(self, "_signature"):
            raise TypeError(
                f"{type(self).__name__} is no tool yet: give Tool() a function, or write call() "
                "in a subclass."
            )
        _check_name(self.name)
        self._rule()
        check_expiry(self.approval_expires, self.needs_approval)
        _check_timeout(self.timeout)

    @property
    def is_async(self) -> bool:
        """Whether its function is async."""
        return self._signature.is_async

    @property
    def spec(self) -> ToolSpec:
        """The tool as a model is told of it."""
        description = str(self.description) or self._signature.description or _doc_of(type(self))
        return ToolSpec(self.name, description, self._signature.schema)

    def check_arguments(self, arguments: dict[str, Any]) -> None:
        """Raise ``ValueError``, which tells what does not fit."""
        self._signature.validate(arguments)

    # Running.

    def run(self, call: ToolCall, context: ToolContext | None = None) -> ToolResult:
        """Run a call on this thread; what goes wrong becomes a failed result."""
        if self.is_async:
            return async_to_sync(self.arun)(call, context)
        try:
            return as_result(self.call(**self._filled(call, context)))
        except Exception as error:  # whatever a tool raises, the turn goes on
            return self._failure(error)

    async def arun(self, call: ToolCall, context: ToolContext | None = None) -> ToolResult:
        """See run(). What is not async runs on the thread of the caller's ORM, or on its own."""
        if not self.is_async:
            if self.concurrent:
                return await sync_to_async(self.run_beside, thread_sensitive=False)(call, context)
            return await sync_to_async(self.run)(call, context)
        try:
            return as_result(await self.call(**self._filled(call, context)))
        except Exception as error:  # see run()
            return self._failure(error)

    def run_beside(self, call: ToolCall, context: ToolContext | None = None) -> ToolResult:
        """See run(). Runs on a thread of its own, whose database connections are closed then."""
        with closed_afterwards():
            return self.run(call, context)

    def _filled(self, call: ToolCall, context: ToolContext | None) -> dict[str, Any]:
        return self._signature.filled(self._validated(call), context)

    def _validated(self, call: ToolCall) -> dict[str, Any]:
        if call.edited is not None:
            return self._signature.validate(call.edited)
        if call.raw_arguments is not None:
            raise InvalidArguments("The arguments are not a JSON object.")
        return self._signature.validate(call.arguments)

    def _failure(self, error: Exception) -> ToolResult:
        if isinstance(error, InvalidArguments | ToolError):
            return as_result(ToolResult(value=str(error), failed=True))
        logger.error("The tool %s failed.", self.name, exc_info=error)
        if isinstance(error, Unreturnable):
            return ToolResult(value=str(error), failed=True)
        return ToolResult(value=f"The tool failed: {type(error).__name__}.", failed=True)

    # Waiting for a person.

    def gate(self, call: ToolCall, context: ToolContext | None = None) -> str | None:
        """
        Return why a person must allow a call; ``""`` is a reason without words.

        ``None``: it is free to run, as is one whose arguments do not fit, to
        fail. A rule that fails makes the call wait.
        """
        if self.needs_approval is False:
            return None
        return self._rule().ask(functools.partial(self._validated, call), context)

    async def agate(self, call: ToolCall, context: ToolContext | None = None) -> str | None:
        """See gate(). A rule that is not async runs on the thread of the caller's ORM."""
        if not callable(self.needs_approval):
            return self.gate(call, context)
        return await self._rule().aask(functools.partial(self._validated, call), context)

    def _rule(self) -> Rule:
        return Rule.of(self.needs_approval, self._signature, ToolContext)


def missing_tool(name: str) -> ToolResult:
    """Return the result of a call to a tool that the agent does not have."""
    return ToolResult(value=f"There is no tool named {name}.", failed=True)


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None, /, **options: Unpack[ToolOptions]
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """
    Make a tool of a function or an async function.

    Used as ``@tool`` or ``@tool(name=..., timeout=seconds)``; ``ToolOptions``
    tells the options. Raises ``TypeError`` for a function that a model cannot
    call, and ``ValueError`` for options that do not fit.
    """
    if function is None:
        return lambda decorated: Tool(decorated, **options)
    return Tool(function, **options)


def tools_by_name(tools: Iterable[Tool | Callable[..., Any]]) -> dict[str, Tool]:
    """Return tools by name, plain functions made tools; raises ``ValueError`` for a name twice."""
    found: dict[str, Tool] = {}
    for given in tools:
        made = given if isinstance(given, Tool) else Tool(given)
        made.check()
        if made.name in found:
            raise ValueError(f"Two tools are named {made.name!r}: give one @tool(name=...).")
        found[made.name] = made
    return found


def _check_name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise ValueError(
            "A tool's name is 1 to 64 ASCII letters, digits, underscores and hyphens, not "
            f"{name!r:.80}: give it one with @tool(name=...)."
        )
    return name


def _check_timeout(timeout: float | None) -> None:
    if timeout is None:
        return
    number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if not (number and math.isfinite(timeout) and timeout > 0):
        raise ValueError(f"A tool's timeout is a positive number of seconds, not {timeout!r:.80}.")


def _check_function(function: object) -> None:
    if isinstance(function, type):
        raise TypeError(
            f"A tool is a function or an object, and {function.__name__} is a class: give an "
            f"instance, {function.__name__}(...)."
        )
    if isinstance(function, Tool):
        raise TypeError(f"{function.name!r} is a tool already: give its function.")
    if not callable(function):
        raise TypeError(f"A tool is a function, not {function!r:.80}.")


def _name_of(function: Any) -> str:
    if isinstance(function, functools.partial):
        return _name_of(function.func)
    return getattr(function, "__name__", "") or _snake_case(type(function))


def _snake_case(cls: type) -> str:
    return camel_case_to_spaces(cls.__name__).replace(" ", "_")


def _doc_of(cls: type) -> str:
    """Return the docstring of a class of tools, but not that of ``Tool``."""
    documented = (each.__doc__ for each in cls.__mro__[: cls.__mro__.index(Tool)] if each.__doc__)
    return inspect.cleandoc(next(documented, ""))
