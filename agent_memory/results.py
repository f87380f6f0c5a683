"""What a tool returned, as JSON data: in one documented form, or refused by name."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import json
import math
from collections.abc import Iterator, Mapping, Sequence, Set, ValuesView
from typing import Any

from django.utils.functional import Promise
from pydantic import JsonValue
from pydantic_core import to_jsonable_python

from agent_memory import conf
from agent_memory.messages import ToolResult

DEPTH = 100
"""How deep a result may be nested: what is written can be read again, from any depth of calls."""


class Unreturnable(Exception):
    """A tool returned what JSON has no form for; the text names it by its type alone."""


def as_result(value: Any) -> ToolResult:
    """
    Return what a tool returned as a result.

    A ``ToolResult`` keeps its marks. A result over ``LIMITS`` becomes a failed
    one. Raises ``Unreturnable``, and what a generator raises.
    """
    given = value if isinstance(value, ToolResult) else None
    data = to_json(value if given is None else given.value)
    result = ToolResult(value=data) if given is None else given.model_copy(update={"value": data})
    limit, bytes_long = conf.limit("tool_result"), len(result.text.encode("utf-8", "surrogatepass"))
    if limit is not None and bytes_long > limit:
        return ToolResult(
            value=f"The result is too large: {bytes_long} bytes, {limit} are allowed.", failed=True
        )
    return result


def to_json(value: Any, depth: int = 0) -> JsonValue:
    """
    Return a value as JSON data.

    Mappings become objects, other collections and iterators arrays, NaN and
    infinities, which JSON lacks, text, and all else what pydantic makes of it.
    """
    if depth > DEPTH:
        raise Unreturnable(f"The result is nested more than {DEPTH} deep, or holds itself.")
    if isinstance(value, enum.Enum):
        return to_json(value.value, depth + 1)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return _integer(int(value))
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else json.dumps(float(value))
    _refuse(value)
    if isinstance(value, Mapping):
        return _object(value, depth + 1)
    if isinstance(value, Sequence | Set | Iterator | ValuesView):
        return [to_json(item, depth + 1) for item in value]
    if _is_plain_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return _object(fields, depth + 1)
    return to_json(_by_pydantic(value, _kind(value)), depth + 1)


def _integer(value: int) -> int:
    try:
        str(value)
    except ValueError:
        raise Unreturnable("The result holds an integer of too many digits.") from None
    return value


def _object(value: Mapping[Any, Any], depth: int) -> dict[str, JsonValue]:
    found = {_key(key): to_json(item, depth) for key, item in value.items()}
    if len(found) < len(value):
        raise Unreturnable("The result holds keys that are the same text, such as 1 and '1'.")
    return found


def _key(key: Any) -> str:
    if isinstance(key, str) and not isinstance(key, enum.Enum):
        return str.__str__(key)
    _refuse(key)
    (name,) = _by_pydantic({key: None}, _kind(key))
    return str(name)


def _by_pydantic(value: Any, kind: str) -> Any:
    try:
        return to_jsonable_python(value, fallback=_unknown)
    except (TypeError, ValueError) as error:
        raise Unreturnable(f"The tool returned {kind} that cannot be written as JSON.") from error


def _unknown(value: Any) -> str:
    """Return what pydantic does not know: a lazy translation as text."""
    if isinstance(value, Promise):
        return str(value)
    _refuse(value)
    raise Unreturnable(
        f"The tool returned {_kind(value)}, which JSON has no form for: return text, numbers, "
        "lists and dicts."
    )


def _refuse(value: Any) -> None:
    if isinstance(value, bytes | bytearray | memoryview):
        raise Unreturnable(
            f"The tool returned {_kind(value)}, which JSON has no form for: return text, such as "
            "base64, or a link."
        )
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise Unreturnable(f"The tool returned {_kind(value)}: make it an async function.")
    if hasattr(value, "_meta") and hasattr(value, "_state"):
        raise Unreturnable(
            f"The tool returned {_kind(value)}, a model instance: return the fields that the "
            'model needs, such as {"number": order.number}.'
        )
    if hasattr(value, "values_list"):
        raise Unreturnable(
            f"The tool returned {_kind(value)}: return a list, such as "
            'list(orders.values("number", "status")).'
        )


def _is_plain_dataclass(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not (
        isinstance(value, type) or hasattr(value, "__pydantic_serializer__")
    )


def _kind(value: Any) -> str:
    return str(value.__class__.__name__)
