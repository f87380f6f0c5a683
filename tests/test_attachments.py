"""Files in prompts: loaded from anywhere, held to the limits, refused by name."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from io import BytesIO, RawIOBase, StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.files.base import ContentFile, File
from django.core.files.storage import FileSystemStorage
from django.core.files.uploadedfile import (
    InMemoryUploadedFile,
    SimpleUploadedFile,
    TemporaryUploadedFile,
    UploadedFile,
)
from django.db import models
from django.db.models.fields.files import FieldFile
from django.http import HttpRequest
from django.test import RequestFactory, override_settings
from hypothesis import given
from hypothesis import strategies as st

from agent_memory import (
    Agent,
    AnonymousAgent,
    Message,
    RemembersConversations,
    load_file,
    load_image,
    load_pdf,
)
from agent_memory.attachments import MAX_NAME, UNREADABLE, readable_name
from agent_memory.exceptions import TooLarge, UnsupportedAttachment
from agent_memory.media_types import OFFICE
from agent_memory.messages import DocumentPart, ImagePart, TextPart
from agent_memory.records import Once
from agent_memory.stores.inmemory import InMemoryConversationStore
from agent_memory.testing import ScriptedProvider, override_agent_memory
from tests.agents import ask, in_every_way
from tests.files import DOCX, GIF, HTML, JPEG, PDF, PNG, SVG, WEBP


class Coach(RemembersConversations, Agent):
    pass


Upload = Callable[..., UploadedFile]

CHART = ImagePart(data=PNG, media_type="image/png", file_name="chart.png")
REPORT = DocumentPart(data=PDF, media_type="application/pdf", file_name="report.pdf")


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    path = tmp_path / "chart.png"
    path.write_bytes(PNG)
    return path


@pytest.fixture
def uploaded() -> Iterator[Upload]:
    """Upload a file, as Django's own parser hands it to a view."""
    requests: list[HttpRequest] = []

    def upload(name: str, data: bytes, *, in_memory: bool) -> UploadedFile:
        with override_settings(FILE_UPLOAD_MAX_MEMORY_SIZE=10**6 if in_memory else 0):
            request = RequestFactory().post("/", {"file": SimpleUploadedFile(name, data)})
            file = request.FILES["file"]
        requests.append(request)
        assert isinstance(file, InMemoryUploadedFile if in_memory else TemporaryUploadedFile)
        return file

    yield upload
    for request in requests:
        for file in request.FILES.values():
            file.close()


def field_file(folder: Path, name: str | None) -> FieldFile:
    """Return what a model's FileField gives, its storage in a folder."""
    field = models.FileField(storage=FileSystemStorage(folder))
    field.set_attributes_from_name("report")
    return FieldFile(SimpleNamespace(), field, name)  # type: ignore[arg-type]  # no model instance


# Where files come from.


def test_an_image_is_loaded_from_wherever_it_is(chart: Path, uploaded: Upload) -> None:
    assert load_image(chart) == CHART
    assert load_image(str(chart)) == CHART
    assert load_image(PNG, file_name="chart.png") == CHART
    assert load_image(bytearray(PNG), file_name="chart.png") == CHART
    assert load_image(memoryview(PNG), file_name="chart.png") == CHART
    assert load_image(BytesIO(PNG), file_name="chart.png") == CHART
    assert load_image(ContentFile(PNG, "chart.png")) == CHART
    assert load_image(uploaded("chart.png", PNG, in_memory=True)) == CHART
    assert load_image(uploaded("chart.png", PNG, in_memory=False)) == CHART
    assert load_image(field_file(chart.parent, "chart.png")) == CHART
    with chart.open("rb") as file:
        assert load_image(file) == CHART
        assert load_image(File(file)) == CHART
    with open(chart, "rb", buffering=0) as raw:
        assert load_image(raw) == CHART


def test_a_path_may_be_relative(chart: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(chart.parent)
    assert load_image("chart.png") == CHART


@pytest.mark.parametrize(
    ("data", "name", "media_type", "kind"),
    [
        (PNG, "a.png", "image/png", ImagePart),
        (JPEG, "a.jpg", "image/jpeg", ImagePart),
        (GIF, "a.gif", "image/gif", ImagePart),
        (WEBP, "a.webp", "image/webp", ImagePart),
        (PDF, "a.pdf", "application/pdf", DocumentPart),
        (b"Hello", "a.txt", "text/plain", DocumentPart),
        (b"a,b\n", "a.csv", "text/csv", DocumentPart),
        (b"# A", "a.md", "text/markdown", DocumentPart),
        (b"{}", "a.json", "application/json", DocumentPart),
    ],
)
def test_a_file_is_an_image_or_a_document_by_its_content(
    data: bytes, name: str, media_type: str, kind: type
) -> None:
    for given_name in (name, "a.exe" if data[:1] > b"\x7f" else name):
        part = load_file(data, file_name=given_name)
        assert part == kind(data=data, media_type=media_type, file_name=given_name)


def test_a_file_is_loaded_with_options_for_the_provider() -> None:
    options = {"detail": "high"}
    part = load_image(PNG, provider_options=options)
    options["detail"] = "low"
    assert part.provider_options == {"detail": "high"}
    assert load_pdf(PDF, provider_options={"a": 1}).provider_options == {"a": 1}
    assert load_file(b"a", provider_options={"a": 1}).provider_options == {"a": 1}


def test_a_file_that_was_read_before_is_loaded_from_its_start(uploaded: Upload) -> None:
    for file in (BytesIO(PNG), uploaded("a.png", PNG, in_memory=False), ContentFile(PNG)):
        file.read(5)
        assert load_image(file).data == PNG
        assert load_image(file).data == PNG


def test_a_file_that_cannot_seek_is_loaded_from_where_it_stands() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"..." + PNG)
    os.close(writer)
    with open(reader, "rb", buffering=0) as pipe:
        pipe.read(3)
        assert load_image(pipe, file_name="chart.png") == CHART


@pytest.mark.parametrize("in_memory", [True, False])
def test_an_upload_can_be_saved_after_it_was_loaded(
    tmp_path: Path, uploaded: Upload, in_memory: bool
) -> None:
    upload = uploaded("report.pdf", PDF, in_memory=in_memory)
    assert load_pdf(upload) == REPORT
    assert not upload.closed
    saved = FileSystemStorage(tmp_path).save("report.pdf", upload)
    assert (tmp_path / saved).read_bytes() == PDF


def test_a_field_is_left_open_or_closed_as_it_was(chart: Path) -> None:
    field = field_file(chart.parent, "chart.png")
    load_image(field)
    assert field.closed
    with field.open():
        field.read(3)
        assert load_image(field) == CHART
        assert not field.closed
    assert load_image(field) == CHART


def test_a_file_that_gives_little_at_a_time_is_loaded_whole() -> None:
    class Slow(BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(1)

    assert load_image(Slow(PNG)).data == PNG


# What is refused, and by which name.


@pytest.mark.parametrize("load", [load_image, load_pdf, load_file])
def test_what_is_not_there_is_refused_by_the_names_python_has(load: Any, tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"no such file; text is taken as a path.*gone\.png"
    ):
        load("gone.png")
    with pytest.raises(FileNotFoundError, match="no such file"):
        load("")
    with pytest.raises(FileNotFoundError, match="no such file"):
        load(field_file(tmp_path, "gone.png"))
    with pytest.raises(IsADirectoryError, match="pass one of its files"):
        load(tmp_path)
    with pytest.raises(IsADirectoryError, match="pass one of its files"):
        load(field_file(tmp_path.parent, tmp_path.name))
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="no such file"):
        load(tmp_path / "file" / "chart.png")


class Broken(RawIOBase):
    """A file that cannot be read."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def read(self, size: int = -1) -> bytes:
        raise self.error


def test_a_file_that_may_not_be_read_says_what_to_change() -> None:
    with pytest.raises(PermissionError, match="change its permissions"):
        load_file(Broken(PermissionError(13, "Permission denied")))
    with pytest.raises(TimeoutError, match="slow disk"):
        load_file(Broken(TimeoutError(110, "slow disk")))


def test_content_that_is_passed_as_text_is_told_to_be_bytes() -> None:
    for text in ("iVBORw0KGgo" * 1000, "Hello\n" * 2000):
        with pytest.raises(
            OSError, match=r"too long for a path; .*content is passed as bytes"
        ) as e:
            load_file(text)
        assert len(str(e.value)) < 1000
    for text in ("a\0b", "\ud800"):
        with pytest.raises(UnsupportedAttachment, match=r"no path; .*content is passed as bytes"):
            load_file(text)


@pytest.mark.parametrize(
    "address",
    ["https://example.com/a.png", "HTTP://a.b/c", "s3://bucket/a", "data:image/png;base64,iVBO"],
)
def test_an_address_is_not_fetched(address: str, network_attempts: list[str]) -> None:
    with pytest.raises(UnsupportedAttachment, match=r"none is fetched here.*ImagePart\(url="):
        load_image(address)
    assert network_attempts == []


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.png").touch()
    empty: list[Any] = [tmp_path / "empty.png", b"", memoryview(b""), BytesIO(), ContentFile(b"")]
    for source in empty:
        with pytest.raises(UnsupportedAttachment, match="is empty"):
            load_file(source)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnsupportedAttachment, match="a device or a pipe"):
        load_file(tmp_path / "pipe")
    with pytest.raises(UnsupportedAttachment, match="a device or a pipe"):
        load_file("/dev/zero")


def test_a_closed_file_is_refused(chart: Path, uploaded: Upload) -> None:
    with chart.open("rb") as file:
        pass
    temporary = uploaded("setup.py", b"a", in_memory=False)
    temporary.close()
    closed = BytesIO(PNG)
    closed.close()
    for source in (file, closed, File(file), temporary):
        with pytest.raises(UnsupportedAttachment, match="is closed: open it again"):
            load_file(source)


def test_a_file_that_gives_text_is_refused(chart: Path) -> None:
    chart.write_text("Hello")
    with chart.open() as file:
        for source in (file, StringIO("Hello"), StringIO(""), ContentFile("Hello")):
            with pytest.raises(UnsupportedAttachment, match=r"gives str, not bytes.*'rb'"):
                load_file(source)


def test_a_file_that_is_written_is_refused(tmp_path: Path) -> None:
    refused = pytest.raises(UnsupportedAttachment, match="cannot be read: open it with mode 'rb'")
    with (tmp_path / "new.txt").open("wb") as file, refused:
        load_file(file)


def test_a_file_that_has_nothing_yet_is_not_taken_for_a_whole_one() -> None:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    with open(reader, "rb", buffering=0) as pipe, open(writer, "wb", buffering=0) as end:
        end.write(b"Half")
        with pytest.raises(UnsupportedAttachment, match="gives NoneType"):
            load_file(pipe)


@pytest.mark.parametrize("name", [None, ""])
def test_a_field_without_a_file_is_refused(tmp_path: Path, name: str | None) -> None:
    with pytest.raises(UnsupportedAttachment, match="holds no file: test it first"):
        load_image(field_file(tmp_path, name))


@pytest.mark.parametrize("source", [None, 7, 1.5, ["a.png"], {"path": "a.png"}, object(), CHART])
def test_what_is_no_file_is_a_type_error_that_names_the_loader(source: Any) -> None:
    with pytest.raises(
        TypeError, match=r"load_image\(\) takes a path, bytes or a binary file, not"
    ):
        load_image(source)


@pytest.mark.parametrize(
    ("load", "data", "match"),
    [
        (load_image, b"Hello", r"is text/plain, which load_image\(\) does not load; load_file"),
        (load_image, PDF, "is application/pdf, which load_image"),
        (load_pdf, PNG, "is image/png, which load_pdf"),
        (load_pdf, HTML, "is text/html, which load_pdf"),
        (load_image, b"\0\1\2", "of no known type; text has to be UTF-8"),
        (load_file, "Grüße".encode("latin-1"), "of no known type; text has to be UTF-8"),
        (load_file, "Hello".encode("utf-16"), "of no known type; text has to be UTF-8"),
        (load_image, SVG, r"is image/svg\+xml, and .*MEDIA_TYPES'\] has image/png, .*convert"),
        (load_file, HTML, "is text/html, and .*convert the file, or allow its type"),
        (load_file, DOCX, "wordprocessingml.document, and .*convert"),
        (load_image, b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "is image/heif, and .*convert"),
        (load_pdf, PDF[:-10], "is a PDF that breaks off: save or upload it again"),
        (load_file, PDF[:-10], "is a PDF that breaks off"),
    ],
)
def test_what_is_not_what_it_is_said_to_be_is_refused(load: Any, data: bytes, match: str) -> None:
    for name in ("", "a.png", "a.pdf", "a.txt"):
        with pytest.raises(UnsupportedAttachment, match=match) as error:
            load(data, file_name=name)
        assert str(error.value).startswith(f"The file {name!r} is" if name else "The file is")
        assert isinstance(error.value, ValueError)


def test_a_project_may_allow_other_types() -> None:
    kinds = {"image/svg+xml", *OFFICE.values()}
    with override_agent_memory(ATTACHMENTS={"MEDIA_TYPES": kinds}):
        assert load_image(SVG).media_type == "image/svg+xml"
        assert load_file(DOCX).media_type in kinds
        with pytest.raises(UnsupportedAttachment, match="image/png, and"):
            load_image(PNG)


# Limits.


class Counting(BytesIO):
    """Counts what is read of it."""

    count = 0

    def read(self, size: int | None = -1) -> bytes:
        piece = super().read(size)
        self.count += len(piece)
        return piece


def test_a_file_over_the_limit_is_refused_and_not_read_beyond_it(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * 200_001)
    told = Counting(b"x" * 200_001)
    told.size = 200_001  # type: ignore[attr-defined]  # as uploads have
    untold = Counting(b"x" * 10**6)
    field, text = field_file(tmp_path, "a.txt"), b"x" * 200_001
    with override_agent_memory(ATTACHMENTS={"MAX_BYTES": 200_000}):
        for source in (path, field, text, memoryview(text), told, untold):
            with pytest.raises(TooLarge, match=r"more than the 200000 bytes.*raise the limit"):
                load_file(source)
        assert load_file(Counting(b"x" * 200_000)).size == 200_000
    assert (told.count, untold.count) == (0, 200_001)
    assert field.closed


def test_no_limit_is_no_limit() -> None:
    with override_agent_memory(ATTACHMENTS={"MAX_BYTES": None}):
        assert load_file(BytesIO(b"x" * 10_000_001)).size == 10_000_001
    with pytest.raises(TooLarge, match="more than the 10000000 bytes"):
        load_file(BytesIO(b"x" * 10_000_001))


# Names.


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("chart.png", "chart.png"),
        (" ch art .png ", " ch art .png "),
        ("Grüße ☃ \u200d\U0001f600.png", "Grüße ☃ \u200d\U0001f600.png"),
        ("/etc/passwd", "passwd"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\me\\chart.png", "chart.png"),
        ("a/b\\c.png", "c.png"),
        ("folder/", ""),
        (".", ""),
        ("..", ""),
        ("", ""),
        ("a\0b\r\n\t\x7f\x85.png", "a\ufffdb" + "\ufffd" * 5 + ".png"),
        ("gnp\u202egnp.exe", "gnp\ufffdgnp.exe"),
        ("caf\udce9.png", "caf\ufffd.png"),
        ("x" * 300 + ".png", "x" * 251 + ".png"),
        ("x" * 300, "x" * 255),
        ("x." + "y" * 300, "y" * 255),
        ('"; drop.png', '"; drop.png'),
    ],
)
def test_a_name_is_kept_as_far_as_it_can_be_shown(name: str, kept: str) -> None:
    assert readable_name(name) == kept
    assert load_image(PNG, file_name=name).file_name == kept


@given(st.text(alphabet=st.characters(), max_size=400))
def test_any_name_gives_one_that_can_be_shown_and_stored(name: str) -> None:
    kept = readable_name(name)
    assert len(kept) <= MAX_NAME
    assert kept.encode().decode() == kept
    assert not UNREADABLE.search(kept)
    assert not {"/", "\\"} & set(kept)
    assert kept not in (".", "..")
    assert readable_name(kept) == kept


def test_a_name_is_that_of_the_file_or_the_one_that_is_given(chart: Path) -> None:
    weird = chart.parent / os.fsdecode(b"caf\xe9.png")
    weird.write_bytes(PNG)
    assert load_image(weird).file_name == "caf\ufffd.png"
    assert load_image(chart, file_name="other.png").file_name == "other.png"
    assert load_image(chart, file_name="").file_name == ""
    (chart.parent / "2030").mkdir()
    (chart.parent / "2030" / "a.png").write_bytes(PNG)
    assert load_image(field_file(chart.parent, "2030/a.png")).file_name == "a.png"
    with open(os.fsencode(chart), "rb") as file:
        assert load_image(file).file_name == "chart.png"
    with tempfile.TemporaryFile() as nameless:
        nameless.write(PNG)
        assert load_image(nameless).file_name == ""


@pytest.mark.parametrize("name", [7, b"a.png", Path("a.png")])
def test_a_name_that_is_no_text_is_a_type_error(name: Any) -> None:
    with pytest.raises(TypeError):
        load_image(PNG, file_name=name)


@given(st.binary(max_size=200), st.text(alphabet=st.characters(), max_size=20))
def test_any_content_is_loaded_as_it_is_or_refused_by_name(data: bytes, name: str) -> None:
    try:
        part = load_file(data, file_name=name)
    except UnsupportedAttachment:
        return
    assert part.data == data
    assert part.file_name == readable_name(name)
    assert part == type(part).model_validate(part.model_dump())


@pytest.mark.heavy
@given(st.text(alphabet=st.characters(codec="utf-8", categories=["L", "N", "Z"]), min_size=1))
def test_any_text_in_utf_8_is_loaded(text: str) -> None:
    assert load_file(text.encode()).data == text.encode()


# In prompts.


def sent(provider: ScriptedProvider) -> tuple[Any, ...]:
    return provider.requests[-1].messages[-1].content


@in_every_way
def test_attachments_follow_the_text_of_a_prompt(way: str) -> None:
    provider = ScriptedProvider(["ok"] * 3)
    agent = Agent(provider=provider)
    reply = ask(way, agent, "Compare.", attachments=[CHART, REPORT])
    assert sent(provider) == (TextPart(text="Compare."), CHART, REPORT)
    assert reply.turn.user.content == sent(provider)
    ask(way, agent, "Compare.", attachments=(part for part in (REPORT, CHART)))
    assert sent(provider) == (TextPart(text="Compare."), REPORT, CHART)
    ask(way, agent, "Compare.", attachments=None)
    assert sent(provider) == (TextPart(text="Compare."),)


def test_text_and_files_of_a_message_keep_their_order() -> None:
    provider = ScriptedProvider(["ok"] * 2)
    agent = Agent(provider=provider)
    parts = (CHART, TextPart(text="Compare."), REPORT, TextPart(text="Be brief."), CHART)
    message = Message(content=parts)
    agent.prompt(message)
    assert sent(provider) == parts
    agent.prompt(message, attachments=[REPORT])
    assert sent(provider) == (*parts, REPORT)
    assert message.content == parts


def test_a_prompt_may_be_its_attachments_alone() -> None:
    provider = ScriptedProvider(["ok"] * 3)
    agent = Agent(provider=provider)
    agent.prompt("", attachments=[CHART])
    assert sent(provider) == (CHART,)
    agent.prompt(Message(), attachments=[CHART])
    assert sent(provider) == (CHART,)
    agent.prompt(Message(content=[CHART]))
    assert sent(provider) == (CHART,)


def test_addresses_and_ids_of_a_provider_are_sent_as_they_are() -> None:
    provider = ScriptedProvider(["ok"])
    parts = (
        ImagePart(url="https://example.com/a.png"),
        DocumentPart(url="https://example.com/a.pdf", media_type="application/pdf"),
        DocumentPart(file_id="file-1", file_name="a.xyz", media_type="chemical/x-xyz"),
    )
    AnonymousAgent("", provider=provider).prompt("Look.", attachments=parts)
    assert sent(provider) == (TextPart(text="Look."), *parts)


def test_a_follow_up_is_sent_the_attachments_without_their_file(chart: Path) -> None:
    provider = ScriptedProvider(["A chart.", "It rises."])
    coach = Coach(provider=provider, store=InMemoryConversationStore()).for_participant(None)
    coach.prompt("What is this?", attachments=[load_image(chart)])
    chart.unlink()
    coach.prompt("Does it rise?")
    assert provider.requests[-1].messages[0].content == (TextPart(text="What is this?"), CHART)


@in_every_way
@pytest.mark.parametrize(
    ("attachments", "told"),
    [
        ("chart.png", "not str"),
        (b"PNG", "not bytes"),
        (CHART, "not ImagePart"),
        (7, "not int"),
        ({"a": CHART}, "not dict"),
        (["chart.png"], "not of str"),
        ([PNG], "not of bytes"),
        ([Path("chart.png")], "not of PosixPath"),
        ([BytesIO(PNG)], "not of BytesIO"),
        ([CHART, None], "not of NoneType"),
        ([TextPart(text="a")], "not of TextPart"),
        ([[CHART]], "not of list"),
    ],
)
def test_what_is_no_attachment_is_a_type_error_that_names_the_loaders(
    way: str, attachments: Any, told: str
) -> None:
    provider = ScriptedProvider(["never"])
    with pytest.raises(TypeError, match=rf"load_image\(\), load_pdf\(\) and .* {told}\."):
        ask(way, Agent(provider=provider), attachments=attachments)
    assert provider.requests == []


@pytest.mark.parametrize(
    ("part", "error", "match"),
    [
        (ImagePart(data=b"", media_type="image/png"), UnsupportedAttachment, "is empty"),
        (ImagePart(data=PNG), UnsupportedAttachment, "no media_type, such as image/png"),
        (ImagePart(data=SVG, media_type="image/svg+xml"), UnsupportedAttachment, "convert"),
        (ImagePart(data=PDF, media_type="application/pdf"), UnsupportedAttachment, "no image"),
        (DocumentPart(data=PNG, media_type="image/png"), UnsupportedAttachment, "no document"),
        (DocumentPart(data=b"x" * 1001, media_type="text/plain"), TooLarge, "more than the 1000"),
        (ImagePart(url=""), UnsupportedAttachment, "an empty url"),
        (DocumentPart(file_id=""), UnsupportedAttachment, "an empty url or file_id"),
        (ImagePart(url="DATA:image/png;base64,a"), UnsupportedAttachment, "pass it as data"),
    ],
)
def test_a_part_made_by_hand_is_held_to_the_same_limits(
    part: Any, error: type[Exception], match: str
) -> None:
    provider = ScriptedProvider(["never"])
    agent = Agent(provider=provider)
    with override_agent_memory(ATTACHMENTS={"MAX_BYTES": 1000}):
        with pytest.raises(error, match=match):
            agent.prompt("Look.", attachments=[part])
        with pytest.raises(error, match=match):
            agent.prompt(Message(content=[TextPart(text="Look."), part]))
    assert provider.requests == []


def test_a_prompt_takes_so_many_attachments_and_no_more() -> None:
    provider = ScriptedProvider(["ok"] * 2)
    agent = Agent(provider=provider)
    message = Message(content=[CHART])
    with override_agent_memory(ATTACHMENTS={"MAX_COUNT": 2}):
        agent.prompt(message, attachments=[CHART])
        with pytest.raises(TooLarge, match=r"has 3 attachments.*MAX_COUNT'\] allows 2"):
            agent.prompt(message, attachments=[CHART, CHART])
    with override_agent_memory(ATTACHMENTS={"MAX_COUNT": None}):
        agent.prompt("Look.", attachments=[CHART] * 200)
    assert len(provider.requests) == 2


def test_the_bytes_of_attachments_count_for_the_limit_of_a_message() -> None:
    provider = ScriptedProvider(["ok"])
    agent = Agent(provider=provider)
    with override_agent_memory(LIMITS={"message": len(PNG) + 5}):
        agent.prompt("Look.", attachments=[CHART])
        with pytest.raises(TooLarge, match="LIMITS"):
            agent.prompt("Look!!", attachments=[CHART])
    assert len(provider.requests) == 1


def test_the_same_attachments_are_the_same_message_under_an_idempotency_key() -> None:
    def key(*parts: Any) -> Once:
        return Once.of("key", Message(content=(TextPart(text="Look."), *parts)))

    assert key(CHART) == key(load_image(BytesIO(PNG), file_name="chart.png"))
    others = [
        key(),
        key(CHART),
        key(REPORT),
        key(CHART, REPORT),
        key(REPORT, CHART),
        key(CHART.model_copy(update={"data": PNG + b"\0"})),
        key(CHART.model_copy(update={"file_name": "other.png"})),
        key(CHART.model_copy(update={"provider_options": {"detail": "low"}})),
        key(DocumentPart(**CHART.model_dump(exclude={"type"}))),
        key(ImagePart(url="https://example.com/chart.png")),
        key(ImagePart(file_id="https://example.com/chart.png")),
    ]
    assert len({once.fingerprint for once in others}) == len(others)


def test_a_message_sent_again_with_its_attachments_gets_the_stored_answer() -> None:
    provider = ScriptedProvider(["A chart."])
    coach = Coach(provider=provider, store=InMemoryConversationStore(), conversation_id="one")
    asked = {"attachments": [CHART], "idempotency_key": "key"}
    first = coach.prompt("What is this?", **asked)
    again = coach.prompt("What is this?", **asked)
    assert again.turn == first.turn
    assert len(provider.requests) == 1
