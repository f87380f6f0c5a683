"""Small files of each kind that a prompt takes, and of some that it does not."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from zipfile import ZipFile


def _chunk(name: bytes, data: bytes) -> bytes:
    checked = name + data
    return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))


def _pdf(*objects: bytes) -> bytes:
    written, table = b"%PDF-1.4\n", b"0000000000 65535 f \n"
    for number, content in enumerate(objects, 1):
        table += b"%010d 00000 n \n" % len(written)
        written += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    size = len(objects) + 1
    end = b"xref\n0 %d\n%strailer\n<</Root 1 0 R/Size %d>>\n" % (size, table, size)
    return written + end + b"startxref\n%d\n%%%%EOF\n" % len(written)


def _zip(*members: str) -> bytes:
    written = BytesIO()
    with ZipFile(written, "w") as packed:
        for member in members:
            packed.writestr(member, "<x/>")
    return written.getvalue()


PNG = (
    b"\x89PNG\r\n\x1a\n"
    + _chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    + _chunk(b"IDAT", zlib.compress(b"\0\0"))
    + _chunk(b"IEND", b"")
)
JPEG = bytes.fromhex("ffd8ffe000104a46494600010100000100010000ffd9")
GIF = b"GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\1\0\1\0\0\2\2D\1\0;"
WEBP = b"RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0/\0\0\0\x10\x07\x10\x11\x11\x88\x88\xfe\x07\0"

PDF = _pdf(
    b"<</Type/Catalog/Pages 2 0 R>>",
    b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
    b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>",
)

DOCX = _zip("[Content_Types].xml", "word/document.xml")
XLSX = _zip("[Content_Types].xml", "xl/workbook.xml")
PPTX = _zip("[Content_Types].xml", "ppt/presentation.xml")
ZIP = _zip("a.txt")

HTML = b"<!DOCTYPE html><script>alert(1)</script>"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
