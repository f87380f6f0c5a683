"""Files in requests: each API is sent them in its own form, or they are refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agent_memory.exceptions import UnsupportedAttachment
from agent_memory.messages import (
    DocumentPart,
    ImagePart,
    Message,
    Part,
    RefusalPart,
    TextPart,
    ToolCall,
)
from agent_memory.providers import Provider
from agent_memory.providers.openai_chat import OpenAIChatProvider
from agent_memory.providers.openai_responses import OpenAIResponsesProvider
from tests.providers.asking import (
    TWO_WAYS,
    ask,
    completing,
    completion,
    prompt,
    responding,
    response,
)
from tests.providers.asking import said as said_item
from tests.providers.conftest import BOTH

PNG = {"data": b"\x89PNG\xff\x00", "media_type": "image/png"}
PNG_URL = "data:image/png;base64,iVBOR/8A"
PDF = {"data": b"%PDF-1.7", "media_type": "application/pdf"}
PDF_URL = "data:application/pdf;base64,JVBERi0xLjc="
URL = "https://files.test/a?b=c"

both = pytest.mark.parametrize("kind", BOTH)


def sent(server: Any, provider: Provider, message: Message, way: str = "complete") -> list[Any]:
    """Ask once; return the content of the last message as it was sent."""
    if isinstance(provider, OpenAIChatProvider):
        server.script(completing(way, completion({"role": "assistant", "content": "Yes."})))
    else:
        server.script(responding(way, response(said_item("Yes."))))
    ask(provider, prompt(message), way)
    body = server.bodies[-1]
    content = (body.get("input") or body["messages"])[-1]["content"]
    assert isinstance(content, list)
    return content


@pytest.mark.parametrize(
    ("part", "form"),
    [
        (ImagePart(**PNG), {"type": "input_image", "detail": "auto", "image_url": PNG_URL}),
        (ImagePart(url=URL), {"type": "input_image", "detail": "auto", "image_url": URL}),
        (
            ImagePart(file_id="file-1"),
            {"type": "input_image", "detail": "auto", "file_id": "file-1"},
        ),
        (
            ImagePart(**PNG, provider_options={"detail": "low", "extra": 1}),
            {"type": "input_image", "detail": "low", "extra": 1, "image_url": PNG_URL},
        ),
        (
            DocumentPart(**PDF, file_name="ü.pdf"),
            {"type": "input_file", "filename": "ü.pdf", "file_data": PDF_URL},
        ),
        (
            DocumentPart(**PDF),
            {"type": "input_file", "filename": "document.pdf", "file_data": PDF_URL},
        ),
        (DocumentPart(url=URL), {"type": "input_file", "file_url": URL}),
        (
            DocumentPart(file_id="file-1", provider_options={"detail": "low"}),
            {"type": "input_file", "file_id": "file-1", "detail": "low"},
        ),
        (
            TextPart(text="Hi", provider_options={"cache": "yes"}),
            {"type": "input_text", "text": "Hi", "cache": "yes"},
        ),
    ],
)
def test_the_responses_api_is_sent_parts_in_its_form(server, build, part, form):
    assert sent(server, build(OpenAIResponsesProvider), Message("user", [part])) == [form]


@pytest.mark.parametrize(
    ("part", "form"),
    [
        (ImagePart(**PNG), {"type": "image_url", "image_url": {"url": PNG_URL}}),
        (ImagePart(url=URL), {"type": "image_url", "image_url": {"url": URL}}),
        (
            ImagePart(**PNG, provider_options={"detail": "low", "extra": 1}),
            {"type": "image_url", "image_url": {"url": PNG_URL, "detail": "low"}, "extra": 1},
        ),
        (
            DocumentPart(**PDF, file_name="ü.pdf"),
            {"type": "file", "file": {"filename": "ü.pdf", "file_data": PDF_URL}},
        ),
        (
            DocumentPart(**PDF),
            {"type": "file", "file": {"filename": "document.pdf", "file_data": PDF_URL}},
        ),
        (DocumentPart(file_id="file-1"), {"type": "file", "file": {"file_id": "file-1"}}),
        (
            TextPart(text="Hi", provider_options={"cache": "yes"}),
            {"type": "text", "text": "Hi", "cache": "yes"},
        ),
    ],
)
def test_chat_completions_is_sent_parts_in_its_form(server, build, part, form):
    assert sent(server, build(OpenAIChatProvider), Message("user", [part])) == [form]


@both
@pytest.mark.parametrize("way", TWO_WAYS)
def test_text_and_files_stay_in_their_order(server, build, kind, way):
    parts = [TextPart(text="a"), ImagePart(**PNG), TextPart(text=""), DocumentPart(**PDF)]
    content = sent(server, build(kind), Message("user", parts), way)
    assert [form["type"].removeprefix("input_") for form in content] in (
        ["text", "image", "text", "file"],
        ["text", "image_url", "text", "file"],
    )
    assert [form.get("text") for form in content] == ["a", None, "", None]


Refuse = Callable[..., str]


@pytest.fixture(params=TWO_WAYS)
def refused(server, build, request) -> Refuse:
    """Return what a request is refused with, before anything is sent."""

    def refused(kind: type[Provider], *messages: Message) -> str:
        with pytest.raises(UnsupportedAttachment) as raised:
            ask(build(kind), prompt("Hello", *messages), request.param)
        assert server.total == 0
        return str(raised.value)

    return refused


@both
@pytest.mark.parametrize("role", ["system", "developer", "assistant", "tool"])
def test_files_are_a_users(refused, kind, role):
    part = DocumentPart(**PDF)
    call = Message("assistant", "", tool_calls=(ToolCall(id="call_1", name="f"),))
    text = refused(kind, call, Message(role, [TextPart(text="See:"), part], tool_call_id="call_1"))
    assert text == (
        f"{kind.__name__} has no form for a part of type {part.type!r} in a message of role "
        f"{role!r}."
    )


@both
def test_a_refusal_is_an_assistants(refused, kind):
    assert "'refusal'" in refused(kind, Message("user", [RefusalPart(text="No.")]))


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (DocumentPart(url=URL), "'document' by its data or file_id, not by its url"),
        (ImagePart(file_id="file-1"), "'image' by its data or url, not by its file_id"),
    ],
)
def test_what_chat_completions_has_no_form_for_is_named_with_what_it_takes(refused, part, told):
    assert told in refused(OpenAIChatProvider, Message("user", [part]))


@both
@pytest.mark.parametrize(
    ("part", "told"),
    [
        (ImagePart(data=b"x"), "needs its media_type"),
        (
            DocumentPart(**PDF, provider_options={"type": "x", "b": 1}),
            "provider_options of a part cannot set type",
        ),
        (
            TextPart(text="Hi", provider_options={"text": "x", "type": "y"}),
            "provider_options of a part cannot set text, type",
        ),
    ],
)
def test_a_part_that_cannot_be_sent_is_refused_by_name(
    refused, kind: type[Provider], part: Part, told
):
    assert told in refused(kind, Message("user", [part]))
