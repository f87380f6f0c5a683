"""
Values as JSON text and back.

Written ASCII-escaped, so that every database holds what a ``str`` can hold;
defaults are left out, and so is the text of a last item that says just what
the readable content beside it says: ``{"type":"text"}``. Steps are two lines:
the items of each, which a model is told, and what else is known of each. Read
leniently: fields of a newer version are ignored, a newer format number is not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from agent_memory.exceptions import UnsupportedFormat
from agent_memory.messages import Step, StepItem
from agent_memory.parts import TextPart, plain_text, trusting
from agent_memory.records import StoredPart
from agent_memory.stores import usual

FORMAT = 1

T = TypeVar("T")
Item = StoredPart | StepItem
Written = tuple[str, str]
"""The JSON of a row's parts or steps, and its readable content."""


_encoder = json.JSONEncoder(separators=(",", ":"))
_parts = TypeAdapter(list[tuple[StoredPart, ...]])
_step_item: TypeAdapter[StepItem] = TypeAdapter(StepItem)
_step_but_items = TypeAdapter(Step)
_step = trusting(Step)
_SAID, _SAID_THERE = '{"type":"text"}', {"type": "text"}
TEXT_ALONE = f"[{_SAID}]"
"""The parts of a message that is just its readable content."""
_NONE = "[]"
_PLAIN = {_NONE, TEXT_ALONE}
_PARTS_END, _ROUNDS_END = f"{_SAID}]", f"{_SAID}]]"
"""How parts and the items of steps end whose last text stands in the content."""


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
    others = [step_data(step) for step in steps]
    rounds = [data.pop("items") for data in others]
    if rounds:
        _beside(content, rounds[-1])
    return f"{encode(rounds)}\n{encode(others)}" if any(others) else encode(rounds)


def _beside(content: str, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if items and items[-1] == {"type": "text", "text": content}:
        del items[-1]["text"]
    return items


def whole_parts(written: Written) -> str:
    """Return the JSON of parts with the text that stands in the content."""
    return _with_said(*written, _PARTS_END)


def whole_steps(written: Written) -> str:
    """Return the JSON of steps with the text that stands in the content, an object each."""
    text, content = written
    told, _, rest = text.partition("\n")
    try:
        rounds = json.loads(_with_said(told, content, _ROUNDS_END))
        others = json.loads(rest) if rest else [{}] * len(rounds)
        steps = [{**other, "items": items} for other, items in zip(others, rounds, strict=True)]
    except (TypeError, ValueError, RecursionError):
        steps = None
    if steps is None or not all(isinstance(step["items"], list) for step in steps):
        return text  # somebody wrote it by hand
    return encode(steps)


def _with_said(text: str, content: str, end: str) -> str:
    if not text.endswith(end):
        return text
    said = encode({"type": "text", "text": content})
    return text[: -len(end)] + said + end[len(_SAID) :]


def decode_parts(written: Iterable[Written]) -> list[tuple[StoredPart, ...]]:
    """Return the parts of many messages, decoded and validated at once."""
    kept = list(written)
    more = [_without_said(text) for text, _ in kept if text not in _PLAIN]
    decoded = iter(_decode(_parts, more) if more else ())
    return [
        (() if text in _PLAIN else next(decoded)) + _said(text, content) for text, content in kept
    ]


def _without_said(text: str) -> str:
    """Return parts without a last text that stands in the content."""
    if not text.endswith(_PARTS_END):
        return text
    return text[: -len(_PARTS_END)].rstrip(",") + "]"


def _said(text: str, content: str) -> tuple[TextPart, ...]:
    """Return the last text of parts, where it stands in the content."""
    return (plain_text(content),) if text.endswith(_PARTS_END) else ()


def parts_value(data: Any) -> tuple[StoredPart, ...]:
    """Return the parts of a message of their data."""
    (parts,) = _parts.validate_python([data], extra="ignore")
    return parts


def decode_steps(written: Iterable[Written]) -> list[tuple[Step, ...]]:
    """Return the steps of many messages, decoded and validated at once."""
    kept = list(written)
    more = [each for each in kept if each[0] != _NONE]
    decoded = iter(_whole_turns(more) if more else ())
    return [() if text == _NONE else next(decoded) for text, _ in kept]


def _whole_turns(written: Sequence[Written]) -> list[tuple[Step, ...]]:
    lines = [text.partition("\n") for text, _ in written]
    others = iter(_loaded([rest for _, _, rest in lines if rest]))
    turns = _decode_rounds([told for told, _, _ in lines], written)
    return [
        _joined(next(others) if rest else [{}] * len(rounds), rounds)
        for (_, _, rest), rounds in zip(lines, turns, strict=True)
    ]


def _joined(others: Any, rounds: list[list[StepItem]]) -> tuple[Step, ...]:
    if type(others) is not list or len(others) != len(rounds):
        raise _unreadable("its steps are not as many as expected")
    return tuple(
        [
            usual.step(data, items) or _any_step(data, items)
            for data, items in zip(others, map(tuple, rounds), strict=True)
        ]
    )


def _any_step(data: Any, items: tuple[StepItem, ...]) -> Step:
    return _step(**vars(_validated(_step_but_items, data)) | {"items": items})


def decode_rounds(written: Sequence[Written]) -> list[list[list[StepItem]]]:
    """Return of the steps of each turn only their items, which are what a model is told."""
    return _decode_rounds([text.partition("\n")[0] for text, _ in written], written)


def _decode_rounds(told: list[str], written: Sequence[Written]) -> list[list[list[StepItem]]]:
    return [
        _rounds(data, content) for data, (_, content) in zip(_loaded(told), written, strict=True)
    ]


def _rounds(data: Any, content: str) -> list[list[StepItem]]:
    """Return the items of each step of a turn."""
    try:
        is_beside = data and data[-1] and data[-1][-1] == _SAID_THERE
        if is_beside:
            data[-1].pop()
        rounds = [
            [usual.answered_call(item) or _validated(_step_item, item) for item in items]
            for items in data
        ]
    except (KeyError, TypeError):
        raise _unreadable("its steps are no lists") from None
    if is_beside:
        rounds[-1].append(plain_text(content))
    return rounds


def _decode(adapter: TypeAdapter[list[T]], texts: Sequence[str]) -> list[T]:
    """Return several JSON texts, decoded and validated at once."""
    try:
        values = adapter.validator.validate_json(_as_one(texts), extra="ignore")
    except ValidationError:  # also where only Python's parser can read it
        values = _validated(adapter, _loaded(texts))
    return _each(values, texts)


def _loaded(texts: Sequence[str]) -> list[Any]:
    """Return the data of several JSON texts, decoded at once."""
    text = _as_one(texts)
    try:
        return _each(from_json(text), texts)
    except ValueError:
        pass  # Python's parser also takes lone surrogates, and what is nested deeply
    try:
        return _each(json.loads(text), texts)
    except (ValueError, RecursionError):
        raise _unreadable("it is no JSON") from None


def _as_one(texts: Sequence[str]) -> str:
    return f"[{','.join(texts)}]"


def _each(values: list[T], texts: Sequence[str]) -> list[T]:
    if len(values) != len(texts):
        raise _unreadable("it is no JSON")
    return values


def _validated(adapter: TypeAdapter[T], data: Any) -> T:
    try:
        return adapter.validate_python(data, extra="ignore")
    except ValidationError as error:
        raise _unreadable(f"{error.error_count()} values are not as expected") from error


def _unreadable(reason: str) -> UnsupportedFormat:
    return UnsupportedFormat(f"A stored message cannot be read: {reason}.")


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
