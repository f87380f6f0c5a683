"""Values as the JSON data of a line, and back."""

from __future__ import annotations

import json
from datetime import datetime

from pydantic import TypeAdapter

from agent_memory.approvals import Approval
from agent_memory.journals import JournalEntry
from agent_memory.messages import Step, ToolCall, ToolResult
from agent_memory.participants import Participant
from agent_memory.records import Heading, Once
from agent_memory.stores.lines import Data, message_data, message_value, step_data

_approvals = TypeAdapter(tuple[Approval, ...])
_headings = TypeAdapter(Heading)


def encode(data: Data) -> bytes:
    """Return data as a line, times in it as text."""
    text = json.dumps(data, separators=(",", ":"), default=datetime.isoformat)
    return text.encode("ascii") + b"\n"


def approvals_data(approvals: tuple[Approval, ...]) -> list[Data]:
    data: list[Data] = _approvals.dump_python(approvals, exclude_defaults=True)
    return data


def approvals_value(data: list[Data]) -> tuple[Approval, ...]:
    return _approvals.validate_python(data, extra="ignore")


def participant_data(participant: Participant | None) -> list[str] | None:
    return None if participant is None else [participant.type, participant.key]


def participant_value(data: list[str] | None) -> Participant | None:
    return None if data is None else Participant(*data)


def once_data(once: Once | None) -> list[str] | None:
    return None if once is None else [once.key, once.fingerprint]


def once_value(data: list[str] | None) -> Once | None:
    return None if data is None else Once(*data)


def entry_data(entry: JournalEntry) -> Data:
    """Return an entry of a journal as data; its kind tells a step, a call and a result apart."""
    data: Data = {"step": entry.step, "index": entry.index}
    match entry.value:
        case Step():
            data["noted"] = {"step": step_data(entry.value)}
        case ToolCall():
            data["noted"] = {"call": entry.value.model_dump(exclude_defaults=True)}
        case ToolResult():
            data["noted"] = {"result": entry.value.model_dump(exclude_defaults=True)}
    if entry.heading is not None:
        data["heading"] = _headings.dump_python(entry.heading, exclude_defaults=True)
    if entry.user is not None:
        data["user"] = message_data(entry.user)
    return data


def entry_value(data: Data) -> JournalEntry:
    ((kind, noted),) = data["noted"].items()
    heading, user = data.get("heading"), data.get("user")
    return JournalEntry(
        data["step"],
        data["index"],
        NOTED[kind].model_validate(noted, extra="ignore"),
        None if heading is None else _headings.validate_python(heading, extra="ignore"),
        None if user is None else message_value(user),
    )


NOTED: dict[str, type[Step] | type[ToolCall] | type[ToolResult]] = {
    "step": Step,
    "call": ToolCall,
    "result": ToolResult,
}
