"""
Values as JSON text and back.

Written ASCII-escaped, so that every database holds what a ``str`` can hold;
defaults are left out, and so is the text of a last item that says just what
the readable content beside it says: ``{"type":"text"}``. Read leniently: fields
of a newer version are ignored, a newer format number is not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict  # pydantic brings it, and takes no other on Python 3.11

from agent_memory.exceptions import UnsupportedFormat
from agent_memory.messages import Step, StepItem
from agent_memory.parts import TextPart, plain_text, trusting
from agent_memory.records import StoredPart

FORMAT = 1

Item = StoredPart | StepItem
Written = tuple[str, str]
"""The JSON of a row's parts or steps, and its readable content."""


class Round(TypedDict):
    """A step without all that a model is not told."""

    items: list[StepItem]


_encoder = json.JSONEncoder(separators=(",", ":"))
_parts = TypeAdapter(list[tuple[StoredPart, ...]])
_steps = TypeAdapter(list[tuple[Step, ...]])
_rounds = TypeAdapter(list[list[Round]])
_step = trusting(Step)
_SAID = '{"type":"text"}'
TEXT_ALONE = f"[{_SAID}]"
"""The parts of a message that is just its readable content."""
_NOTHING = "[]"
_PLAIN = {_NOTHING, TEXT_ALONE}
_PARTS_END, _STEPS_END = f"{_SAID}]", f"{_SAID}]}}]"
"""How parts and steps end whose last text stands in the content."""


def encode(value: Any) -> str:
    """Return JSON text of JSON-able data."""
    return _encoder.encode(value)


def encode_items(items: Iterable[Item]) -> list[dict[str, Any]]:
    """Return items of a union as data: their ``type`` and what is not a default."""
    kept = list(items)
    return _typed(kept, [item.model_dump(exclude_defaults=True) for item in kept])


def _typed(items: Iterable[Item], data: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": item.type, **fields} for item, fields in zip(items, data, strict=True)]


def encode_parts(parts: Sequence[StoredPart], content: str) -> str:
    """Return the text of a message's parts, of which none has bytes."""
    if len(parts) == 1 and parts[0] == plain_text(content):
        return TEXT_ALONE
    return encode(_beside(content, encode_items(parts)))


def encode_steps(steps: Sequence[Step], content: str) -> str:
    """Return the text of a turn's steps, without their replay blocks."""
    data = [step_data(step) for step in steps]
    if data:
        _beside(content, data[-1]["items"])
    return encode(data)


def _beside(content: str, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if items and items[-1] == {"type": "text", "text": content}:
        del items[-1]["text"]
    return items


def whole(written: Written) -> str:
    """Return the JSON of parts or steps with the text that stands in the content."""
    text, content = written
    for end in (_PARTS_END, _STEPS_END):
        if text.endswith(end):
            rest = end.removeprefix(_SAID)
            return f'{text.removesuffix(end)}{{"type":"text","text":{encode(content)}}}{rest}'
    return text


def decode_parts(written: Iterable[Written]) -> list[tuple[StoredPart, ...]]:
    """Return the parts of many messages, decoded and validated at once."""
    kept = list(written)
    more = [_without_said(text, _PARTS_END) for text, _ in kept if text not in _PLAIN]
    decoded = iter(_decode(_parts, more) if more else ())
    return [
        (() if text in _PLAIN else next(decoded)) + _said(text, content, _PARTS_END)
        for text, content in kept
    ]


def parts_value(data: Any) -> tuple[StoredPart, ...]:
    """Return the parts of a message of their data."""
    (parts,) = _parts.validate_python([data], extra="ignore")
    return parts


def decode_steps(written: Iterable[Written]) -> list[tuple[Step, ...]]:
    """Return the steps of many turns, decoded and validated at once."""
    kept = list(written)
    more = [_without_said(text, _STEPS_END) for text, _ in kept if text != _NOTHING]
    decoded = iter(_decode(_steps, more) if more else ())
    turns: list[tuple[Step, ...]] = []
    for text, content in kept:
        steps: tuple[Step, ...] = () if text == _NOTHING else next(decoded)
        if said := _said(text, content, _STEPS_END):
            last = steps[-1]
            steps = (*steps[:-1], _step(**vars(last) | {"items": last.items + said}))
        turns.append(steps)
    return turns


def decode_rounds(written: Sequence[Written]) -> list[list[Round]]:
    """Return of the steps of each turn only what a model is told of them, their items."""
    turns: list[list[Round]] = _decode(
        _rounds, [_without_said(text, _STEPS_END) for text, _ in written]
    )
    for rounds, (text, content) in zip(turns, written, strict=True):
        if text.endswith(_STEPS_END):
            rounds[-1]["items"].append(plain_text(content))
    return turns


def _without_said(text: str, end: str) -> str:
    """Return parts or steps without a last text that stands in the content."""
    if not text.endswith(end):
        return text
    return text[: -len(end)].rstrip(",") + end[len(_SAID) :]


def _said(text: str, content: str, end: str) -> tuple[TextPart, ...]:
    """Return the last text of parts or steps, where it stands in the content."""
    return (plain_text(content),) if text.endswith(end) else ()


def _decode(adapter: TypeAdapter[Any], texts: Iterable[str]) -> Any:
    text = f"[{','.join(texts)}]"
    try:
        return adapter.validator.validate_json(text, extra="ignore")
    except ValidationError:
        pass  # Python's parser also takes lone surrogates, and what is nested deeply
    try:
        return adapter.validate_python(json.loads(text), extra="ignore")
    except ValidationError as error:
        raise UnsupportedFormat(
            f"A stored message cannot be read: {error.error_count()} values are not as expected."
        ) from error


def step_data(step: Step) -> dict[str, Any]:
    """Return a step as data, without its replay blocks; the items are the last of it."""
    data = step.model_dump(exclude_defaults=True, exclude={"replay"})
    data["items"] = _typed(step.items, data.pop("items", ()))
    return data


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
