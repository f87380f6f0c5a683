"""Stores that break one promise of conversations, lists and ownership each."""

from __future__ import annotations

from typing import Any

from agent_memory.exceptions import (
    ConversationConflict,
    ConversationDoesNotExist,
    InvalidConversationId,
    InvalidCursor,
)
from agent_memory.messages import Message, Turn, Usage
from agent_memory.records import (
    ConversationPage,
    Heading,
    Page,
    StoredConversation,
    StoredTurn,
)
from agent_memory.stores.inmemory import InMemoryConversationStore
from tests.testing.broken import breaks

Store = InMemoryConversationStore


# Opening.


@breaks("test_an_unknown_conversation_is_none")
class RaisesForTheUnknown(Store):
    def get(self, conversation_id: str) -> StoredConversation | None:
        stored = super().get(conversation_id)
        if stored is None:
            raise ConversationDoesNotExist(conversation_id)
        return stored


@breaks("test_an_invalid_id_names_no_conversation")
class TakesAnyIdToGet(Store):
    def get(self, conversation_id: str) -> StoredConversation | None:
        try:
            return super().get(conversation_id)
        except InvalidConversationId:
            return None


@breaks("test_a_conversation_opened_on_purpose_is_there_without_a_turn")
class HidesWhatHasNoTurn(Store):
    def get(self, conversation_id: str) -> StoredConversation | None:
        stored = super().get(conversation_id)
        return stored if stored is not None and stored.turns else None


@breaks("test_a_conversation_opened_without_an_id_has_a_fresh_one_and_no_title")
class OpensUnderOneId(Store):
    def create(self, conversation_id: str | None = None, **kwargs: Any) -> StoredConversation:
        if conversation_id is None:
            conversation_id = "new"
            self.clear(conversation_id)
        return super().create(conversation_id, **kwargs)


@breaks("test_a_taken_id_is_a_conflict_and_changes_nothing")
class OpensOverATakenId(Store):
    def create(self, conversation_id: str | None = None, **kwargs: Any) -> StoredConversation:
        try:
            return super().create(conversation_id, **kwargs)
        except ConversationConflict as conflict:
            self.clear(conflict.conversation_id)
            return super().create(conversation_id, **kwargs)


@breaks("test_a_leading_message_is_a_system_or_developer_one")
class TakesAnyLeadingMessage(Store):
    def create(
        self, conversation_id: str | None = None, *, leading: Any = (), **kwargs: Any
    ) -> StoredConversation:
        said = [message for message in leading if isinstance(message, Message)]
        fitting = [message for message in said if message.role in ("system", "developer")]
        return super().create(conversation_id, leading=fitting, **kwargs)


# What it tells of itself.


class ChangesAfterAppend(Store):
    """Not broken itself."""

    def change(self, kept: Any, before: StoredConversation | None, heading: Heading) -> None:
        raise NotImplementedError

    def append(self, conversation: Any, turn: Turn, **kwargs: Any) -> StoredTurn:
        heading = Heading.of(conversation)
        before = self.get(heading.id)
        stored = super().append(heading, turn, **kwargs)
        self.change(self._transcripts[heading.id], before, heading)
        return stored


@breaks("test_a_conversation_counts_turns_and_tokens_those_of_titles_too")
class ForgetsTheTokensOfTitles(Store):
    def append(self, conversation: Any, turn: Turn, **kwargs: Any) -> StoredTurn:
        return super().append(
            conversation, turn.model_copy(update={"title_usage": Usage()}), **kwargs
        )


@breaks("test_a_turn_is_activity_and_leaves_the_opening_time")
class TurnsAreNoActivity(ChangesAfterAppend):
    def change(self, kept: Any, before: StoredConversation | None, heading: Heading) -> None:
        kept.last_activity = before.last_activity if before else kept.last_activity


@breaks("test_a_turn_is_activity_and_leaves_the_opening_time")
class TurnsAreNewOpenings(ChangesAfterAppend):
    def change(self, kept: Any, before: StoredConversation | None, heading: Heading) -> None:
        kept.opened_at = kept.last_activity


# Titles.


@breaks("test_a_title_is_taken_while_there_is_none")
class TakesTheLastTitle(ChangesAfterAppend):
    def change(self, kept: Any, before: StoredConversation | None, heading: Heading) -> None:
        if heading.title and kept.title_source != "person":
            kept.title = heading.title


@breaks("test_a_title_that_a_person_gave_is_never_overwritten")
class OverwritesAPersonsTitle(ChangesAfterAppend):
    def change(self, kept: Any, before: StoredConversation | None, heading: Heading) -> None:
        if heading.title and kept.title_source == "person":
            kept.title = heading.title


@breaks("test_an_untitled_conversation_renamed_keeps_its_title")
class RenamesWithoutASource(Store):
    def rename(self, conversation_id: str, title: str) -> None:
        before = self.get(conversation_id)
        super().rename(conversation_id, title)
        assert before is not None
        self._transcripts[conversation_id].title_source = before.title_source

    def append(self, conversation: Any, turn: Turn, **kwargs: Any) -> StoredTurn:
        kept = self._transcripts.get(Heading.of(conversation).id)
        if kept is not None and not kept.title_source:
            kept.title = ""
        return super().append(conversation, turn, **kwargs)


@breaks("test_an_unknown_conversation_has_no_title_to_change")
class RenamesTheUnknown(Store):
    def rename(self, conversation_id: str, title: str) -> None:
        if self.get(conversation_id) is None and conversation_id not in self._transcripts:
            self.create(conversation_id)
        super().rename(conversation_id, title)


@breaks("test_a_title_that_cannot_be_stored_is_refused")
class CutsTitles(Store):
    def rename(self, conversation_id: str, title: str) -> None:
        super().rename(conversation_id, str(title)[:255].strip("\0\ud800"))


@breaks("test_a_title_that_cannot_be_stored_is_refused")
class CutsTitlesAtFirst(Store):
    def create(
        self, conversation_id: str | None = None, *, title: str = "", **kwargs: Any
    ) -> StoredConversation:
        title = "".join(char for char in str(title)[:255] if char not in "\0\ud800")
        return super().create(conversation_id, title=title, **kwargs)


# Lists.


@breaks("test_a_list_holds_the_conversations_of_one_participant_latest_first")
class ListsWhatWasOpenedLast(Store):
    def list_conversations(self, participant: Any, **kwargs: Any) -> ConversationPage:
        page = super().list_conversations(participant, **kwargs)
        items = sorted(page.items, key=lambda stored: stored.opened_at, reverse=True)
        return Page(tuple(items), page.next_cursor)


@breaks("test_a_list_holds_the_conversations_of_one_participant_latest_first")
class ListsNamesakes(Store):
    def list_conversations(self, participant: Any, **kwargs: Any) -> ConversationPage:
        owner = self.participant_of(participant)
        for kept in self._transcripts.values():
            if owner and kept.participant and kept.participant.key == owner.key:
                kept.participant = owner
        return super().list_conversations(participant, **kwargs)


@breaks("test_a_list_may_be_of_one_agent")
class ListsAllAgents(Store):
    def list_conversations(
        self, participant: Any, *, agent: str | None = None, **kwargs: Any
    ) -> ConversationPage:
        return super().list_conversations(participant, **kwargs)


@breaks("test_pages_of_a_list_hold_each_conversation_once")
class ListsByOffset(Store):
    def list_conversations(
        self,
        participant: Any,
        *,
        per_page: int | None = None,
        cursor: str | None = None,
        **kwargs: Any,
    ) -> ConversationPage:
        size = len(super().list_conversations(participant, per_page=per_page, **kwargs))
        start = 0
        if cursor is not None:
            if not isinstance(cursor, str) or not cursor.startswith("from"):
                raise InvalidCursor(repr(cursor))
            start = int(cursor[4:])
        found = super().list_conversations(participant, per_page=1000, **kwargs).items
        more = len(found) > start + size
        return Page(found[start : start + size], f"from{start + size}" if more else None)


@breaks("test_a_list_has_the_usual_page_size_unless_told")
class ListsAThousand(Store):
    def list_conversations(
        self, participant: Any, *, per_page: int | None = None, **kwargs: Any
    ) -> ConversationPage:
        size = 1000 if per_page is None else per_page
        return super().list_conversations(participant, per_page=size, **kwargs)


@breaks("test_a_list_refuses_what_is_no_cursor_or_page_size")
class ListsPageOneForABadCursor(Store):
    def list_conversations(
        self, participant: Any, *, cursor: str | None = None, **kwargs: Any
    ) -> ConversationPage:
        try:
            return super().list_conversations(participant, cursor=cursor, **kwargs)
        except InvalidCursor:
            return super().list_conversations(participant, **kwargs)


# The last one.


@breaks("test_the_last_conversation_is_the_last_used_and_not_the_last_opened")
class TakesTheLastOpened(Store):
    def latest_conversation_id(self, participant: Any, agent: str) -> str | None:
        super().latest_conversation_id(participant, agent)
        speaker = self.participant_of(participant), agent
        ids = [kept.id for kept in self._transcripts.values() if speaker in kept.spoke]
        return ids[-1] if ids else None


@breaks("test_the_last_conversation_is_one_of_this_agent")
class TakesTheLastOfAnyAgent(Store):
    def latest_conversation_id(self, participant: Any, agent: str) -> str | None:
        found = [
            (number, kept.id)
            for kept in self._transcripts.values()
            for (speaker, _), number in kept.spoke.items()
            if speaker == self.participant_of(participant)
        ]
        super().latest_conversation_id(participant, agent)
        return max(found)[1] if found else None


@breaks("test_the_last_conversation_is_where_this_participant_spoke_whoever_owns_it")
class TakesTheLastThatIsOwned(Store):
    def latest_conversation_id(self, participant: Any, agent: str) -> str | None:
        super().latest_conversation_id(participant, agent)
        for stored in self.list_conversations(participant, agent=agent):
            if stored.turns:
                return stored.id
        return None


@breaks("test_a_conversation_without_messages_is_not_the_last_one")
class TakesTheLastWithoutATurn(Store):
    def latest_conversation_id(self, participant: Any, agent: str) -> str | None:
        found = super().latest_conversation_id(participant, agent)
        listed = self.list_conversations(participant, agent=agent).items
        return found or (listed[0].id if listed else None)


@breaks("test_nobody_has_no_last_conversation")
class TakesTheLastOfNobody(Store):
    def latest_conversation_id(self, participant: Any, agent: str) -> str | None:
        if participant is None:
            return None
        return super().latest_conversation_id(participant, agent)
