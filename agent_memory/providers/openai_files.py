"""Files as an API is sent them: by their bytes, their address or the provider's id of them."""

from __future__ import annotations

import mimetypes
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from agent_memory.exceptions import UnsupportedAttachment
from agent_memory.messages import DocumentPart, FilePart, ImagePart, TextPart
from agent_memory.parts import FILE_SOURCES

Takes = Mapping[str, tuple[str, ...]]
"""By which of its fields an API is sent a file, by the type of the part."""


def given_by(part: FilePart) -> str:
    """Return the one field that says what a file is."""
    return next(name for name in FILE_SOURCES if getattr(part, name) is not None)


def source(part: ImagePart | DocumentPart, takes: Takes) -> str:
    """Return by which of its fields to send a file; raises ``UnsupportedAttachment``."""
    given, ways = given_by(part), takes[part.type]
    if given not in ways:
        raise UnsupportedAttachment(
            f"This API takes a part of type {part.type!r} by its {' or '.join(ways)}, not by its "
            f"{given}."
        )
    if given == "data" and not part.media_type:
        raise UnsupportedAttachment(
            f"A part of type {part.type!r} with data needs its media_type, such as image/png; "
            "load_file() finds it."
        )
    return given


def in_words(part: ImagePart | DocumentPart) -> TextPart:
    """Return what stands for a file of the history that an API cannot be sent."""
    name = part.file_name or part.url or part.file_id
    return TextPart(text=f"[Here stood a file of type {part.type} that you cannot see: {name}]")


def address(part: FilePart, way: str) -> str | None:
    """Return the URL of a file that is sent by one: its own, or a ``data:`` URL of its bytes."""
    if way == "url":
        return part.url
    assert part.data is not None
    return f"data:{part.media_type};base64,{b64encode(part.data).decode()}"


def file_name(part: FilePart) -> str:
    """Return a file's name, or one that tells its type."""
    return part.file_name or f"document{mimetypes.guess_extension(part.media_type) or ''}"


def merged(form: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """Return a form with its part's options; raises ``UnsupportedAttachment`` for a key of ours."""
    if taken := sorted(form.keys() & options.keys()):
        raise UnsupportedAttachment(
            f"The provider_options of a part cannot set {', '.join(taken)} of its form "
            f"{form['type']!r}: that is made of the part itself."
        )
    return form | options
