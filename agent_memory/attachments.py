"""
Files as parts of a prompt: read, told by their content, and held to the limits.

Nothing is fetched: a file that the provider is to find itself is
``ImagePart(url=...)`` or ``DocumentPart(file_id=...)``.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from io import UnsupportedOperation
from typing import IO, Any, TypeAlias

from agent_memory import conf
from agent_memory.exceptions import TooLarge, UnsupportedAttachment
from agent_memory.media_types import IMAGE, PDF, fault_of_pdf, media_type_of
from agent_memory.messages import DocumentPart, ImagePart

Source: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview | IO[Any]
"""A path, the content, or a binary file, such as an upload or the file of a model's field."""

MAX_NAME = 255
CHUNK = 1 << 16
UNREADABLE = re.compile("[\0-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
ADDRESS = re.compile(r"data:|[a-z][a-z0-9+.-]+://", re.IGNORECASE)

PATH_OR_CONTENT = "text is taken as a path, content is passed as bytes"
REMEDIES = {
    errno.ENOENT: f"There is no such file; {PATH_OR_CONTENT}",
    errno.ENOTDIR: f"There is no such file; {PATH_OR_CONTENT}",
    errno.ENAMETOOLONG: f"This is too long for a path; {PATH_OR_CONTENT}",
    errno.EISDIR: "This is a directory: pass one of its files",
    errno.EACCES: "This process may not read the file: change its permissions",
}


def load_image(
    source: Source,
    *,
    file_name: str | None = None,
    provider_options: Mapping[str, Any] | None = None,
) -> ImagePart:
    """Return an image as a part of a prompt. See load_file()."""
    part = _load("load_image", IMAGE, source, file_name, provider_options)
    assert isinstance(part, ImagePart)
    return part


def load_pdf(
    source: Source,
    *,
    file_name: str | None = None,
    provider_options: Mapping[str, Any] | None = None,
) -> DocumentPart:
    """Return a PDF as a part of a prompt. See load_file()."""
    part = _load("load_pdf", PDF, source, file_name, provider_options)
    assert isinstance(part, DocumentPart)
    return part


def load_file(
    source: Source,
    *,
    file_name: str | None = None,
    provider_options: Mapping[str, Any] | None = None,
) -> ImagePart | DocumentPart:
    """
    Return a file as a part of a prompt: an image as such, all else as a document.

    Its type is that of its content. ``file_name`` is by default the file's own.
    A file object is read from its start if it can be, and left open; no more
    than ``AGENT_MEMORY["ATTACHMENTS"]["MAX_BYTES"]`` is kept of any.

    Raises ``UnsupportedAttachment``, ``TooLarge``, an ``OSError`` such as
    ``FileNotFoundError``, and ``TypeError`` for what is no file.
    """
    return _load("load_file", "", source, file_name, provider_options)


def check_part(part: ImagePart | DocumentPart) -> None:
    """Raise ``UnsupportedAttachment`` or ``TooLarge`` for what the settings do not allow."""
    told = _told(part.file_name)
    if part.data is None:
        if not (part.url or part.file_id):
            raise UnsupportedAttachment(f"{told} has an empty url or file_id.")
        if part.url and part.url[:5].lower() == "data:":
            raise UnsupportedAttachment(f"{told} has its content in its url: pass it as data.")
        return
    if not part.data:
        raise UnsupportedAttachment(f"{told} is empty.")
    _check_size(told, part.size)
    if not part.media_type:
        raise UnsupportedAttachment(
            f"{told} has data and no media_type, such as image/png; load_file() finds it."
        )
    if part.media_type not in (allowed := conf.media_types()):
        raise UnsupportedAttachment(
            f"{told} is {part.media_type}, and AGENT_MEMORY['ATTACHMENTS']['MEDIA_TYPES'] has "
            f"{', '.join(allowed)}: convert the file, or allow its type."
        )
    if part.media_type.startswith(IMAGE) != isinstance(part, ImagePart):
        raise UnsupportedAttachment(
            f"{told} is {part.media_type}, which is no {part.type}; load_file() tells them apart."
        )


def readable_name(name: str) -> str:
    """
    Return a file's name as it is kept: without folders, at most 255 characters.

    What cannot be shown (control characters, changes of direction, lone
    surrogates) becomes U+FFFD. A name that is cut keeps its suffix.
    """
    name = UNREADABLE.sub("\ufffd", re.split(r"[/\\]", name)[-1])
    if name in (".", ".."):
        return ""
    if len(name) <= MAX_NAME:
        return name
    suffix = os.path.splitext(name)[1][-MAX_NAME:]
    return name[: MAX_NAME - len(suffix)] + suffix


def _load(
    loader: str,
    wanted: str,
    source: Source,
    file_name: str | None,
    provider_options: Mapping[str, Any] | None,
) -> ImagePart | DocumentPart:
    name = readable_name(_name_of(source) if file_name is None else file_name)
    told = _told(name)
    data = _read(loader, source, told)
    if not data:
        raise UnsupportedAttachment(f"{told} is empty.")
    media_type = media_type_of(data, name)
    if not media_type:
        raise UnsupportedAttachment(f"{told} is of no known type; text has to be UTF-8.")
    if not media_type.startswith(wanted):
        raise UnsupportedAttachment(
            f"{told} is {media_type}, which {loader}() does not load; load_file() does, if "
            "AGENT_MEMORY['ATTACHMENTS']['MEDIA_TYPES'] has it."
        )
    kind = ImagePart if media_type.startswith(IMAGE) else DocumentPart
    part = kind(
        data=data,
        media_type=media_type,
        file_name=name,
        provider_options=dict(provider_options or {}),
    )
    check_part(part)
    if media_type == PDF and (fault := fault_of_pdf(data)):
        raise UnsupportedAttachment(f"{told} is a PDF that {fault}.")
    return part


def _name_of(source: Source) -> str:
    path = source if isinstance(source, str | os.PathLike) else getattr(source, "name", None)
    return os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""


def _told(name: str) -> str:
    return f"The file {name!r}" if name else "The file"


def _read(loader: str, source: Source, told: str) -> bytes:
    if isinstance(source, bytes | bytearray | memoryview):
        _check_size(told, memoryview(source).nbytes)
        return bytes(source)
    # In this order: to ask the file of a model's field for its read() opens it.
    if not (
        isinstance(source, str | os.PathLike)
        or hasattr(source, "storage")
        or hasattr(source, "read")
    ):
        raise TypeError(
            f"{loader}() takes a path, bytes or a binary file, not {type(source).__name__}."
        )
    try:
        _check_size(told, _known_size(source, told))
        with _opened(source, told) as file:
            return _read_open(file, told)
    except UnsupportedOperation as error:
        raise UnsupportedAttachment(f"{told} cannot be read: open it with mode 'rb'.") from error
    except OSError as error:
        if error.errno not in REMEDIES:
            raise
        raise OSError(error.errno, REMEDIES[error.errno], _name_of(source)[:MAX_NAME]) from error


def _known_size(source: Any, told: str) -> int | None:
    """Return the size of what tells it before it is read; raises for what is no file."""
    if not isinstance(source, str | os.PathLike):
        if hasattr(source, "storage") and not source.name:
            raise UnsupportedAttachment("The model's field holds no file: test it first.")
        size = getattr(source, "size", None)
        return size if isinstance(size, int) else None
    if isinstance(source, str) and ADDRESS.match(source):
        raise UnsupportedAttachment(
            f"{source[:MAX_NAME]!r} is an address, and none is fetched here: the provider fetches "
            "that of ImagePart(url=...) or DocumentPart(url=...)."
        )
    try:
        found = os.stat(source)
    except ValueError as error:
        raise UnsupportedAttachment(f"This is no path; {PATH_OR_CONTENT}.") from error
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, "", "")
    if not stat.S_ISREG(found.st_mode):
        raise UnsupportedAttachment(f"{told} is a device or a pipe: pass a file.")
    return found.st_size


def _opened(source: Any, told: str) -> AbstractContextManager[Any]:
    """Return a file to read from its start; what was open stays so."""
    if isinstance(source, str | os.PathLike):
        return open(source, "rb")
    if getattr(source, "closed", False):
        if not hasattr(source, "storage"):
            raise UnsupportedAttachment(f"{told} is closed: open it again, or load it earlier.")
        opened: AbstractContextManager[Any] = source.storage.open(source.name, "rb")
        return opened
    with suppress(AttributeError, OSError):
        source.seek(0)
    return nullcontext(source)


def _read_open(file: Any, told: str) -> bytes:
    limit = conf.attachment_limit("MAX_BYTES")
    pieces: list[bytes] = []
    size = 0
    while True:
        piece = file.read(CHUNK if limit is None else min(CHUNK, limit + 1 - size))
        if not isinstance(piece, bytes):
            raise UnsupportedAttachment(
                f"{told} gives {type(piece).__name__}, not bytes: open it with mode 'rb'."
            )
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        size += len(piece)
        _check_size(told, size)


def _check_size(told: str, size: int | None) -> None:
    limit = conf.attachment_limit("MAX_BYTES")
    if size is not None and limit is not None and size > limit:
        raise TooLarge(
            f"{told} has more than the {limit} bytes that "
            "AGENT_MEMORY['ATTACHMENTS']['MAX_BYTES'] allows: make it smaller, or raise the limit."
        )
