"""What becomes of a turn whose worker died after it had begun to run tools."""

from __future__ import annotations

from agent_memory.exceptions import (
    ConversationBusy,
    ConversationConflict,
    ConversationDoesNotExist,
    TurnFailed,
)
from agent_memory.messages import INTERRUPTED, Message, Step, ToolCall, ToolResult, Turn, Usage
from agent_memory.records import Heading, Once
from agent_memory.testing.contract.base import (
    CLERK,
    COACH,
    ONE,
    TWO,
    messages_of,
    plain_turn,
    raises,
)
from agent_memory.testing.contract.fidelity import odd_turns
from agent_memory.testing.contract.journals import (
    HELLO,
    Journalling,
    dying_turn,
    entries_of,
    interrupted,
)

KEY = "key-1"


def called(*results: ToolResult | None) -> Turn:
    """Return a turn of one step, with a call for each result that there is or is not."""
    calls = (
        ToolCall(id=f"call-{number}", name="pay", arguments={"number": number}, result=result)
        for number, result in enumerate(results)
    )
    return Turn(user=HELLO, steps=(Step(items=tuple(calls), finish_reason="tool_calls"),))


class InterruptionPromises(Journalling):
    """
    Whoever comes next finds a dead worker's turn as a failed one, with what its tools did.

    No test waits: renewing for 0 seconds makes a reservation expire at once.
    """

    # What is recorded.

    def test_a_dead_turn_is_recorded_as_failed_with_the_steps_that_it_noted(self) -> None:
        turns = self.append(ONE, "before")
        turns.append(interrupted(dying_turn()))
        self.die(dying_turn())
        taken = self.store.reserve(ONE)
        assert self.store.load(ONE, reservation=taken) == messages_of(turns)
        answer, said, *_ = self.store.paginate_conversation_messages(ONE)
        assert (answer.status, answer.meta) == ("failed", {"error": {"code": "Interrupted"}})
        assert answer.steps == dying_turn().steps
        assert (said.parts, said.status) == (dying_turn().user.content, "completed")

    def test_calls_that_were_not_answered_are_told_as_interrupted(self) -> None:
        self.die(called(ToolResult(value="Paid."), None, ToolResult(value="Paid too."), None))
        self.store.reserve(ONE)
        told = [message for message in self.store.load(ONE) if message.role == "tool"]
        assert [message.text for message in told] == [
            "Paid.",
            INTERRUPTED,
            "Paid too.",
            INTERRUPTED,
        ]

    def test_results_are_found_on_their_calls_in_whatever_order_they_came(self) -> None:
        results = (
            ToolResult(),
            ToolResult(value="Broke.", failed=True),
            None,
            ToolResult(value="No.", denied=True),
            ToolResult(value=0),
            ToolResult(value=[None, {}]),
        )
        for turn in (called(*results), called(*results[::-1])):
            step, *noted = entries_of(turn, self.heading())
            reservation = self.begin()
            self.journal(reservation, [step, *sorted(noted, key=lambda entry: entry.index % 3)])
            self.expire(reservation)
            self.store.release(self.store.reserve(ONE))
            answer, _ = self.store.paginate_conversation_messages(ONE, per_page=2)
            assert repr(answer.steps) == repr(turn.steps)
            assert self.store.load(ONE, keep_last_turns=1) == interrupted(turn).messages

    def test_every_text_name_and_number_of_a_dead_turn_comes_back_equal(self) -> None:
        for turn in odd_turns():
            if turn.steps:
                self.die(turn)
                self.store.release(self.store.reserve(ONE))
                loaded = self.store.load(ONE, keep_last_turns=1)
                assert repr(loaded) == repr(interrupted(turn).messages)
                answer, said = self.store.paginate_conversation_messages(ONE, per_page=2)
                assert repr(answer.steps) == repr(turn.steps)
                assert repr(said.parts) == repr(turn.user.content)

    def test_what_a_caller_does_to_an_entry_given_changes_nothing_stored(self) -> None:
        reservation = self.begin()
        for entry in entries_of(dying_turn(), self.heading()):
            self.journal(reservation, [entry])
            if isinstance(entry.value, Step):
                entry.value.tool_calls()[0].arguments["city"] = "Rome"
            elif isinstance(entry.value, ToolResult) and isinstance(entry.value.value, dict):
                entry.value.value.clear()
        self.expire(reservation)
        self.store.reserve(ONE)
        assert self.store.load(ONE) == interrupted(dying_turn()).messages

    def test_a_dead_turn_stands_in_its_place_without_a_gap_and_counts(self) -> None:
        used = Usage(input_tokens=3, output_tokens=2)
        step = dying_turn().steps[0].model_copy(update={"usage": used})
        turns = self.append(ONE, "1", "2")
        for number in range(2):
            dead = Turn(user=Message("user", f"dead {number}"), steps=(step,))
            self.die(dead)
            taken = self.store.reserve(ONE)
            self.store.load(ONE, reservation=taken)
            assert taken.next_position == 2 * len(turns) + 2
            turns += [interrupted(dead), plain_turn(f"after {number}")]
            self.store.append(ONE, turns[-1], reservation=taken)
        assert self.store.load(ONE) == messages_of(turns)
        page = self.store.paginate_conversation_messages(ONE)
        assert [message.position for message in page] == list(reversed(range(12)))
        assert len({message.id for message in page}) == 12
        stored = self.store.get(ONE)
        assert stored is not None
        assert (stored.turns, stored.usage) == (6, used + used)

    def test_a_dead_turn_is_recorded_once(self) -> None:
        self.append(ONE, "before")
        self.die(dying_turn())
        for _ in range(3):
            self.expire(self.store.reserve(ONE))
        assert len(self.store.paginate_conversation_messages(ONE)) == 4
        self.store.reserve(ONE)
        with raises(ConversationBusy):
            self.store.reserve(ONE)

    def test_any_worker_finds_a_dead_turn(self) -> None:
        self.die(dying_turn())
        self.elsewhere.reserve(ONE)
        assert self.store.load(ONE) == interrupted(dying_turn()).messages

    def test_whoever_records_a_dead_turn_is_told_of_it(self) -> None:
        self.append(TWO, "before")
        for given in (ONE, TWO, None):
            dead = self.die(dying_turn(), given)
            taken = self.store.reserve(dead.conversation_id)
            answer, said, *_ = self.store.paginate_conversation_messages(dead.conversation_id)
            assert taken.buried is not None
            assert taken.buried.turn == interrupted(dying_turn())
            stored = taken.buried.stored
            assert (stored.conversation_id, stored.turn_id) == (dead.conversation_id, dead.turn_id)
            assert (stored.user_message_id, stored.assistant_message_id) == (said.id, answer.id)
            self.store.release(taken)
            assert self.store.reserve(dead.conversation_id).buried is None

    def test_append_without_a_reservation_finds_a_dead_turn_too(self) -> None:
        for given in (ONE, None):
            conversation_id = self.die(dying_turn(), given).conversation_id
            (last,) = self.append(conversation_id, "after")
            wanted = messages_of([interrupted(dying_turn()), last])
            assert self.store.load(conversation_id) == wanted

    # Whose it was.

    def test_a_dead_turn_tells_who_spoke_and_to_which_agent(self) -> None:
        self.store.append(Heading(ONE, self.namesake, CLERK), plain_turn())
        self.die(dying_turn())
        self.store.append(Heading(TWO, self.owner, COACH), plain_turn())
        assert self.store.latest_conversation_id(self.owner, COACH) == TWO
        self.store.clear(TWO)
        self.store.reserve(ONE)
        assert self.store.latest_conversation_id(self.owner, COACH) == ONE
        answer, said, *_ = self.store.paginate_conversation_messages(ONE)
        assert (said.participant, said.agent, answer.agent) == (self.owner, COACH, COACH)
        assert self.store.conversation_belongs_to(ONE, self.namesake)

    def test_a_dead_turn_keeps_its_key(self) -> None:
        for given in (ONE, None, TWO):
            if given == TWO:
                self.append(TWO, "before")
            dying = dying_turn(HELLO.text)
            conversation_id = self.die(dying, given, key=KEY).conversation_id
            for _ in range(2):
                with raises(TurnFailed) as caught:
                    self.store.reserve(conversation_id, once=Once.of(KEY, HELLO))
                assert caught.exception.turn == interrupted(dying)
            with raises(ConversationConflict):
                self.store.reserve(conversation_id, once=Once.of(KEY, Message("user", "Other")))
            self.store.reserve(conversation_id, once=Once.of("key-2", HELLO))

    def test_a_dead_turn_gives_its_title_to_a_conversation_that_has_none(self) -> None:
        self.append(ONE, "before")
        self.store.create(TWO, title="Person's")
        titles: list[tuple[str, str]] = []
        for conversation_id in (ONE, ONE, TWO):
            self.die(dying_turn(), conversation_id, title=f"Title {len(titles)}")
            self.store.release(self.store.reserve(conversation_id))
            stored = self.store.get(conversation_id)
            assert stored is not None
            titles.append((stored.title, stored.title_source))
        assert titles == [("Title 0", "prompt"), ("Title 0", "prompt"), ("Person's", "person")]

    # First turns.

    def test_a_dead_first_turn_that_noted_something_becomes_a_conversation(self) -> None:
        for given in (ONE, None):
            conversation_id = self.die(dying_turn(), given, title="Pay").conversation_id
            with raises(ConversationConflict):
                self.store.create(conversation_id)
            taken = self.store.reserve(conversation_id)
            stored = self.store.get(conversation_id)
            assert stored is not None
            assert (stored.participant, stored.agent, stored.turns) == (self.owner, COACH, 1)
            assert stored.title == "Pay"
            assert self.store.latest_conversation_id(self.owner, COACH) == conversation_id
            assert self.store.list_conversations(self.owner).items[0] == stored
            assert self.store.load(conversation_id) == interrupted(dying_turn()).messages
            stored_turn = self.store.append(conversation_id, plain_turn(), reservation=taken)
            assert not stored_turn.created

    def test_a_dead_first_turn_that_noted_something_is_still_its_speakers(self) -> None:
        for given in (ONE, None):
            conversation_id = self.die(dying_turn(), given).conversation_id
            for create in (False, True):
                with raises(ConversationDoesNotExist):
                    self.store.reserve(
                        conversation_id, participant=self.namesake, must_own=True, create=create
                    )
            self.store.reserve(conversation_id, participant=self.owner, must_own=True)
            assert self.store.load(conversation_id) == interrupted(dying_turn()).messages
