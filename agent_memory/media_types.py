"""What some content is, told by its bytes; a name only says which kind of text."""

from __future__ import annotations

import re
from importlib import import_module
from io import BytesIO
from os.path import splitext

IMAGE = "image/"
PDF = "application/pdf"
TEXT = "text/plain"

PDF_BEGINS = re.compile(rb"(?:\xef\xbb\xbf)?\s{,99}%PDF-\d")
BINARY = re.compile(rb"[\0-\x08\x0b\x0e-\x1a\x1c-\x1f]")
SIGNATURES = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
}
TEXTS = {
    ".csv": "text/csv",
    ".json": "application/json",
    ".markdown": "text/markdown",
    ".md": "text/markdown",
}
MARKUP = ("text/html", "image/svg+xml", "application/xml")
OFFICE = {
    b"word/document.xml": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    b"xl/workbook.xml": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    b"ppt/presentation.xml": (
        "application/vnd.openxmlformats-officedocument.presentationml.presentation"
    ),
}


def media_type_of(data: bytes, name: str = "") -> str:
    """
    Return the type of some content, or an empty text if it is not known.

    Text is what is UTF-8 without control characters. It has no signature, so the
    suffix of its name says which kind it is, and puremagic whether it is markup.
    """
    if PDF_BEGINS.match(data):
        return PDF
    if _is_text(data):
        return TEXTS.get(splitext(name)[1].lower()) or next(
            (kind for kind in _sniffed(data) if kind in MARKUP), TEXT
        )
    for kind, signature in SIGNATURES.items():
        if signature.match(data):
            return kind
    if data.startswith(b"PK\x03\x04"):
        # Each zip is a Word document to puremagic; the names in one are not compressed.
        members = (kind for member, kind in OFFICE.items() if member in data)
        return next(members, "application/zip")
    best = next(iter(_sniffed(data)), "")
    # JPEG 2000 is JPEG to puremagic, any RIFF may be WebP, and UTF-16 is text.
    return "" if best in SIGNATURES or best.startswith("text/") else best


def fault_of_pdf(data: bytes) -> str | None:
    """
    Return what is wrong with a PDF and what to do, or ``None``.

    Without ``pypdf`` only that it breaks off. One that has a password and opens
    without is no fault.
    """
    if b"%%EOF" not in data:
        return "breaks off: save or upload it again"
    try:
        pypdf = import_module("pypdf")
    except ImportError:
        return None
    try:
        reader = pypdf.PdfReader(BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            return "needs a password: save a copy without one"
        return None if len(reader.pages) else "has no pages: save or print it again"
    except pypdf.errors.DependencyError:
        return None  # Only with cryptography could it be told.
    except Exception:  # What a broken file makes pypdf raise is not limited to its own errors.
        return "is broken: save or print it again"


def _is_text(data: bytes) -> bool:
    if BINARY.search(data):
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _sniffed(data: bytes) -> list[str]:
    """Return what puremagic takes some content for, the most likely first."""
    import puremagic  # Here, since it reads a large table when it is imported.

    try:
        return [match.mime_type for match in puremagic.magic_string(data)]
    except (puremagic.PureError, ValueError):  # Nothing fits, or there is nothing.
        return []
