"""A transcript that is written down: its changes as lines, and the lines as a transcript."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from agent_memory.approvals import Approval
from agent_memory.messages import Usage
from agent_memory.participants import Participant
from agent_memory.records import Heading, Reservation, StoredConversation, StoredTurn
from agent_memory.stores import lines
from agent_memory.stores.file import values
from agent_memory.stores.holding import Held
from agent_memory.stores.kept import KeptTurn, Speakers, answer_of, messages_of
from agent_memory.stores.lines import Data
from agent_memory.stores.transcript import Transcript


@dataclass
class WrittenTranscript(Transcript):
    """
    A transcript that knows what of it is not written yet.

    ``written`` is the state that the last write left, ``None`` before the first.
    ``changed`` are the indexes of turns that are new or have another form,
    ``asked`` the approvals of a paused one as they were written, and ``noted`` is
    how many entries of the journal are written.
    """

    written: Data | None = None
    changed: set[int] = field(default_factory=set)
    asked: tuple[Approval, ...] = ()
    noted: int = 0

    # What is to be written.

    def touch(self, index: int) -> None:
        self.changed.add(index)

    def drop_journal(self) -> None:
        super().drop_journal()
        self.noted = 0

    def discard(self, *, ended: datetime) -> StoredTurn | None:
        stored = super().discard(ended=ended)
        if stored is None:
            self.write_anew()
        return stored

    def _reattribute(self, old: Participant | None, new: Participant | None) -> None:
        super()._reattribute(old, new)
        self.write_anew()

    def write_anew(self) -> None:
        """Have all of it written again, and nothing else be left of what was written before."""
        self.written, self.noted, self.changed = None, 0, set(range(len(self.turns)))

    def unwritten(self, held: Held | None) -> bytes:
        """Return the lines that tell what has changed; none if nothing has."""
        state = self._state(held)
        data = [] if self.written is not None or not self.leading else [self._leading_data()]
        data += ({"turn": self._turn_data(at)} for at in sorted(self._changes()))
        data += ({"note": values.entry_data(entry)} for entry in self.journal[self.noted :])
        if not data and state == self.written:
            return b""
        return b"".join(map(values.encode, [*data, {"state": state}]))

    def is_written(self, held: Held | None) -> None:
        """Hear that all of it is written."""
        self.written, self.noted = self._state(held), len(self.journal)
        self.changed.clear()
        self.asked = self.paused.approvals if self.paused else ()

    def _changes(self) -> set[int]:
        changed = {at for at in self.changed if at < len(self.turns)}
        if self.paused is not None and self.paused.approvals is not self.asked:
            changed.add(len(self.turns) - 1)
        return changed

    def _leading_data(self) -> Data:
        assert self.opened_at is not None
        return {
            "leading": [lines.message_data(message) for message in self.leading],
            "ids": [message.id for message in self.messages[: len(self.leading)]],
            "opened": self.opened_at.isoformat(),
        }

    def _turn_data(self, at: int) -> Data:
        kept, place = self.turns[at], len(self.leading) + 2 * at
        user, assistant = self.messages[place : place + 2]
        participant, agent = kept.speakers
        return {
            "at": at,
            "id": kept.stored.turn_id,
            "messages": [user.id, assistant.id],
            "begun": user.created_at.isoformat(),
            "ended": assistant.created_at.isoformat(),
            "participant": values.participant_data(participant),
            "agent": agent,
            "number": kept.number,
            "once": values.once_data(kept.once),
            "approvals": values.approvals_data(kept.approvals),
            **lines.turn_data(kept.turn),
        }

    def _state(self, held: Held | None) -> Data:
        """Return what is told of the conversation after each write, empty things left out."""
        state = {
            "participant": values.participant_data(self.participant),
            "agent": self.agent,
            "title": self.title,
            "title_source": self.title_source,
            "opened": self.opened_at and self.opened_at.isoformat(),
            "active": self.last_activity and self.last_activity.isoformat(),
            "turns": len(self.turns),
            "usage": self.usage.model_dump(exclude_defaults=True),
            "spoke": [
                [values.participant_data(participant), agent, number]
                for (participant, agent), number in self.spoke.items()
            ],
            "notes": len(self.journal),
            "journalled": self.journalled and _journalled_data(self.journalled),
            "held": held and [held.token, held.since.isoformat(), held.until, held.key],
        }
        return {name: value for name, value in state.items() if value}

    # What was written.

    def read(self, write: Iterable[Data]) -> Held | None:
        """Take in one write; return who holds the conversation after it."""
        held: Held | None = None
        for line in write:
            match line:
                case {"turn": data}:
                    self._put(data)
                case {"note": data}:
                    self.journal.append(values.entry_value(data))
                case {"leading": messages, "ids": ids, "opened": opened}:
                    leading = tuple(map(lines.message_value, messages))
                    self.open(datetime.fromisoformat(opened), leading)
                    self.messages = [
                        replace(message, id=known)
                        for message, known in zip(self.messages, ids, strict=True)
                    ]
                case {"state": state}:
                    self._set(state)
                    held = held_in(state)
        self.is_written(held)
        return held

    def _put(self, data: Data) -> None:
        turn, approvals = lines.turn_value(data), values.approvals_value(data["approvals"])
        at, place = data["at"], len(self.leading) + 2 * data["at"]
        if at < len(self.turns):
            kept = self.turns[at]
            kept.turn, kept.approvals = turn, approvals
            self.messages[place + 1] = replace(self.messages[place + 1], **answer_of(turn))
            return
        participant = values.participant_value(data["participant"])
        begun, ended = (datetime.fromisoformat(data[name]) for name in ("begun", "ended"))
        heading = Heading(self.id, participant, data["agent"])
        said = messages_of(turn, heading, 2 * at, begun, ended)
        once = values.once_value(data["once"])
        stored = StoredTurn(self.id, data["id"], *data["messages"])
        speakers = participant, data["agent"]
        kept = KeptTurn(turn, stored, speakers, data["number"], once, approvals)
        self.turns.append(kept)
        self.messages += (
            replace(message, id=known)
            for message, known in zip(said, data["messages"], strict=True)
        )
        if once is not None:
            self.keys[once.key] = kept

    def _set(self, state: Data) -> None:
        for kept in self.turns[state.get("turns", 0) :]:
            if kept.once is not None:
                del self.keys[kept.once.key]
        del self.turns[state.get("turns", 0) :]
        del self.messages[len(self.leading) + 2 * len(self.turns) :]
        self.participant = values.participant_value(state.get("participant"))
        self.agent = state.get("agent", "")
        self.title, self.title_source = state.get("title", ""), state.get("title_source", "")
        self.opened_at, self.last_activity = moment(state, "opened"), moment(state, "active")
        self.usage = usage_in(state)
        self.spoke = spoke_in(state)
        self.journal = self.journal[len(self.journal) - state.get("notes", 0) :]
        journalled = state.get("journalled")
        self.journalled = journalled and _journalled_value(self.id, journalled)


def held_in(state: Data) -> Held | None:
    """Return who holds a conversation."""
    if "held" not in state:
        return None
    token, since, until, key = state["held"]
    return Held(token, datetime.fromisoformat(since), until, key)


def spoke_in(state: Data) -> dict[Speakers, int]:
    """Return when participants and agents last spoke."""
    return {
        (values.participant_value(participant), agent): number
        for participant, agent, number in state.get("spoke", ())
    }


def usage_in(state: Data) -> Usage:
    return Usage.model_validate(state.get("usage", {}), extra="ignore")


def moment(state: Data, name: str) -> datetime | None:
    return datetime.fromisoformat(state[name]) if name in state else None


def conversation_in(conversation_id: str, state: Data) -> StoredConversation | None:
    """Return a conversation as it is listed; ``None``: it is a placeholder."""
    opened_at, last_activity = moment(state, "opened"), moment(state, "active")
    if opened_at is None or last_activity is None:
        return None
    return StoredConversation(
        id=conversation_id,
        participant=values.participant_value(state.get("participant")),
        agent=state.get("agent", ""),
        title=state.get("title", ""),
        title_source=state.get("title_source", ""),
        opened_at=opened_at,
        last_activity=last_activity,
        turns=state.get("turns", 0),
        usage=usage_in(state),
    )


def _journalled_data(reservation: Reservation) -> Data:
    return {
        "turn": reservation.turn_id,
        "begun": reservation.begun_at.isoformat(),
        "once": values.once_data(reservation.once),
    }


def _journalled_value(conversation_id: str, data: dict[str, Any]) -> Reservation:
    return Reservation(
        conversation_id,
        data["turn"],
        begun_at=datetime.fromisoformat(data["begun"]),
        once=values.once_value(data["once"]),
        journalled=True,
    )
