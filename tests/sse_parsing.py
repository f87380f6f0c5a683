"""Server-sent events, read by the rules that browsers read them by (HTML, "Parsing an event stream")."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ServerSent:
    """One event as a browser dispatches it."""

    name: str
    text: str

    @property
    def data(self) -> Any:
        return json.loads(self.text, parse_constant=_refuse)


def parse(body: bytes) -> list[ServerSent]:
    """Return the events of a stream; one that no blank line ends is dropped."""
    events: list[ServerSent] = []
    name, data = "", []
    for line in re.split("\r\n|\n|\r", body.decode("utf-8", "replace"))[:-1]:
        field, _, value = line.partition(":")
        if not line:
            if data:
                events.append(ServerSent(name or "message", "\n".join(data)))
            name, data = "", []
        elif field == "event":
            name = value.removeprefix(" ")
        elif field == "data":
            data.append(value.removeprefix(" "))
    return events


def names(body: bytes) -> list[str]:
    return [event.name for event in parse(body)]


def _refuse(constant: str) -> None:
    raise ValueError(f"JavaScript's JSON.parse() takes no {constant}.")
