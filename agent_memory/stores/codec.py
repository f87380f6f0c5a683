"""
Values as JSON text and back.

Written ASCII-escaped, so that every database holds what a ``str`` can hold;
defaults are left out. Read leniently: fields of a newer version are ignored,
a newer format number is not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from agent_memory.exceptions import UnsupportedFormat
from agent_memory.messages import Step, Value
from agent_memory.records import StoredPart

FORMAT = 1

_encoder = json.JSONEncoder(separators=(",", ":"))
_parts = TypeAdapter(list[tuple[StoredPart, ...]])
_steps = TypeAdapter(list[tuple[Step, ...]])


def encode(value: Any) -> str:
    """Return JSON text of JSON-able data."""
    return _encoder.encode(value)


def encode_items(items: Iterable[Value]) -> list[dict[str, Any]]:
    """Return items of a union as data: their ``type`` and what is not a default."""
    return [
        {"type": item.type, **item.model_dump(exclude_defaults=True)}  # type: ignore[attr-defined]  # each of a union has it
        for item in items
    ]


def encode_parts(parts: Sequence[StoredPart]) -> str:
    """Return the text of a message's parts, of which none has bytes."""
    return encode(encode_items(parts))


def encode_steps(steps: Sequence[Step]) -> str:
    """Return the text of a turn's steps, without their replay blocks."""
    return encode([step_data(step) for step in steps])


def decode_parts(texts: Sequence[str]) -> list[tuple[StoredPart, ...]]:
    """Return the parts of many messages, decoded and validated at once."""
    decoded: list[tuple[StoredPart, ...]] = _decode(_parts, texts)
    return decoded


def parts_value(data: Any) -> tuple[StoredPart, ...]:
    """Return the parts of a message of their data."""
    (parts,) = _parts.validate_python([data], extra="ignore")
    return parts


def decode_steps(texts: Sequence[str]) -> list[tuple[Step, ...]]:
    """Return the steps of many turns, decoded and validated at once."""
    decoded: list[tuple[Step, ...]] = _decode(_steps, texts)
    return decoded


def _decode(adapter: TypeAdapter[Any], texts: Sequence[str]) -> Any:
    if not texts:
        return []
    try:
        return adapter.validate_python(json.loads(f"[{','.join(texts)}]"), extra="ignore")
    except ValidationError as error:
        raise UnsupportedFormat(
            f"A stored message cannot be read: {error.error_count()} values are not as expected."
        ) from error


def step_data(step: Step) -> dict[str, Any]:
    """Return a step as data, without its replay blocks."""
    return {
        **step.model_dump(exclude_defaults=True, exclude={"items", "replay"}),
        "items": encode_items(step.items),
    }


def step_value(data: Any) -> Step:
    """Return a step of its data."""
    return Step.model_validate(data, extra="ignore")


def check_format(number: int) -> None:
    """Raise ``UnsupportedFormat`` for rows of a version to come."""
    if number > FORMAT:
        raise UnsupportedFormat(
            f"A stored message has format {number}; this version reads up to {FORMAT}. "
            "Upgrade django-agent-memory."
        )
