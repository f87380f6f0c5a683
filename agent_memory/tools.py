"""Functions that a model may call: their JSON schema, their arguments, their results."""

from __future__ import annotations

import inspect
import json
import logging
import re
from collections.abc import Callable, Iterable
from typing import Any, get_type_hints, overload

from asgiref.sync import async_to_sync, iscoroutinefunction, sync_to_async
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PydanticUserError,
    ValidationError,
    create_model,
)
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import to_jsonable_python

from agent_memory import conf
from agent_memory.messages import ToolCall, ToolResult
from agent_memory.providers.base import ToolSpec

logger = logging.getLogger("agent_memory")

NAME = re.compile("[A-Za-z0-9_-]{1,64}")


class Tool:
    """
    A function as a model sees it.

    The parameters come from its type hints, the description from its
    docstring. ``timeout`` is how many seconds a call may take before another
    turn may take the conversation over; ``None`` is the setting
    ``RESERVATION_SECONDS``.
    """

    def __init__(
        self, function: Callable[..., Any], *, name: str = "", timeout: float | None = None
    ) -> None:
        if timeout is not None and timeout <= 0:
            raise ValueError(f"A tool's timeout is a positive number of seconds, not {timeout!r}.")
        if not callable(function):
            raise TypeError(f"A tool is a function, not {function!r:.80}.")
        self.function = function
        self.name = name or getattr(function, "__name__", "")
        if not NAME.fullmatch(self.name):
            raise ValueError(
                "A tool's name is 1 to 64 ASCII letters, digits, underscores and hyphens, not "
                f"{self.name!r:.80}: give it one with @tool(name=...)."
            )
        self.timeout = timeout
        self.is_async = iscoroutinefunction(function)
        try:
            self._arguments = _arguments_model(function, self.name)
            parameters = self._arguments.model_json_schema(schema_generator=_JsonSchema)
        except PydanticUserError as error:
            raise TypeError(
                f"The tool {self.name!r} has a type hint that JSON has no form for: {error}"
            ) from error
        self.spec = ToolSpec(self.name, inspect.getdoc(function) or "", parameters)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def run(self, call: ToolCall) -> ToolResult:
        """Run a call on this thread; what goes wrong becomes a failed result."""
        function = async_to_sync(self.function) if self.is_async else self.function
        try:
            return _result(function(**self._validated(call)))
        except Exception as error:
            return self._failure(call, error)

    async def arun(self, call: ToolCall) -> ToolResult:
        """See run(). A function that is not async runs on the thread of the caller's ORM."""
        function = self.function if self.is_async else sync_to_async(self.function)
        try:
            return _result(await function(**self._validated(call)))
        except Exception as error:
            return self._failure(call, error)

    def _validated(self, call: ToolCall) -> dict[str, Any]:
        if call.raw_arguments is not None:
            raise _BadArguments("The arguments are not a JSON object.")
        try:
            arguments = self._arguments.model_validate(call.arguments)
        except ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"
                for problem in error.errors(include_url=False, include_input=False)
            )
            raise _BadArguments(f"The arguments do not fit. {problems}") from None
        fields = self._arguments.model_fields
        return {
            str(fields[name].alias): getattr(arguments, name) for name in arguments.model_fields_set
        }

    def _failure(self, call: ToolCall, error: Exception) -> ToolResult:
        if isinstance(error, _BadArguments):
            return ToolResult(value=str(error), failed=True)
        logger.error("The tool %s failed.", self.name, exc_info=error)
        return ToolResult(value=f"The tool failed: {type(error).__name__}.", failed=True)


class _JsonSchema(GenerateJsonSchema):
    """Leaves a default out that JSON has no form for: the function has it all the same."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}


class _BadArguments(Exception):
    """The model's arguments do not fit; the text is for the model."""


def missing_tool(name: str) -> ToolResult:
    """Return the result of a call to a tool that the agent does not have."""
    return ToolResult(value=f"There is no tool named {name}.", failed=True)


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *, name: str = "", timeout: float | None = None
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None, /, *, name: str = "", timeout: float | None = None
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """
    Make a tool of a function or an async function.

    Used as ``@tool`` or ``@tool(name=..., timeout=seconds)``. Raises
    ``TypeError`` for a function whose parameters have no type hints, and
    ``ValueError`` for a name that no model takes.
    """
    if function is None:
        return lambda decorated: Tool(decorated, name=name, timeout=timeout)
    return Tool(function, name=name, timeout=timeout)


def tools_by_name(tools: Iterable[Tool | Callable[..., Any]]) -> dict[str, Tool]:
    """Return tools by name, plain functions made tools; raises ``ValueError`` for a name twice."""
    found: dict[str, Tool] = {}
    for given in tools:
        made = given if isinstance(given, Tool) else Tool(given)
        if made.name in found:
            raise ValueError(f"Two tools are named {made.name!r}: give one @tool(name=...).")
        found[made.name] = made
    return found


def _arguments_model(function: Callable[..., Any], name: str) -> type[BaseModel]:
    """Return a model of the parameters, as aliases: a field may not be named like each of them."""
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or (
            parameter.kind is parameter.POSITIONAL_ONLY
        ):
            raise TypeError(
                f"The tool {name!r} takes {parameter}: a model gives arguments by name."
            )
        if parameter.name not in hints:
            raise TypeError(f"The tool {name!r} needs a type hint for {parameter.name!r}.")
        if isinstance(parameter.default, FieldInfo):
            raise TypeError(
                f"The tool {name!r} has Field() as the default of {parameter.name!r}: put it into "
                "the type hint, Annotated[..., Field(...)]."
            )
        default = ... if parameter.default is parameter.empty else parameter.default
        field = Field(default, alias=parameter.name)
        fields[f"argument_{len(fields)}"] = (hints[parameter.name], field)
    return create_model(
        name, __config__=ConfigDict(extra="forbid", hide_input_in_errors=True), **fields
    )


def _result(value: Any) -> ToolResult:
    """Return what a tool returned as JSON data; NaN and infinities, which JSON lacks, as text."""
    if not isinstance(value, str):
        value = json.loads(json.dumps(to_jsonable_python(value)), parse_constant=str)
    result = ToolResult(value=value)
    limit, bytes_long = conf.limit("tool_result"), len(result.text.encode("utf-8", "surrogatepass"))
    if limit is not None and bytes_long > limit:
        return ToolResult(
            value=f"The result is too large: {bytes_long} bytes, {limit} are allowed.", failed=True
        )
    return result
