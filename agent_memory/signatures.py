"""What a function takes by name: from a model, validated by pydantic, and from us, the context."""

from __future__ import annotations

import functools
import inspect
import json
import types
from collections.abc import Callable
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from asgiref.sync import iscoroutinefunction
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

PROBLEMS = 10
"""How many problems of bad arguments are told at most."""


class InvalidArguments(ValueError):
    """A model's or a person's arguments do not fit; the text tells which, without their values."""


class Parameters:
    """
    What a function takes by name.

    ``what`` names it in errors; ``context`` is the parameter whose hint is the
    given type, or that or ``None``, and ``parameters`` are all others.
    """

    def __init__(self, function: Callable[..., Any], what: str, context: type) -> None:
        self.what = what
        self.is_async = is_async(function)
        self.hints = _hints(_target(function), what)
        self.parameters = _parameters(function)
        found = [name for name in self.parameters if _is_context(self.hints.get(name), context)]
        if len(found) > 1:
            raise TypeError(f"{what} takes its {context.__name__} twice: {', '.join(found)}.")
        self.context = found[0] if found else None
        self.parameters.pop(self.context or "", None)
        for parameter in self.parameters.values():
            if parameter.kind is parameter.POSITIONAL_ONLY:
                raise TypeError(f"{what} takes {parameter}: it is called with arguments by name.")

    def filled(self, arguments: dict[str, Any], context: object) -> dict[str, Any]:
        """Return arguments with the context, if the function asks for it."""
        return arguments if self.context is None else {**arguments, self.context: context}


class Signature(Parameters):
    """
    What a tool takes, as a model is told it; ``schema`` is the JSON schema of its arguments.

    Raises ``TypeError`` for a function that a model cannot call.
    """

    def __init__(self, function: Callable[..., Any], name: str, context: type) -> None:
        super().__init__(function, f"The tool {name!r}", context)
        target = _target(function)
        if inspect.isasyncgenfunction(target):
            raise TypeError(f"{self.what} is an async generator: let it return a list.")
        self.description = inspect.cleandoc(target.__doc__ or "")
        try:
            self._model = self._arguments_model(name)
            self.schema = self._model.model_json_schema(schema_generator=_JsonSchema)
        except PydanticUserError as error:
            raise TypeError(
                f"{self.what} has a type hint that JSON has no form for: {error}"
            ) from error

    def validate(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """
        Return arguments as what the hints say; those that are left out stay so.

        Raises ``InvalidArguments``.
        """
        try:
            found = self._parse(arguments)
        except ValidationError as error:
            raise InvalidArguments(_told(error)) from None
        fields = self._model.model_fields
        return {str(fields[name].alias): getattr(found, name) for name in found.model_fields_set}

    def defaults(self) -> dict[str, Any]:
        """Return what the function itself takes for arguments that are left out."""
        return {
            name: parameter.default
            for name, parameter in self.parameters.items()
            if parameter.default is not parameter.empty
        }

    def _parse(self, arguments: dict[str, Any]) -> BaseModel:
        # As JSON, so that strict models still take dates and the like from text.
        try:
            return self._model.model_validate_json(json.dumps(arguments))
        except ValidationError as error:
            if error.errors(include_url=False)[0]["type"] != "json_invalid":
                raise
        # Pydantic reads neither lone surrogates nor deep nesting from JSON text.
        return self._model.model_validate(arguments)

    def _arguments_model(self, name: str) -> type[BaseModel]:
        """Return a model of the parameters, as aliases: a field may not have each of their names."""
        fields: dict[str, Any] = {}
        for parameter in self.parameters.values():
            self._check(parameter)
            default = ... if parameter.default is parameter.empty else parameter.default
            field = Field(default, alias=parameter.name)
            fields[f"argument_{len(fields)}"] = (self.hints[parameter.name], field)
        config = ConfigDict(extra="forbid", hide_input_in_errors=True)
        return create_model(name, __config__=config, **fields)

    def _check(self, parameter: inspect.Parameter) -> None:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"{self.what} takes {parameter}: a model gives arguments by name.")
        if parameter.name not in self.hints:
            if parameter.name == "self":
                raise TypeError(
                    f"{self.what} is a method without its object: leave @tool out, and let "
                    "get_tools() return the bound method, or Tool(self.method, ...) with options."
                )
            raise TypeError(f"{self.what} needs a type hint for {parameter.name!r}.")
        if isinstance(parameter.default, FieldInfo):
            raise TypeError(
                f"{self.what} has Field() as the default of {parameter.name!r}: put it into the "
                "type hint, Annotated[..., Field(...)]."
            )


class _JsonSchema(GenerateJsonSchema):
    """Leaves a default out that JSON has no form for: the function has it all the same."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether a function, or an object that is called like one, is awaited."""
    return iscoroutinefunction(function) or iscoroutinefunction(_target(function))


def _is_context(hint: Any, context: type) -> bool:
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    kinds = set(get_args(hint)) if get_origin(hint) in (Union, types.UnionType) else {hint}
    return context in kinds and kinds <= {context, types.NoneType}


def _target(function: Any) -> Any:
    """Return what has the hints and the docstring of a callable."""
    if isinstance(function, functools.partial):
        return _target(function.func)
    if inspect.isroutine(function) or hasattr(function, "__wrapped__"):
        return function
    return function.__call__


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters, those left out that a partial has given by name."""
    given = function.keywords if isinstance(function, functools.partial) else {}
    return {
        name: parameter
        for name, parameter in inspect.signature(function).parameters.items()
        if name not in given
    }


def _hints(target: Any, what: str) -> dict[str, Any]:
    try:
        return get_type_hints(target, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"{what} has a type hint that is not there at run time: {error}. Import it outside of "
            "TYPE_CHECKING, and define it first."
        ) from error


def _told(error: ValidationError) -> str:
    problems = [
        f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"
        for problem in error.errors(include_url=False, include_input=False, include_context=False)
    ]
    more = f"; and {len(problems) - PROBLEMS} more" if len(problems) > PROBLEMS else ""
    return f"The arguments do not fit. {'; '.join(problems[:PROBLEMS])}{more}"
