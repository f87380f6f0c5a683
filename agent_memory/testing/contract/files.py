"""The files of messages are a part of what is said: sent to a model whole and in order."""

from __future__ import annotations

from agent_memory.messages import DocumentPart, ImagePart, Message, Part, TextPart, Turn
from agent_memory.testing.contract.base import ONE, Promises, messages_of, plain_turn

BYTES = bytes(range(256)) * 3
PICTURE = ImagePart(
    data=b"\x89PNG\r\n\x1a\n" + BYTES,
    media_type="image/png",
    file_name="\u00e4 picture.png",
    provider_options={"detail": "low"},
)
REPORT = DocumentPart(data=b"%PDF-1.4\n" + BYTES, media_type="application/pdf")
RENAMED = REPORT.model_copy(update={"file_name": "second.pdf"})
LINK = ImagePart(url="https://example.com/a.png")


def asking(*parts: Part) -> Message:
    return Message("user", (TextPart(text="Look:"), *parts))


def turn_with(*parts: Part) -> Turn:
    return plain_turn().model_copy(update={"user": asking(*parts)})


class FilePromises(Promises):
    """Bytes come back equal where a model needs them."""

    def append_with(self, *parts: Part, conversation_id: str = ONE) -> Turn:
        turn = turn_with(*parts)
        self.store.append(conversation_id, turn)
        return turn

    def test_files_are_loaded_with_their_bytes_in_the_order_they_were_given(self) -> None:
        turns = [
            self.append_with(PICTURE, TextPart(text="and"), LINK, REPORT),
            self.append_with(REPORT, PICTURE, RENAMED),
            self.append_with(DocumentPart(data=b"", media_type="text/plain")),
        ]
        loaded = self.elsewhere.load(ONE)
        assert loaded == messages_of(turns)
        assert self.elsewhere.load(ONE, keep_last_turns=1) == turns[-1].messages
