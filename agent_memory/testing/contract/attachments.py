"""The files of messages: read back without their bytes, stored once, gone with the last user."""

from __future__ import annotations

from agent_memory.exceptions import AttachmentDoesNotExist, InvalidConversationId
from agent_memory.journals import JournalEntry
from agent_memory.messages import Message, Step, TextPart, ToolCall, ToolResult, Turn
from agent_memory.records import Heading, Once, Reservation, StoredAttachment
from agent_memory.testing.contract.base import COACH, INVALID_IDS, ONE, TWO, raises
from agent_memory.testing.contract.files import (
    LINK,
    PICTURE,
    RENAMED,
    REPORT,
    FilePromises,
    asking,
    turn_with,
)
from agent_memory.testing.contract.pausing import Pausing, asking_turn

CALLS = Step(items=(ToolCall(id="call-1", name="act"),), finish_reason="tool_calls")


class AttachmentPromises(FilePromises, Pausing):
    """Files are read by who needs them, stored once, and left where nobody looks."""

    def attached(self, conversation_id: str = ONE) -> tuple[StoredAttachment, ...]:
        """Return the attachments of the last message that a person wrote."""
        page = self.store.paginate_conversation_messages(conversation_id)
        return next(message for message in page if message.role == "user").attachments

    def begin_tools(self, turn: Turn, once: Once | None = None) -> Reservation:
        """Reserve for a turn, and note that its tools begin and what the first returned."""
        reservation = self.store.reserve(ONE, create=True, once=once)
        entry = JournalEntry(0, -1, CALLS, Heading(ONE, self.owner, COACH), turn.user)
        assert self.store.journal(reservation, entry, 60)
        assert self.store.journal(reservation, JournalEntry(0, 0, ToolResult(value="done")), 60)
        return reservation

    def test_leading_messages_have_their_files_in_every_window(self) -> None:
        leading = Message("developer", (TextPart(text="The house style:"), PICTURE))
        self.store.create(ONE, leading=[leading])
        self.append(ONE, "1", "2")
        assert self.store.load(ONE, keep_last_turns=1)[0] == leading
        *_, last = self.store.paginate_conversation_messages(ONE)
        (attachment,) = last.attachments
        assert self.store.read_attachment(ONE, attachment.id) == PICTURE.data

    def test_a_page_tells_of_files_without_their_bytes(self) -> None:
        self.append_with(LINK, PICTURE, RENAMED)
        answer, asked = self.store.paginate_conversation_messages(ONE)
        text, link, *stored = asked.parts
        assert (text, link) == (TextPart(text="Look:"), LINK)
        assert tuple(stored) == asked.attachments
        assert answer.attachments == ()
        picture, report = asked.attachments
        assert (picture.kind, report.kind) == ("image", "document")
        assert (picture.size, report.size) == (PICTURE.size, REPORT.size)
        assert (picture.media_type, report.media_type) == ("image/png", "application/pdf")
        assert (picture.file_name, report.file_name) == (PICTURE.file_name, "second.pdf")
        assert picture.provider_options == {"detail": "low"}

    def test_the_bytes_of_each_file_are_read_by_its_id(self) -> None:
        self.append_with(PICTURE, REPORT, LINK)
        picture, report = self.attached()
        assert self.elsewhere.read_attachment(ONE, picture.id) == PICTURE.data
        assert self.elsewhere.read_attachment(ONE, report.id) == REPORT.data

    def test_the_same_content_is_one_attachment_of_a_conversation(self) -> None:
        self.append_with(REPORT, RENAMED)
        first, second = self.attached()
        assert first.id == second.id
        self.append_with(RENAMED)
        assert {attachment.id for attachment in self.attached()} == {first.id}

    def test_an_attachment_is_read_in_its_own_conversation_only(self) -> None:
        self.append_with(PICTURE)
        self.append_with(PICTURE, conversation_id=TWO)
        (one,), (two,) = self.attached(ONE), self.attached(TWO)
        assert one.id != two.id
        for conversation_id, attachment_id in (
            (ONE, two.id),
            (TWO, one.id),
            (ONE, "unknown"),
            (ONE, ""),
            ("three", one.id),
        ):
            with raises(AttachmentDoesNotExist):
                self.store.read_attachment(conversation_id, attachment_id)
        for invalid in INVALID_IDS:
            with raises(InvalidConversationId, msg=repr(invalid)):
                self.store.read_attachment(invalid, one.id)

    def test_clearing_a_conversation_removes_its_files_and_no_others(self) -> None:
        self.append_with(PICTURE)
        self.append_with(PICTURE, conversation_id=TWO)
        (one,), (two,) = self.attached(ONE), self.attached(TWO)
        self.store.clear(ONE)
        with raises(AttachmentDoesNotExist):
            self.store.read_attachment(ONE, one.id)
        assert self.store.read_attachment(TWO, two.id) == PICTURE.data
        self.append(ONE, "Hello")
        with raises(AttachmentDoesNotExist):
            self.store.read_attachment(ONE, one.id)

    def test_files_come_back_from_the_journal_of_a_dead_worker(self) -> None:
        turn = turn_with(PICTURE, LINK, REPORT)
        self.expire(self.begin_tools(turn))
        found = self.elsewhere.reserve(ONE)
        assert found.buried is not None
        assert found.buried.turn.user == turn.user
        assert self.elsewhere.load(ONE, reservation=found)[0] == turn.user

    def test_files_of_a_turn_that_begins_tools_are_there_once_it_is_appended(self) -> None:
        turn = turn_with(PICTURE).model_copy(update={"steps": (CALLS,)})
        reservation = self.begin_tools(turn)
        self.store.append(Heading(ONE, self.owner, COACH), turn, reservation=reservation)
        assert self.elsewhere.load(ONE)[0] == turn.user

    def test_a_turn_that_is_given_up_leaves_no_file_and_takes_no_others(self) -> None:
        self.append_with(REPORT)
        (report,) = self.attached()
        reservation = self.begin_tools(turn_with(PICTURE, RENAMED))
        self.store.release(reservation)
        assert self.store.read_attachment(ONE, report.id) == REPORT.data
        self.append_with(PICTURE)
        (picture,) = self.attached()
        self.store.clear(ONE)
        self.store.release(self.begin_tools(turn_with(PICTURE)))
        self.append(ONE, "Hello")
        with raises(AttachmentDoesNotExist):
            self.store.read_attachment(ONE, picture.id)

    def test_a_turn_under_a_key_is_answered_with_its_files(self) -> None:
        turn = turn_with(PICTURE, LINK)
        once = Once.of("key", turn.user)
        reservation = self.store.reserve(ONE, create=True, once=once)
        self.store.append(ONE, turn, reservation=reservation)
        answered = self.elsewhere.reserve(ONE, once=once).answered
        assert answered is not None
        assert answered.turn.user == turn.user

    def test_a_paused_turn_goes_on_with_its_files(self) -> None:
        turn = asking_turn(ran=False).model_copy(update={"user": asking(PICTURE, REPORT)})
        self.pause(turn)
        paused = self.elsewhere.reserve(ONE, resume=True).paused
        assert paused is not None
        assert paused.turn == turn

    def test_a_turn_that_is_discarded_takes_the_files_that_no_other_uses(self) -> None:
        self.append_with(REPORT)
        user = asking(PICTURE, RENAMED)
        self.pause(asking_turn(ran=False).model_copy(update={"user": user}))
        picture, report = self.attached()
        assert self.settle(None) is None
        assert self.store.read_attachment(ONE, report.id) == REPORT.data
        with raises(AttachmentDoesNotExist):
            self.store.read_attachment(ONE, picture.id)
