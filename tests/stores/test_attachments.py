"""Files apart from their bytes and with them again, whatever store keeps those."""

from __future__ import annotations

from hashlib import sha256

import pytest

from agent_memory.messages import DocumentPart, ImagePart, Message, RefusalPart, TextPart
from agent_memory.records import StoredAttachment
from agent_memory.stores.attachments import (
    attachment_id,
    digests,
    files_of,
    restored,
    set_aside,
)
from agent_memory.stores.codec import decode_parts, encode_parts, parts_value

ODD = "NUL \0, a lone surrogate \ud800, a noncharacter \uffff and ü"

IMAGE = ImagePart(data=b"\0\xff", media_type=ODD, file_name=ODD, provider_options={ODD: [1.0, 1]})
DOCUMENT = DocumentPart(data=b"")
LINK = ImagePart(url="https://example.com/a.png")
PARTS = (TextPart(text=ODD), IMAGE, LINK, RefusalPart(text="no"), DOCUMENT, IMAGE)


def test_parts_come_back_with_the_bytes_that_were_set_aside():
    aside = set_aside("c", PARTS)
    assert [part.type for part in aside] == [
        *("text", "attachment", "image", "refusal", "attachment", "attachment")
    ]
    contents = {digest: part.data for digest, part in files_of([Message("user", PARTS)]).items()}
    assert [*contents.values()] == [b"\0\xff", b""]
    assert digests([aside]) == {*contents}
    assert repr(restored(aside, contents)) == repr(PARTS)


def test_what_is_set_aside_is_short_text_that_comes_back_equal():
    large = DocumentPart(data=bytes(1_000_000), media_type="text/plain")
    aside = set_aside("c", (*PARTS, large))
    text = encode_parts(aside, "")
    assert len(text) < 2000
    assert decode_parts([(text, "")]) == [aside]
    assert parts_value([each.model_dump() for each in aside]) == aside


def test_an_attachment_is_told_by_its_conversation_and_its_content():
    (one, *_, other) = (part for part in set_aside("c", PARTS) if part.type == "attachment")
    (elsewhere,) = set_aside("d", (IMAGE,))
    assert one == other
    assert one == StoredAttachment(
        kind="image",
        id=attachment_id("c", sha256(b"\0\xff").hexdigest()),
        sha256=sha256(b"\0\xff").hexdigest(),
        size=2,
        media_type=ODD,
        file_name=ODD,
        provider_options={ODD: [1.0, 1]},
    )
    assert isinstance(elsewhere, StoredAttachment)
    assert elsewhere.id != one.id


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (IMAGE, f"[Here stood a file of type image that is gone: {ODD}]"),
        (
            DocumentPart(data=b"a", media_type="text/plain"),
            "[Here stood a file of type document that is gone: text/plain]",
        ),
    ],
)
def test_what_is_gone_is_told_in_words(part, told):
    assert restored(set_aside("c", (part, LINK)), {}) == (TextPart(text=told), LINK)
