"""What some content is: told by its bytes, and of text by its name."""

from __future__ import annotations

import sys
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory import conf
from agent_memory.media_types import OFFICE, fault_of_pdf, media_type_of
from tests.files import DOCX, GIF, HTML, JPEG, PDF, PNG, PPTX, SVG, WEBP, XLSX, ZIP

WITHOUT_PYPDF = [(PDF[:-20], "breaks off"), (b"%PDF-1.7\n", "breaks off")]


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (PNG, "image/png"),
        (JPEG, "image/jpeg"),
        (bytes.fromhex("ffd8ffe1001845786966000049492a00"), "image/jpeg"),
        (bytes.fromhex("ffd8ffdb00430008"), "image/jpeg"),
        (GIF, "image/gif"),
        (GIF.replace(b"89a", b"87a"), "image/gif"),
        (WEBP, "image/webp"),
        (WEBP.replace(b"VP8L", b"VP8X"), "image/webp"),
        (PDF, "application/pdf"),
        (b"\r\n" + PDF, "application/pdf"),
        (b"\xef\xbb\xbf" + PDF, "application/pdf"),
        (b"Hello", "text/plain"),
        ("Grüße ☃ \t\r\n\f\x1b[0m".encode(), "text/plain"),
        (b"\xef\xbb\xbfHello", "text/plain"),
        (b"GIF89a is a format", "text/plain"),
        (b"%PDF is how a PDF begins", "text/plain"),
        (b"BMW is a car maker", "text/plain"),
        (HTML, "text/html"),
        (b"<html></html>", "text/html"),
        (SVG, "image/svg+xml"),
        (b'<?xml version="1.0"?><a/>', "application/xml"),
        (DOCX, next(kind for kind in OFFICE.values() if "word" in kind)),
        (XLSX, next(kind for kind in OFFICE.values() if "spread" in kind)),
        (PPTX, next(kind for kind in OFFICE.values() if "present" in kind)),
        (ZIP, "application/zip"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "image/heif"),
        (b"II*\0" + bytes(20), "image/tiff"),
    ],
)
def test_content_is_told_by_its_bytes(data: bytes, media_type: str) -> None:
    assert media_type_of(data) == media_type


@pytest.mark.parametrize("data", [PNG, JPEG, GIF, WEBP, PDF, DOCX])
@pytest.mark.parametrize("name", ["a.csv", "a.md", "a.json", "a.txt", "a.html", "a.exe"])
def test_a_name_changes_nothing_where_the_bytes_tell(data: bytes, name: str) -> None:
    assert media_type_of(data, name) == media_type_of(data)


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("a.csv", "text/csv"),
        ("A.CSV", "text/csv"),
        ("a.md", "text/markdown"),
        ("a.markdown", "text/markdown"),
        ("a.json", "application/json"),
        ("a.txt", "text/plain"),
        ("a.py", "text/plain"),
        ("a.png", "text/plain"),
        ("a.pdf", "text/plain"),
        ("csv", "text/plain"),
        ("", "text/plain"),
    ],
)
def test_the_name_of_a_text_says_which_kind_it_is(name: str, media_type: str) -> None:
    assert media_type_of(b"a,b\n1,2\n", name) == media_type


def test_markdown_may_begin_with_a_tag_and_other_text_may_not() -> None:
    assert media_type_of(b"<h1>Title</h1>", "README.md") == "text/markdown"
    assert media_type_of(b"<h1>Title</h1>", "README.txt") == "text/html"


@pytest.mark.parametrize(
    "data",
    [
        b"\0\1\2\3",
        b"caf\xe9",
        "UTF-16".encode("utf-16"),
        b"a\0b",
        b"\0\0\0\x0cjP  \r\n\x87\n",
        b"RIFF\x24\0\0\0xxxx" + bytes(20),
        b"\xff\xd8",
    ],
)
def test_what_is_not_known_has_no_type(data: bytes) -> None:
    assert media_type_of(data) == ""


@given(st.binary(max_size=300), st.text(max_size=20))
def test_any_content_has_a_type_or_none(data: bytes, name: str) -> None:
    media_type = media_type_of(data, name)
    assert not media_type or conf.MEDIA_TYPE.fullmatch(media_type)


@given(st.text(alphabet=st.characters(codec="utf-8", categories=["L", "N", "Z"])))
def test_any_text_of_letters_is_text(text: str) -> None:
    assert media_type_of(text.encode()) == "text/plain"


# PDFs.


def a_pdf(password: str | None = None, owner: str = "owner") -> bytes:
    """Return a PDF that opens with this password."""
    pypdf = pytest.importorskip("pypdf", reason="needs pypdf: uv run --extra pdf pytest")
    writer = pypdf.PdfWriter()
    writer.add_blank_page(9, 9)
    if password is not None:
        writer.encrypt(password, owner, algorithm="RC4-128")
    written = BytesIO()
    writer.write(written)
    return written.getvalue()


@pytest.mark.parametrize(("data", "fault"), WITHOUT_PYPDF)
def test_a_pdf_that_breaks_off_is_told_without_pypdf_too(
    data: bytes, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert str(fault_of_pdf(data)).startswith(fault)
    monkeypatch.setitem(sys.modules, "pypdf", None)
    assert str(fault_of_pdf(data)).startswith(fault)
    assert fault_of_pdf(b"%PDF-1.7\nnothing\n%%EOF\n") is None


@pytest.mark.parametrize("password", [None, ""])
def test_a_pdf_that_opens_without_a_password_has_no_fault(password: str | None) -> None:
    assert fault_of_pdf(a_pdf(password)) is None


def test_a_pdf_that_needs_a_password_is_told_from_a_broken_one() -> None:
    whole = a_pdf()
    assert str(fault_of_pdf(a_pdf("secret"))).startswith("needs a password")
    assert str(fault_of_pdf(b"%PDF-1.7\nnothing\n%%EOF\n")).startswith("is broken")
    assert str(fault_of_pdf(whole.replace(b"startxref", b"startx"))).startswith("is broken")


def test_a_pdf_without_pages_has_a_fault() -> None:
    empty = (
        a_pdf().replace(b"/Count 1", b"/Count 0").replace(b"/Kids [ 4 0 R ]", b"/Kids [       ]")
    )
    assert str(fault_of_pdf(empty)).startswith("has no pages")


def test_an_encryption_that_cannot_be_read_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    locked = a_pdf("secret")
    from pypdf import PdfReader
    from pypdf.errors import DependencyError

    def decrypt(*args: object) -> None:
        raise DependencyError("cryptography is required")

    monkeypatch.setattr(PdfReader, "decrypt", decrypt)
    assert fault_of_pdf(locked) is None
