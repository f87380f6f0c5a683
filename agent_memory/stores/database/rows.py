"""Values as the columns of rows, and rows as values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.contenttypes.models import ContentType, ContentTypeManager
from django.utils import timezone

from agent_memory.exceptions import InvalidParticipant
from agent_memory.messages import (
    Message,
    Replay,
    Step,
    Turn,
    TurnError,
    Usage,
    answers,
    trusted_message,
)
from agent_memory.participants import Participant
from agent_memory.parts import plain_text, trusting
from agent_memory.records import (
    NO_USAGE,
    Heading,
    Reservation,
    StoredConversation,
    StoredMessage,
    readable,
)
from agent_memory.stores import codec
from agent_memory.stores.attachments import set_aside
from agent_memory.stores.database.attachments import with_bytes
from agent_memory.stores.database.terms import MAX_INTEGER, TOTALS, UNANSWERED, UNSAID
from agent_memory.stores.pauses import without_replay

Row = tuple[Any, ...]

_usage, _stored = trusting(Usage), trusting(StoredMessage)


@cache
def content_types(using: str) -> ContentTypeManager:
    """Return the manager of content types on a database, which shares the cache of all."""
    return ContentType.objects.db_manager(using)


def participant_columns(participant: Participant | None, using: str) -> dict[str, Any]:
    """Return type and key as columns; raises ``InvalidParticipant`` for an unknown type."""
    if participant is None:
        return {"participant_type_id": None, "participant_key": ""}
    app_label, _, model = participant.type.partition(".")
    manager = content_types(using)
    try:
        content_type = manager.get_by_natural_key(app_label, model)
    except ContentType.DoesNotExist:
        try:
            content_type = manager.get_for_model(apps.get_model(app_label, model))
        except (LookupError, ValueError):
            raise InvalidParticipant(
                f"{participant.type!r} is not the label of an installed model: pass a saved "
                'instance, or Participant("app_label.model", "key").'
            ) from None
    return {"participant_type_id": content_type.pk, "participant_key": participant.key}


def participant_value(type_id: int | None, key: str, using: str) -> Participant | None:
    if type_id is None:
        return None
    content_type = content_types(using).get_for_id(type_id)
    return Participant(f"{content_type.app_label}.{content_type.model}", key)


def local(moment: datetime) -> datetime:
    """Return an aware moment as the project keeps times."""
    return moment if settings.USE_TZ else timezone.make_naive(moment)


def aware(moment: datetime) -> datetime:
    """Return a moment that the project keeps as an aware one."""
    return timezone.make_aware(moment) if moment.tzinfo is None else moment


def totals(usages: Iterable[Usage]) -> dict[str, int]:
    """Return the token columns; a sum that no column holds becomes the largest that one does."""
    found = list(usages)
    sums = {name: sum([getattr(usage, name) for usage in found]) for name in TOTALS}
    return {name: max(0, min(number, MAX_INTEGER)) for name, number in sums.items()}


def usages(turn: Turn) -> list[Usage]:
    """Return what the steps of a turn took."""
    return [step.usage for step in turn.steps]


def conversation_row(
    heading: Heading, using: str, *, moment: datetime, opened: bool
) -> dict[str, Any]:
    """Return the row of a conversation that has no turn yet."""
    return {
        "id": heading.id,
        **participant_columns(heading.participant, using),
        "agent": heading.agent,
        "title": heading.title,
        "title_source": heading.title_source,
        "opened_at": moment if opened else None,
        "last_activity": moment,
        "next_position": 0,
        "turn_count": 0,
        "reservation": "",
        "reserved_since": 0,
        "reserved_until": 0,
        "reserved_key": "",
        "journalled": False,
        "paused_position": None,
        "undecided_count": 0,
        **dict.fromkeys(TOTALS, 0),
        "metadata": "{}",
    }


def leading_row(conversation_id: str, position: int, message: Message, moment: datetime) -> Any:
    """Return the row of a message that leads a conversation."""
    return {
        **said_columns(conversation_id, message),
        **UNSAID,
        **UNANSWERED,
        "position": position,
        "turn_id": "",
        "role": message.role,
        "agent": "",
        "created_at": moment,
        "finished_at": moment,
    }


def said_columns(conversation_id: str, message: Message) -> dict[str, Any]:
    """Return the columns of a row that a message fills which is no agent's."""
    content = readable(message.text)
    return {
        "conversation_id": conversation_id,
        "content": content,
        "parts": codec.encode_parts(set_aside(conversation_id, message.content), content),
    }


def turn_rows(
    heading: Heading,
    turn: Turn,
    reservation: Reservation,
    using: str,
    *,
    begun: datetime,
    ended: datetime,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """
    Return what the two rows of a turn do not hold in any turn.

    Their positions are given when they are written.
    """
    once = reservation.once
    both = {"turn_id": reservation.turn_id, "agent": heading.agent}
    user = {
        **said_columns(heading.id, turn.user),
        **participant_columns(heading.participant, using),
        **both,
        "idempotency_key": once.key if once else None,
        "fingerprint": once.fingerprint if once else "",
        "created_at": begun,
        "finished_at": begun,
    }
    assistant = {
        **answer_columns(turn),
        **both,
        "conversation_id": heading.id,
        "created_at": ended,
        "finished_at": ended,
    }
    return user, assistant


def answer_columns(turn: Turn) -> dict[str, Any]:
    """Return the columns of an assistant's row that a turn fills."""
    last = turn.steps[-1] if turn.steps else None
    error = turn.error
    content = readable(turn.text)
    return {
        "content": content,
        "steps": codec.encode_steps(turn.steps, content),
        "replay": encode_replay(without_replay(turn).steps),
        "meta": codec.encode({"error": error.model_dump(exclude_defaults=True)} if error else {}),
        "status": turn.status,
        "model": readable(last.model)[:255] if last else "",
        "provider": readable(last.provider)[:255] if last else "",
        "finish_reason": last.finish_reason if last else "",
        "error_code": error_code(turn),
        **totals(usages(turn)),
    }


def encode_replay(steps: Sequence[Step]) -> str:
    """Return the replay blocks of steps, an entry each; nothing where none has any."""
    if all(step.replay is None for step in steps):
        return ""
    return codec.encode([step.replay and step.replay.model_dump() for step in steps])


def with_replay(turn: Turn, text: str) -> Turn:
    """Return a turn with the replay blocks on its steps that ``encode_replay`` wrote."""
    if not text:
        return turn
    steps = tuple(
        step.model_copy(update={"replay": found and Replay.model_validate(found, extra="ignore")})
        for step, found in zip(turn.steps, json.loads(text), strict=True)
    )
    return turn.model_copy(update={"steps": steps})


def error_code(turn: Turn) -> str:
    return readable(turn.error.code)[:255] if turn.error else ""


def window_messages(rows: Iterable[Row], conversation_id: str, using: str) -> tuple[Message, ...]:
    """
    Return model-facing messages of ``WINDOW`` and ``LED`` rows, in no order, oldest first.

    All JSON is decoded and validated at once, and files are read at once, where
    there are any. Raises ``UnsupportedFormat``.
    """
    in_order = sorted(rows)
    codec.check_format(max([row[2] for row in in_order], default=codec.FORMAT))
    answered: list[codec.Written] = []
    said: list[codec.Written] = []
    for position, _, _, content, written in in_order:
        if position % 2 and position > 0:
            answered.append((written, content))
        elif written != codec.TEXT_ALONE:
            said.append((written, content))
    turns = iter(codec.decode_rounds(answered))
    parts = iter(with_bytes(using, conversation_id, codec.decode_parts(said)) if said else ())
    messages: list[Message] = []
    for position, status, _, content, written in in_order:
        if position % 2 and position > 0:
            messages += answers(next(turns), interrupted=status == "failed")
        else:
            shown = (plain_text(content),) if written == codec.TEXT_ALONE else next(parts)
            role = status if position < 0 else "user"
            messages.append(
                trusted_message(role=role, content=shown, tool_calls=(), tool_call_id=None)
            )
    return tuple(messages)


def turn(said: Row, answered: Row, conversation_id: str, using: str) -> Turn:
    """Return the turn of two ``TURN`` rows, with its files. Raises ``UnsupportedFormat``."""
    codec.check_format(max(said[3], answered[3]))
    parts = codec.decode_parts([(said[5], said[4])])
    (content,) = with_bytes(using, conversation_id, parts)
    (steps,) = codec.decode_steps([(answered[6], answered[4])])
    error = json.loads(answered[7]).get("error")
    return Turn(
        user=Message("user", content),
        steps=steps,
        status=answered[2],
        error=TurnError.model_validate(error, extra="ignore") if error else None,
    )


def stored_messages(rows: Sequence[Row], using: str) -> list[StoredMessage]:
    """Return ``PAGE`` rows as values. Raises ``UnsupportedFormat``."""
    codec.check_format(max([row[9] for row in rows], default=codec.FORMAT))
    all_parts = codec.decode_parts((row[5], row[3]) for row in rows)
    all_steps = codec.decode_steps((row[6], row[3]) for row in rows)
    speakers = {(row[11], row[12]) for row in rows}
    participants = {speaker: participant_value(*speaker, using) for speaker in speakers}
    return [
        _stored(
            id=str(row[0]),
            position=row[1],
            role=row[2],
            content=row[3],
            created_at=aware(row[4]),
            parts=parts,
            steps=steps,
            meta={} if row[7] == "{}" else json.loads(row[7]),
            status=row[8],
            agent=row[10],
            participant=participants[row[11:13]],
            usage=_usage_of(row[13:]),
        )
        for row, parts, steps in zip(rows, all_parts, all_steps, strict=True)
    ]


def _usage_of(tokens: Row) -> Usage:
    """Return what ``TOTALS`` columns say."""
    if not any(tokens):
        return NO_USAGE
    input_tokens, output_tokens, cached_tokens, reasoning_tokens = tokens
    return _usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=cached_tokens,
        reasoning_tokens=reasoning_tokens,
    )


CONVERSATION = (
    "id",
    "participant_type_id",
    "participant_key",
    "agent",
    "title",
    "title_source",
    "opened_at",
    "last_activity",
    "turn_count",
    *TOTALS,
)


def stored_conversation(row: Row, using: str) -> StoredConversation:
    """Return a ``CONVERSATION`` row as a value."""
    return StoredConversation(
        id=row[0],
        participant=participant_value(row[1], row[2], using),
        agent=row[3],
        title=row[4],
        title_source=row[5],
        opened_at=aware(row[6]),
        last_activity=aware(row[7]),
        turns=row[8],
        usage=_usage_of(row[9:]),
    )
