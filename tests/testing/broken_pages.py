"""Stores that break one promise of message pages each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agent_memory.exceptions import ConversationDoesNotExist, InvalidCursor
from agent_memory.records import MessagePage, Page, StoredMessage
from agent_memory.stores.cursors import message_cursor
from agent_memory.stores.inmemory import InMemoryConversationStore
from tests.testing.broken import breaks

Store = InMemoryConversationStore


class _ChangesPages(Store):
    def change(self, items: tuple[StoredMessage, ...]) -> tuple[StoredMessage, ...]:
        raise NotImplementedError

    def paginate_conversation_messages(self, conversation_id: str, **kwargs: Any) -> MessagePage:
        page = super().paginate_conversation_messages(conversation_id, **kwargs)
        return Page(tuple(self.change(page.items)), page.next_cursor)


@breaks("test_a_turn_is_two_messages_newest_first")
class PagesTheOldestFirst(_ChangesPages):
    def change(self, items: tuple[StoredMessage, ...]) -> tuple[StoredMessage, ...]:
        return items[::-1]


@breaks("test_leading_messages_come_last_the_first_of_them_at_the_end")
class PagesNoLeadingMessages(_ChangesPages):
    def change(self, items: tuple[StoredMessage, ...]) -> tuple[StoredMessage, ...]:
        return tuple(item for item in items if item.position >= 0)


@breaks("test_a_message_shows_its_status_usage_and_error")
class PagesNoStatus(_ChangesPages):
    def change(self, items: tuple[StoredMessage, ...]) -> tuple[StoredMessage, ...]:
        return tuple(replace(item, status="completed") for item in items)


@breaks("test_parts_and_steps_come_back_equal")
class PagesTextAlone(_ChangesPages):
    def change(self, items: tuple[StoredMessage, ...]) -> tuple[StoredMessage, ...]:
        return tuple(replace(item, parts=(), steps=()) for item in items)


@breaks("test_tool_calls_and_results_are_flattened_in_order_of_the_steps")
class PagesStepsBackwards(_ChangesPages):
    def change(self, items: tuple[StoredMessage, ...]) -> tuple[StoredMessage, ...]:
        return tuple(replace(item, steps=item.steps[::-1]) for item in items)


@breaks("test_a_turn_is_two_messages_newest_first")
class PagesNobody(_ChangesPages):
    def change(self, items: tuple[StoredMessage, ...]) -> tuple[StoredMessage, ...]:
        return tuple(replace(item, participant=None) for item in items)


@breaks("test_an_unknown_conversation_has_an_empty_page")
class RaisesForAnUnknownPage(Store):
    def paginate_conversation_messages(self, conversation_id: str, **kwargs: Any) -> MessagePage:
        page = super().paginate_conversation_messages(conversation_id, **kwargs)
        if conversation_id not in self._transcripts:
            raise ConversationDoesNotExist(conversation_id)
        return page


@breaks("test_reading_a_deep_history_by_cursor_gives_each_message_once")
class PagesOneMessageTwice(Store):
    def paginate_conversation_messages(self, conversation_id: str, **kwargs: Any) -> MessagePage:
        page = super().paginate_conversation_messages(conversation_id, **kwargs)
        if page.next_cursor is None or len(page) == 1:
            return page
        return Page(page.items, str(page.items[-1].position + 1))


@breaks("test_a_cursor_that_a_shorter_history_is_read_with_is_followed_by_all_of_it")
class LosesItsPlaceInAShorterHistory(Store):
    def paginate_conversation_messages(
        self, conversation_id: str, *, cursor: str | None = None, **kwargs: Any
    ) -> MessagePage:
        page = super().paginate_conversation_messages(conversation_id, cursor=cursor, **kwargs)
        kept = self._transcripts.get(conversation_id)
        beyond = kept and cursor is not None and int(cursor) > kept.next_position
        return Page(()) if beyond else page


@breaks("test_pages_do_not_move_when_messages_are_added")
class PagesByOffset(Store):
    def paginate_conversation_messages(
        self, conversation_id: str, *, per_page: int | None = None, cursor: str | None = None
    ) -> MessagePage:
        size = len(super().paginate_conversation_messages(conversation_id, per_page=per_page))
        start = 0
        if cursor is not None:
            if not isinstance(cursor, str) or not cursor.startswith("from"):
                raise InvalidCursor(repr(cursor))
            start = int(cursor[4:])
        kept = self._transcripts.get(conversation_id)
        found = tuple(kept.page(1000, None)) if kept else ()
        more = len(found) > start + size
        return Page(found[start : start + size], f"from{start + size}" if more else None)


@breaks("test_a_page_has_the_usual_size_unless_told")
class PagesAThousand(Store):
    def paginate_conversation_messages(
        self, conversation_id: str, *, per_page: int | None = None, cursor: str | None = None
    ) -> MessagePage:
        size = 1000 if per_page is None else per_page
        return super().paginate_conversation_messages(conversation_id, per_page=size, cursor=cursor)


@breaks("test_a_page_has_1_to_1000_messages")
class PagesOfAnySize(Store):
    def paginate_conversation_messages(
        self, conversation_id: str, *, per_page: Any = None, cursor: str | None = None
    ) -> MessagePage:
        size = None if per_page is None else max(1, min(int(per_page), 1000))
        return super().paginate_conversation_messages(conversation_id, per_page=size, cursor=cursor)


@breaks("test_what_is_no_cursor_is_never_page_one")
class PageOneForABadCursor(Store):
    def paginate_conversation_messages(
        self, conversation_id: str, *, cursor: str | None = None, **kwargs: Any
    ) -> MessagePage:
        try:
            return super().paginate_conversation_messages(conversation_id, cursor=cursor, **kwargs)
        except InvalidCursor:
            return super().paginate_conversation_messages(conversation_id, **kwargs)


@breaks("test_what_is_no_cursor_is_never_page_one")
class TakesNumbersForCursors(Store):
    def paginate_conversation_messages(
        self, conversation_id: str, *, cursor: Any = None, **kwargs: Any
    ) -> MessagePage:
        if isinstance(cursor, int):
            cursor = str(cursor)
        return super().paginate_conversation_messages(conversation_id, cursor=cursor, **kwargs)


@breaks("test_what_a_caller_does_to_a_page_changes_nothing_stored")
class LeaksItsMessages(Store):
    def paginate_conversation_messages(
        self, conversation_id: str, *, cursor: str | None = None, **kwargs: Any
    ) -> MessagePage:
        page = super().paginate_conversation_messages(conversation_id, cursor=cursor, **kwargs)
        kept = self._transcripts.get(conversation_id)
        by_position = {message.position: message for message in kept.messages} if kept else {}
        return Page(tuple(by_position[item.position] for item in page), page.next_cursor)


@breaks("test_reading_a_deep_history_by_cursor_gives_each_message_once")
class EndsWithACursor(Store):
    def paginate_conversation_messages(self, conversation_id: str, **kwargs: Any) -> MessagePage:
        page = super().paginate_conversation_messages(conversation_id, **kwargs)
        return Page(page.items, message_cursor(page.items[-1]) if page.items else None)
