"""Reading a conversation back, page by page, newest first."""

from __future__ import annotations

from typing import Any

from agent_memory import conf
from agent_memory.exceptions import InvalidCursor
from agent_memory.messages import Message, Step, TextPart, Turn, TurnError, Usage
from agent_memory.records import Heading, StoredMessage
from agent_memory.testing.contract.base import (
    COACH,
    INVALID_CURSORS,
    INVALID_SIZES,
    ONE,
    TWO,
    Promises,
    plain_turn,
    raises,
    tool_turn,
    walk,
)
from agent_memory.testing.contract.fidelity import odd_turns


class PagePromises(Promises):
    """Pages show all that was said, each message once, and do not move."""

    def page(self, conversation_id: str = ONE, **kwargs: Any) -> tuple[StoredMessage, ...]:
        return self.store.paginate_conversation_messages(conversation_id, **kwargs).items

    def test_an_unknown_conversation_has_an_empty_page(self) -> None:
        self.append(TWO, "Hello")
        page = self.store.paginate_conversation_messages(ONE)
        assert (page.items, page.next_cursor, len(page)) == ((), None, 0)

    def test_a_turn_is_two_messages_newest_first(self) -> None:
        stored = [
            self.store.append(Heading(ONE, self.owner, COACH), turn)
            for turn in (tool_turn(calls=2), plain_turn("Bye", "See you"))
        ]
        page = self.page()
        assert [message.role for message in page] == ["assistant", "user"] * 2
        assert [message.position for message in page] == [3, 2, 1, 0]
        assert [message.content for message in page] == ["See you", "Bye", "Fine.", "Weather?"]
        assert [message.id for message in page] == [
            stored[1].assistant_message_id,
            stored[1].user_message_id,
            stored[0].assistant_message_id,
            stored[0].user_message_id,
        ]
        assert [message.participant for message in page] == [None, self.owner] * 2
        assert {message.agent for message in page} == {COACH}
        assert all(message.created_at.utcoffset() is not None for message in page)

    def test_a_message_shows_its_status_usage_and_error(self) -> None:
        step = Step(items=(TextPart(text="Hi"),), usage=Usage(input_tokens=5, output_tokens=2))
        self.store.append(ONE, Turn(user=Message(), steps=(step, step)))
        failed = Turn(user=Message(), status="failed", error=TurnError(code="Timeout", status=504))
        self.store.append(ONE, failed)
        last, _, first, asked = self.page()
        assert (first.status, last.status) == ("completed", "failed")
        assert first.usage == Usage(input_tokens=10, output_tokens=4)
        assert asked.usage == last.usage == Usage()
        assert last.meta["error"] == {"code": "Timeout", "status": 504}
        assert first.meta == asked.meta == {}

    def test_parts_and_steps_come_back_equal(self) -> None:
        for turn in odd_turns():
            self.store.append(ONE, turn)
            answer, asked = self.page(per_page=2)
            assert asked.parts == turn.user.content
            assert answer.steps == turn.steps
            assert repr((asked.parts, answer.steps)) == repr((turn.user.content, turn.steps))

    def test_tool_calls_and_results_are_flattened_in_order_of_the_steps(self) -> None:
        turn = tool_turn(calls=3)
        self.store.append(ONE, turn)
        answer, asked = self.page()
        assert answer.tool_calls() == turn.tool_calls()
        assert answer.tool_results() == turn.tool_results()
        assert (asked.steps, asked.tool_calls(), asked.tool_results()) == ((), (), ())

    def test_leading_messages_come_last_the_first_of_them_at_the_end(self) -> None:
        leading = (Message("system", "1"), Message("developer", "2"), Message("system", "3"))
        self.store.create(ONE, leading=leading)
        assert [message.content for message in self.page()] == ["3", "2", "1"]
        self.append(ONE, "Hello")
        for size in (1, 2, 3, 4, 5):
            pages = walk(self.store.paginate_conversation_messages, ONE, per_page=size)
            read: list[StoredMessage] = [message for page in pages for message in page]
            assert [message.content for message in read] == ["Hello!", "Hello", "3", "2", "1"]
            assert [message.position for message in read] == [1, 0, -1, -2, -3]
        assert [message.parts for message in read[2:]] == [
            message.content for message in reversed(leading)
        ]

    def test_reading_a_deep_history_by_cursor_gives_each_message_once(self) -> None:
        self.append(ONE, *(f"{number}" for number in range(20)))
        self.append(TWO, "elsewhere")
        wanted = list(reversed(range(40)))
        for size in (1, 3, 7, 10, 39, 40, 1000):
            pages = walk(self.store.paginate_conversation_messages, ONE, per_page=size)
            assert [message.position for page in pages for message in page] == wanted
            assert [len(page) for page in pages[:-1]] == [size] * (len(pages) - 1)
            assert len(pages[-1]) == 40 - size * (len(pages) - 1) > 0
            assert all(len(page.next_cursor or "") <= 64 for page in pages)

    def test_pages_do_not_move_when_messages_are_added(self) -> None:
        self.append(ONE, "1", "2", "3")
        first = self.store.paginate_conversation_messages(ONE, per_page=2)
        before = self.page(per_page=2, cursor=first.next_cursor)
        self.append(ONE, "4", "5")
        assert self.page(per_page=2, cursor=first.next_cursor) == before
        assert [message.content for message in before] == ["2!", "2"]

    def test_a_cursor_that_a_shorter_history_is_read_with_is_followed_by_all_of_it(self) -> None:
        self.append(ONE, "1", "2", "3")
        cursor = self.store.paginate_conversation_messages(ONE, per_page=1).next_cursor
        self.store.clear(ONE)
        self.append(ONE, "anew")
        read = self.page(per_page=3, cursor=cursor)
        assert [message.content for message in read] == ["anew!", "anew"]

    def test_a_page_has_the_usual_size_unless_told(self) -> None:
        usual = conf.setting("MESSAGES_PER_PAGE")
        self.append(ONE, *("Hello" for _ in range(usual // 2 + 1)))
        assert len(self.page()) == usual

    def test_what_is_no_cursor_is_never_page_one(self) -> None:
        self.append(ONE, "1", "2")
        self.store.create(TWO, participant=self.owner)
        self.store.create("three", participant=self.owner)
        listed = self.store.list_conversations(self.owner, per_page=1).next_cursor
        for cursor in (*INVALID_CURSORS, listed):
            for conversation_id in (ONE, "unknown"):
                with raises(InvalidCursor, msg=repr(cursor)):
                    self.page(conversation_id, cursor=cursor)

    def test_a_page_has_1_to_1000_messages(self) -> None:
        self.append(ONE, "Hello")
        for size in INVALID_SIZES:
            with raises(ValueError, msg=repr(size)):
                self.page(per_page=size)
        assert len(self.page(per_page=1)) == 1
        assert len(self.page(per_page=1000)) == 2

    def test_what_a_caller_does_to_a_page_changes_nothing_stored(self) -> None:
        given = tool_turn()
        self.store.append(ONE, given)
        answer, _ = before = self.page()
        answer.meta["seen"] = True
        answer.tool_calls()[0].arguments.clear()
        assert self.page() != before
        assert self.page()[0].tool_calls() == tool_turn().tool_calls()
        assert self.page()[0].meta == {}
