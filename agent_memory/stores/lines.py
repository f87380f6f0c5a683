"""
Turns as JSON text and back, for stores that keep a turn as one piece.

Nothing of it is lost: the bytes of files are base64, opaque blocks of a provider
are there. What a later version added is ignored when it is read.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from pydantic import TypeAdapter

from agent_memory.exceptions import UnsupportedFormat
from agent_memory.messages import Message, Part, Step, Turn
from agent_memory.stores import codec

Data = dict[str, Any]

_parts = TypeAdapter(tuple[Part, ...])


def encode_turn(turn: Turn) -> str:
    """Return a turn as one line of ASCII."""
    return codec.encode(turn_data(turn))


def decode_turn(text: str | bytes) -> Turn:
    """Return the turn of a line; raises ``UnsupportedFormat`` for text that is none."""
    try:
        return turn_value(json.loads(text))
    except (KeyError, TypeError, ValueError) as error:
        raise UnsupportedFormat("A stored turn cannot be read.") from error


def parts_data(parts: tuple[Part, ...]) -> list[Data]:
    """Return parts as data, the bytes of files in base64."""
    items = codec.encode_items(parts)
    for item in items:
        if "data" in item:
            item["data"] = base64.b64encode(item["data"]).decode()
    return items


def parts_value(items: list[Data]) -> tuple[Part, ...]:
    decoded = [
        {**item, "data": base64.b64decode(item["data"], validate=True)} if "data" in item else item
        for item in items
    ]
    return _parts.validate_python(decoded, extra="ignore")


def message_data(message: Message) -> Data:
    rest = message.model_dump(exclude_defaults=True, exclude={"content"})
    return {**rest, "content": parts_data(message.content)}


def message_value(data: Data) -> Message:
    content = parts_value(data["content"])
    return Message.model_validate({**data, "content": content}, extra="ignore")


def turn_data(turn: Turn) -> Data:
    rest = turn.model_dump(exclude_defaults=True, exclude={"user", "steps"})
    steps = [step_data(step) for step in turn.steps]
    return {"user": message_data(turn.user), "steps": steps, **rest}


def turn_value(data: Data) -> Turn:
    return Turn.model_validate({**data, "user": message_value(data["user"])}, extra="ignore")


def step_data(step: Step) -> Data:
    """Return a step as data, with its replay blocks where it has any."""
    data = codec.step_data(step)
    return data if step.replay is None else {**data, "replay": step.replay.model_dump()}
