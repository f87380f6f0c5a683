"""Stores that break one promise of attachments each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from agent_memory.exceptions import AttachmentDoesNotExist
from agent_memory.journals import JournalEntry
from agent_memory.messages import DocumentPart, ImagePart, Message, Turn
from agent_memory.records import (
    MessagePage,
    Reservation,
    StoredAttachment,
    StoredMessage,
    StoredTurn,
    new_id,
)
from agent_memory.stores.attachments import attachment_id, files_of
from agent_memory.stores.inmemory import InMemoryConversationStore
from tests.testing.broken import breaks

Store = InMemoryConversationStore


def without_files(message: Message) -> Message:
    content = [part for part in message.content if not isinstance(part, ImagePart | DocumentPart)]
    return message.model_copy(update={"content": tuple(content)})


def turn_without_files(turn: Turn) -> Turn:
    return turn.model_copy(update={"user": without_files(turn.user)})


# What a model is sent.


class _ChangesFiles(Store):
    def change(self, part: ImagePart | DocumentPart) -> Any:
        raise NotImplementedError

    def load(self, conversation_id: str, **kwargs: Any) -> tuple[Message, ...]:
        return tuple(
            message.model_copy(
                update={
                    "content": tuple(
                        self.change(part) if isinstance(part, ImagePart | DocumentPart) else part
                        for part in message.content
                    )
                }
            )
            for message in super().load(conversation_id, **kwargs)
        )


@breaks("test_files_are_loaded_with_their_bytes_in_the_order_they_were_given")
class LosesTheLastByte(_ChangesFiles):
    def change(self, part: ImagePart | DocumentPart) -> Any:
        return part.model_copy(update={"data": part.data and part.data[:-1]})


@breaks("test_files_are_loaded_with_their_bytes_in_the_order_they_were_given")
class LosesNamesOfFiles(_ChangesFiles):
    def change(self, part: ImagePart | DocumentPart) -> Any:
        return part.model_copy(update={"file_name": ""})


@breaks("test_files_are_loaded_with_their_bytes_in_the_order_they_were_given")
class TakesEmptyFilesForNone(Store):
    def load(self, conversation_id: str, **kwargs: Any) -> tuple[Message, ...]:
        loaded = super().load(conversation_id, **kwargs)
        empty = [m for m in loaded if any(getattr(part, "data", None) == b"" for part in m.content)]
        return tuple(without_files(m) if m in empty else m for m in loaded)


@breaks("test_files_are_loaded_with_their_bytes_in_the_order_they_were_given")
class LoadsFilesLast(Store):
    def load(self, conversation_id: str, **kwargs: Any) -> tuple[Message, ...]:
        return tuple(
            message.model_copy(
                update={"content": tuple(sorted(message.content, key=lambda p: p.type != "text"))}
            )
            for message in super().load(conversation_id, **kwargs)
        )


@breaks("test_leading_messages_have_their_files_in_every_window")
class LeadsWithoutFiles(Store):
    def load(self, conversation_id: str, **kwargs: Any) -> tuple[Message, ...]:
        loaded = super().load(conversation_id, **kwargs)
        return tuple(without_files(m) if m.role == "developer" else m for m in loaded)


# Pages.


class _ChangesParts(Store):
    def change(self, message: StoredMessage, parts: tuple[Any, ...]) -> Iterable[Any]:
        raise NotImplementedError

    def paginate_conversation_messages(self, conversation_id: str, **kwargs: Any) -> MessagePage:
        page = super().paginate_conversation_messages(conversation_id, **kwargs)
        changed = (replace(each, parts=tuple(self.change(each, each.parts))) for each in page)
        return replace(page, items=tuple(changed))


@breaks("test_a_page_tells_of_files_without_their_bytes")
class PagesBytes(_ChangesParts):
    def change(self, message: StoredMessage, parts: tuple[Any, ...]) -> Iterable[Any]:
        return (
            ImagePart(data=b"read", media_type=part.media_type)
            if isinstance(part, StoredAttachment)
            else part
            for part in parts
        )


@breaks("test_a_page_tells_of_files_without_their_bytes")
class PagesTheNameFirstGiven(_ChangesParts):
    def change(self, message: StoredMessage, parts: tuple[Any, ...]) -> Iterable[Any]:
        return (
            part.model_copy(update={"file_name": ""}) if part.type == "attachment" else part
            for part in parts
        )


@breaks("test_a_page_tells_of_files_without_their_bytes")
class PagesNoLinks(_ChangesParts):
    def change(self, message: StoredMessage, parts: tuple[Any, ...]) -> Iterable[Any]:
        return (part for part in parts if not isinstance(part, ImagePart))


@breaks("test_leading_messages_have_their_files_in_every_window")
class PagesLeadingMessagesWithoutFiles(_ChangesParts):
    def change(self, message: StoredMessage, parts: tuple[Any, ...]) -> Iterable[Any]:
        return (part for part in parts if message.position >= 0 or part.type == "text")


@breaks("test_the_same_content_is_one_attachment_of_a_conversation")
class NamesEachFileAnew(_ChangesParts):
    def change(self, message: StoredMessage, parts: tuple[Any, ...]) -> Iterable[Any]:
        return (
            part.model_copy(update={"id": new_id()}) if part.type == "attachment" else part
            for part in parts
        )


# Reading one.


@breaks("test_the_bytes_of_each_file_are_read_by_its_id")
class ReadsTheFirstFile(Store):
    def read_attachment(self, conversation_id: str, attachment_id: str) -> bytes:
        super().read_attachment(conversation_id, attachment_id)
        first = next(iter(files_of(self.load(conversation_id)).values()))
        return first.data or b""


@breaks("test_an_attachment_is_read_in_its_own_conversation_only")
class ReadsFilesOfAnybody(Store):
    def read_attachment(self, conversation_id: str, attachment_id: str) -> bytes:
        for each in (conversation_id, *self._transcripts):
            try:
                return super().read_attachment(each, attachment_id)
            except AttachmentDoesNotExist:
                continue
        raise AttachmentDoesNotExist("nowhere")


@breaks("test_an_attachment_is_read_in_its_own_conversation_only")
class ReadsNothingForAnUnknownId(Store):
    def read_attachment(self, conversation_id: str, attachment_id: str) -> bytes:
        try:
            return super().read_attachment(conversation_id, attachment_id)
        except AttachmentDoesNotExist:
            return b""


@breaks("test_an_attachment_is_read_in_its_own_conversation_only")
class TakesAnyIdForUnknown(Store):
    def read_attachment(self, conversation_id: str, attachment_id: str) -> bytes:
        if conversation_id not in [*self._transcripts]:
            raise AttachmentDoesNotExist("nowhere")
        return super().read_attachment(conversation_id, attachment_id)


# What is kept beside the conversations, and when it goes.


class _KeepsFiles(Store):
    """Keeps bytes apart from the messages, under the id of their conversation and their own."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.kept: dict[tuple[str, str], bytes] = {}

    def keep(self, conversation_id: str, message: Message) -> None:
        for digest, part in files_of([message]).items():
            name = attachment_id(conversation_id, digest)
            self.kept[conversation_id, name] = part.data or b""

    def lose(self, conversation_id: str) -> None:
        self.kept = {key: data for key, data in self.kept.items() if key[0] != conversation_id}

    def append(self, conversation: Any, turn: Turn, **kwargs: Any) -> StoredTurn:
        stored = super().append(conversation, turn, **kwargs)
        self.keep(stored.conversation_id, turn.user)
        return stored

    def clear(self, conversation_id: str) -> None:
        super().clear(conversation_id)
        self.lose(conversation_id)

    def read_attachment(self, conversation_id: str, attachment_id: str) -> bytes:
        try:
            return self.kept[conversation_id, attachment_id]
        except (KeyError, TypeError):
            return super().read_attachment(conversation_id, attachment_id)


@breaks("test_clearing_a_conversation_removes_its_files_and_no_others")
class KeepsFilesOfWhatIsCleared(_KeepsFiles):
    def lose(self, conversation_id: str) -> None:
        pass


@breaks("test_clearing_a_conversation_removes_its_files_and_no_others")
class ClearsFilesOfAll(_KeepsFiles):
    def clear(self, conversation_id: str) -> None:
        super().clear(conversation_id)
        self.kept.clear()

    def read_attachment(self, conversation_id: str, attachment_id: str) -> bytes:
        super().read_attachment(conversation_id, attachment_id)
        if (conversation_id, attachment_id) not in self.kept:
            raise AttachmentDoesNotExist("gone")
        return self.kept[conversation_id, attachment_id]


@breaks("test_a_turn_that_is_given_up_leaves_no_file_and_takes_no_others")
class KeepsFilesOfWhatIsGivenUp(_KeepsFiles):
    def journal(self, reservation: Reservation, entry: JournalEntry, seconds: float) -> bool:
        if entry.user is not None:
            self.keep(reservation.conversation_id, entry.user)
        return super().journal(reservation, entry, seconds)


@breaks("test_a_turn_that_is_given_up_leaves_no_file_and_takes_no_others")
class GivesUpFilesThatOthersUse(_KeepsFiles):
    def release(self, reservation: Reservation) -> None:
        super().release(reservation)
        self.lose(reservation.conversation_id)

    def read_attachment(self, conversation_id: str, attachment_id: str) -> bytes:
        super().read_attachment(conversation_id, attachment_id)
        if (conversation_id, attachment_id) not in self.kept:
            raise AttachmentDoesNotExist("gone")
        return self.kept[conversation_id, attachment_id]


@breaks("test_a_turn_that_is_discarded_takes_the_files_that_no_other_uses")
class KeepsFilesOfWhatIsDiscarded(_KeepsFiles):
    pass


@breaks("test_a_turn_that_is_discarded_takes_the_files_that_no_other_uses")
class DiscardsFilesThatOthersUse(_KeepsFiles):
    def settle(self, conversation: Any, turn: Turn | None, **kwargs: Any) -> StoredTurn | None:
        stored = super().settle(conversation, turn, **kwargs)
        self.lose(kwargs["reservation"].conversation_id)
        return stored

    def read_attachment(self, conversation_id: str, attachment_id: str) -> bytes:
        try:
            return self.kept[conversation_id, attachment_id]
        except KeyError:
            raise AttachmentDoesNotExist("gone") from None


# Turns that do not end at once.


@breaks("test_files_come_back_from_the_journal_of_a_dead_worker")
class JournalsNoFiles(Store):
    def journal(self, reservation: Reservation, entry: JournalEntry, seconds: float) -> bool:
        if entry.user is not None:
            entry = replace(entry, user=without_files(entry.user))
        return super().journal(reservation, entry, seconds)


@breaks("test_files_of_a_turn_that_begins_tools_are_there_once_it_is_appended")
class LosesFilesThatWereJournalled(Store):
    def append(
        self, conversation: Any, turn: Turn, *, reservation: Reservation | None = None
    ) -> StoredTurn:
        if reservation is not None and reservation.journalled:
            turn = turn_without_files(turn)
        return super().append(conversation, turn, reservation=reservation)


@breaks("test_a_turn_under_a_key_is_answered_with_its_files")
class AnswersWithoutFiles(Store):
    def reserve(self, *args: Any, **kwargs: Any) -> Reservation:
        reservation = super().reserve(*args, **kwargs)
        if found := reservation.answered:
            reservation.answered = replace(found, turn=turn_without_files(found.turn))
        return reservation


@breaks("test_a_paused_turn_goes_on_with_its_files")
class ResumesWithoutFiles(Store):
    def reserve(self, *args: Any, **kwargs: Any) -> Reservation:
        reservation = super().reserve(*args, **kwargs)
        if found := reservation.paused:
            reservation.paused = replace(found, turn=turn_without_files(found.turn))
        return reservation
