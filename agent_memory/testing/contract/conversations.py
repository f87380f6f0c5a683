"""Conversations themselves: opening, naming, listing, and finding the last one."""

from __future__ import annotations

from datetime import datetime

from agent_memory import conf
from agent_memory.exceptions import (
    ConversationConflict,
    ConversationDoesNotExist,
    InvalidConversationId,
    InvalidCursor,
    InvalidParticipant,
)
from agent_memory.messages import Message, Step, TextPart, Turn, Usage
from agent_memory.participants import Participant
from agent_memory.records import Heading, StoredConversation
from agent_memory.testing.contract.base import (
    CLERK,
    COACH,
    INVALID_CURSORS,
    INVALID_IDS,
    INVALID_SIZES,
    ONE,
    TWO,
    Promises,
    messages_of,
    plain_turn,
    raises,
    walk,
)

LEADING = (Message("system", "Be kind."), Message("developer", "Be brief."))
UNSTORABLE_TITLES = ("x" * 256, "a\0b", "a\ud800", 7, None)


def aware(moment: datetime) -> bool:
    return moment.utcoffset() is not None


class ConversationPromises(Promises):
    """A conversation has an owner, a title, counters and a place in lists."""

    def say(
        self,
        conversation_id: str,
        participant: Participant | None = None,
        agent: str = COACH,
        title: str = "",
    ) -> None:
        heading = Heading(conversation_id, participant, agent, title, "draft" if title else "")
        self.store.append(heading, plain_turn())

    def stored(self, conversation_id: str) -> StoredConversation:
        stored = self.store.get(conversation_id)
        assert stored is not None, conversation_id
        return stored

    # Opening.

    def test_an_unknown_conversation_is_none(self) -> None:
        assert self.store.get(ONE) is None
        self.say(ONE)
        self.store.clear(ONE)
        assert self.store.get(ONE) is None

    def test_a_conversation_opened_on_purpose_is_there_without_a_turn(self) -> None:
        made = self.store.create(ONE, participant=self.owner, agent=COACH, title="Plans")
        stored = self.stored(ONE)
        assert made == stored
        assert (stored.id, stored.participant, stored.agent) == (ONE, self.owner, COACH)
        assert (stored.title, stored.title_source) == ("Plans", "person")
        assert (stored.turns, stored.usage) == (0, Usage())
        assert aware(stored.opened_at)
        assert aware(stored.last_activity)
        assert self.store.load(ONE) == ()
        assert [listed.id for listed in self.store.list_conversations(self.owner)] == [ONE]
        self.store.release(self.store.reserve(ONE))
        assert not self.store.append(ONE, plain_turn()).created

    def test_a_conversation_opened_without_an_id_has_a_fresh_one_and_no_title(self) -> None:
        first, second = self.store.create(), self.store.create()
        assert first.id != second.id
        stored = self.stored(first.id)
        assert (stored.participant, stored.title, stored.title_source) == (None, "", "")

    def test_a_taken_id_is_a_conflict_and_changes_nothing(self) -> None:
        self.say(ONE, self.owner, title="Kept")
        self.store.reserve(TWO, create=True)
        before = self.stored(ONE)
        for taken in (ONE, TWO):
            with raises(ConversationConflict) as caught:
                self.store.create(taken, title="Lost", leading=LEADING)
            assert caught.exception.conversation_id == taken
        assert self.stored(ONE) == before
        assert self.store.load(ONE) == plain_turn().messages
        assert self.store.get(TWO) is None

    def test_leading_messages_stay_in_every_window(self) -> None:
        self.store.create(ONE, leading=LEADING)
        assert self.store.load(ONE) == self.store.load(ONE, keep_last_turns=1) == LEADING
        turns = self.append(ONE, "1", "2", "3")
        for keep in (0, 1, 2, 3, 4):
            assert self.store.load(ONE, keep_last_turns=keep) == (
                *LEADING,
                *messages_of(turns[-keep:]),
            )
        self.store.clear(ONE)
        turns = self.append(ONE, "anew")
        assert self.store.load(ONE) == messages_of(turns)

    def test_a_leading_message_is_a_system_or_developer_one(self) -> None:
        for wrong in (Message("user", "Hi"), Message("assistant", "Hi"), "Hi", None):
            with raises(ValueError, msg=repr(wrong)):
                self.store.create(ONE, leading=[*LEADING, wrong])  # type: ignore[list-item]  # wrong
        assert self.store.get(ONE) is None

    def test_an_invalid_id_names_no_conversation(self) -> None:
        for conversation_id in INVALID_IDS:
            for method in (
                self.store.create,
                self.store.get,
                self.store.paginate_conversation_messages,
            ):
                with raises(InvalidConversationId, msg=repr(conversation_id)):
                    method(conversation_id)
            with raises(InvalidConversationId, msg=repr(conversation_id)):
                self.store.rename(conversation_id, "Mine")
            with raises(InvalidConversationId, msg=repr(conversation_id)):
                self.store.conversation_belongs_to(conversation_id, self.owner)

    # What it tells of itself.

    def test_a_conversation_counts_turns_and_tokens_those_of_titles_too(self) -> None:
        step = Step(items=(TextPart(text="Hi"),), usage=Usage(input_tokens=5, cached_tokens=3))
        other = Step(usage=Usage(output_tokens=7, reasoning_tokens=2))
        title = Usage(input_tokens=100, output_tokens=10)
        self.store.append(ONE, Turn(user=Message(), steps=(step, other), title_usage=title))
        self.store.append(ONE, Turn(user=Message(), steps=(step,), status="failed"))
        stored = self.stored(ONE)
        assert stored.turns == 2
        assert stored.usage == Usage(
            input_tokens=110, output_tokens=17, cached_tokens=6, reasoning_tokens=2
        )

    def test_a_turn_is_activity_and_leaves_the_opening_time(self) -> None:
        self.say(ONE)
        before = self.stored(ONE)
        self.say(ONE)
        after = self.stored(ONE)
        assert aware(after.last_activity)
        assert after.opened_at == before.opened_at
        assert after.last_activity > before.last_activity

    # Titles.

    def test_a_title_is_taken_while_there_is_none(self) -> None:
        self.say(ONE)
        self.say(ONE, title="First")
        self.say(ONE, title="Second")
        self.say(ONE)
        stored = self.stored(ONE)
        assert (stored.title, stored.title_source) == ("First", "draft")

    def test_a_title_that_a_person_gave_is_never_overwritten(self) -> None:
        self.say(ONE, title="Draft")
        reservation = self.store.reserve(ONE)
        self.store.rename(ONE, "Person's")
        heading = Heading(ONE, self.owner, COACH, "Late draft", "draft")
        self.store.append(heading, plain_turn(), reservation=reservation)
        self.store.create(TWO, title="Person's")
        self.say(TWO, title="Draft")
        for conversation_id in (ONE, TWO):
            self.say(conversation_id, title="Later draft")
            stored = self.stored(conversation_id)
            assert (stored.title, stored.title_source) == ("Person's", "person")
        self.store.rename(TWO, "Person's second")
        assert self.stored(TWO).title == "Person's second"
        assert self.stored(ONE).title == "Person's"

    def test_an_untitled_conversation_renamed_keeps_its_title(self) -> None:
        self.say(ONE)
        self.store.rename(ONE, "Person's")
        self.say(ONE, title="Draft")
        assert self.stored(ONE).title == "Person's"

    def test_an_unknown_conversation_has_no_title_to_change(self) -> None:
        with raises(ConversationDoesNotExist):
            self.store.rename(ONE, "Mine")
        assert self.store.get(ONE) is None

    def test_a_title_that_cannot_be_stored_is_refused(self) -> None:
        self.say(ONE, title="Kept")
        for title in UNSTORABLE_TITLES:
            with raises(ValueError, msg=repr(title)):
                self.store.rename(ONE, title)  # type: ignore[arg-type]  # wrong
            with raises(ValueError, msg=repr(title)):
                self.store.create(TWO, title=title)  # type: ignore[arg-type]  # wrong
        assert self.stored(ONE).title == "Kept"
        assert self.store.get(TWO) is None

    # Lists.

    def listed(self, participant: Participant | None, agent: str | None = None) -> list[str]:
        return [stored.id for stored in self.store.list_conversations(participant, agent=agent)]

    def test_a_list_holds_the_conversations_of_one_participant_latest_first(self) -> None:
        for number, participant in enumerate((self.owner, self.namesake, self.sibling, None)):
            self.say(f"{number}", participant)
            self.say(f"{number} again", participant)
            self.say(f"{number}", self.owner)
        for number, participant in enumerate((self.owner, self.namesake, self.sibling, None)):
            assert self.listed(participant) == [f"{number}", f"{number} again"]
        self.store.clear("0")
        assert self.listed(self.owner) == ["0 again"]
        assert list(self.store.list_conversations(self.owner)) == [self.stored("0 again")]

    def test_a_list_may_be_of_one_agent(self) -> None:
        self.say(ONE, self.owner, COACH)
        self.say(TWO, self.owner, CLERK)
        assert self.listed(self.owner) == [TWO, ONE]
        assert self.listed(self.owner, COACH) == [ONE]
        assert self.listed(self.owner, CLERK) == [TWO]
        assert self.listed(self.owner, "tests.Nobody") == []

    def test_pages_of_a_list_hold_each_conversation_once(self) -> None:
        for number in range(7):
            self.say(f"{number}", self.owner)
        for size in (1, 2, 3, 7, 1000):
            pages = walk(self.store.list_conversations, self.owner, per_page=size)
            assert [stored.id for page in pages for stored in page] == list("6543210")
            assert [len(page) for page in pages[:-1]] == [size] * (len(pages) - 1)
        cursor = self.store.list_conversations(self.owner, per_page=2).next_cursor
        self.say("new", self.owner)
        second = self.store.list_conversations(self.owner, per_page=2, cursor=cursor)
        assert [stored.id for stored in second] == ["4", "3"]

    def test_a_list_has_the_usual_page_size_unless_told(self) -> None:
        usual = conf.setting("MESSAGES_PER_PAGE")
        for number in range(usual + 1):
            self.store.create(f"{number}", participant=self.owner)
        page = self.store.list_conversations(self.owner)
        assert len(page) == usual
        assert len(self.store.list_conversations(self.owner, cursor=page.next_cursor)) == 1

    def test_a_list_refuses_what_is_no_cursor_or_page_size(self) -> None:
        for number in range(2):
            self.say(f"{number}", self.owner)
        messages = self.store.paginate_conversation_messages("0", per_page=1).next_cursor
        for cursor in (*INVALID_CURSORS, messages):
            with raises(InvalidCursor, msg=repr(cursor)):
                self.store.list_conversations(self.owner, cursor=cursor)
        for size in INVALID_SIZES:
            with raises(ValueError, msg=repr(size)):
                self.store.list_conversations(self.owner, per_page=size)

    # The last one.

    def test_the_last_conversation_is_the_last_used_and_not_the_last_opened(self) -> None:
        self.say(ONE, self.owner)
        self.say(TWO, self.owner)
        assert self.store.latest_conversation_id(self.owner, COACH) == TWO
        self.say(ONE, self.owner)
        assert self.store.latest_conversation_id(self.owner, COACH) == ONE
        self.store.clear(ONE)
        assert self.store.latest_conversation_id(self.owner, COACH) == TWO
        self.store.clear(TWO)
        assert self.store.latest_conversation_id(self.owner, COACH) is None

    def test_the_last_conversation_is_one_of_this_agent(self) -> None:
        self.say(ONE, self.owner, COACH)
        self.say(TWO, self.owner, CLERK)
        assert self.store.latest_conversation_id(self.owner, COACH) == ONE
        self.say(TWO, self.owner, COACH)
        assert self.store.latest_conversation_id(self.owner, COACH) == TWO
        assert self.store.latest_conversation_id(self.owner, CLERK) == TWO
        assert self.store.latest_conversation_id(self.owner, "tests.Nobody") is None

    def test_the_last_conversation_is_where_this_participant_spoke_whoever_owns_it(self) -> None:
        self.say(ONE, self.owner, COACH)
        self.say(TWO, self.namesake, COACH)
        assert self.store.latest_conversation_id(self.owner, COACH) == ONE
        assert self.store.latest_conversation_id(self.namesake, COACH) == TWO
        assert self.store.latest_conversation_id(self.sibling, COACH) is None
        self.say(ONE, self.sibling, COACH)
        assert self.store.latest_conversation_id(self.sibling, COACH) == ONE
        self.say(ONE, self.namesake, CLERK)
        assert self.store.latest_conversation_id(self.namesake, COACH) == TWO
        assert self.store.latest_conversation_id(self.owner, CLERK) is None

    def test_a_conversation_without_messages_is_not_the_last_one(self) -> None:
        self.store.create(ONE, participant=self.owner, agent=COACH, leading=LEADING)
        self.store.reserve(TWO, participant=self.owner, agent=COACH, create=True)
        assert self.store.latest_conversation_id(self.owner, COACH) is None

    def test_nobody_has_no_last_conversation(self) -> None:
        self.say(ONE, None)
        with raises(InvalidParticipant):
            self.store.latest_conversation_id(None, COACH)
