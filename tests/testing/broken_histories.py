"""Stores that break one promise of histories and fidelity each."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import replace
from typing import Any

from agent_memory.exceptions import (
    ConversationConflict,
    ConversationDoesNotExist,
    InvalidConversationId,
)
from agent_memory.messages import Message, TextPart, ToolResult, Turn
from agent_memory.records import Heading, StoredTurn
from agent_memory.stores.inmemory import InMemoryConversationStore
from tests.testing.broken import breaks

Store = InMemoryConversationStore
Messages = tuple[Message, ...]


def changed(turn: Turn, change: Any) -> Turn:
    """Return a turn whose JSON was changed on the way."""
    return Turn.model_validate(json.loads(change(json.dumps(turn.model_dump()))))


class _FilesUnderAnotherId(Store):
    def key(self, conversation_id: str) -> str:
        raise NotImplementedError

    def load(self, conversation_id: str, **kwargs: Any) -> Messages:
        return super().load(self._key(conversation_id), **kwargs)

    def append(self, conversation: Any, turn: Turn, **kwargs: Any) -> StoredTurn:
        heading = Heading.of(conversation)
        return super().append(replace(heading, id=self._key(heading.id)), turn, **kwargs)

    def clear(self, conversation_id: str) -> None:
        super().clear(self._key(conversation_id))

    def _key(self, conversation_id: Any) -> Any:
        text = isinstance(conversation_id, str) and conversation_id
        return self.key(conversation_id) if text else conversation_id


@breaks("test_each_conversation_has_a_history_of_its_own")
class SharesHistories(_FilesUnderAnotherId):
    def key(self, conversation_id: str) -> str:
        return "shared"


@breaks("test_ids_that_look_alike_are_conversations_of_their_own")
class StripsIds(_FilesUnderAnotherId):
    def key(self, conversation_id: str) -> str:
        return conversation_id.strip() or "blank"


@breaks("test_ids_that_look_alike_are_conversations_of_their_own")
class LowercasesIds(_FilesUnderAnotherId):
    def key(self, conversation_id: str) -> str:
        return conversation_id.lower()


@breaks("test_ids_that_look_alike_are_conversations_of_their_own")
class NormalisesIds(_FilesUnderAnotherId):
    def key(self, conversation_id: str) -> str:
        return unicodedata.normalize("NFC", conversation_id)


@breaks("test_an_invalid_id_is_refused_before_anything_else")
class TakesAnyIdToRead(Store):
    def load(self, conversation_id: str, **kwargs: Any) -> Messages:
        try:
            return super().load(conversation_id, **kwargs)
        except InvalidConversationId:
            return ()


@breaks("test_a_heading_and_its_bare_id_mean_the_same_conversation")
class FilesByAgent(Store):
    def append(self, conversation: Any, turn: Turn, **kwargs: Any) -> StoredTurn:
        heading = Heading.of(conversation)
        heading = replace(heading, id=f"{heading.id}{heading.agent}")
        return super().append(heading, turn, **kwargs)


@breaks("test_an_unknown_conversation_has_no_history")
class RaisesForUnknownIds(Store):
    def load(self, conversation_id: str, **kwargs: Any) -> Messages:
        loaded = super().load(conversation_id, **kwargs)
        if conversation_id not in self._transcripts:
            raise ConversationDoesNotExist(conversation_id)
        return loaded


@breaks("test_turns_come_back_equal_and_in_the_order_they_were_appended")
class LosesOrder(Store):
    def append(self, conversation: Any, turn: Turn, **kwargs: Any) -> StoredTurn:
        stored = super().append(conversation, turn, **kwargs)
        self._transcripts[stored.conversation_id].turns.reverse()
        return stored


@breaks("test_a_window_is_the_last_turns_and_zero_is_all")
class KeepsTheOldestTurns(Store):
    def load(self, conversation_id: str, *, keep_last_turns: int = 0, **kwargs: Any) -> Messages:
        super().load(conversation_id, keep_last_turns=keep_last_turns)
        kept = self._transcripts.get(conversation_id)
        turns = kept.turns[: keep_last_turns or None] if kept else []
        return (*(kept.leading if kept else ()), *(m for each in turns for m in each.turn.messages))


@breaks("test_a_window_never_parts_a_tool_call_from_its_result")
class WindowsByMessages(Store):
    def load(self, conversation_id: str, *, keep_last_turns: int = 0, **kwargs: Any) -> Messages:
        super().load(conversation_id, keep_last_turns=keep_last_turns)
        return super().load(conversation_id)[-2 * keep_last_turns :]


@breaks("test_leading_messages_stay_in_every_window")
class DropsLeadingMessagesFromWindows(Store):
    def load(self, conversation_id: str, *, keep_last_turns: int = 0, **kwargs: Any) -> Messages:
        loaded = super().load(conversation_id, keep_last_turns=keep_last_turns)
        kept = self._transcripts.get(conversation_id)
        return loaded[len(kept.leading) :] if kept and keep_last_turns else loaded


@breaks("test_a_window_is_no_other_thing_than_a_whole_number_of_turns")
class TakesAnyWindow(Store):
    def load(self, conversation_id: str, *, keep_last_turns: int = 0, **kwargs: Any) -> Messages:
        return super().load(conversation_id, keep_last_turns=abs(int(keep_last_turns or 0)))


@breaks("test_a_failed_turn_counts_and_its_unanswered_calls_are_told_as_interrupted")
class LeavesFailedTurnsOut(Store):
    def load(self, conversation_id: str, **kwargs: Any) -> Messages:
        if super().load(conversation_id, **kwargs):
            kept = self._transcripts[conversation_id]
            kept.turns = [each for each in kept.turns if each.turn.status != "failed"]
        return super().load(conversation_id, **kwargs)


@breaks("test_append_tells_where_the_turn_was_written")
class SaysAlwaysCreated(Store):
    def append(self, conversation: Any, turn: Turn, **kwargs: Any) -> StoredTurn:
        return replace(super().append(conversation, turn, **kwargs), created=True)


@breaks("test_append_tells_where_the_turn_was_written")
class GivesOneIdToBothMessages(Store):
    def append(self, conversation: Any, turn: Turn, **kwargs: Any) -> StoredTurn:
        stored = super().append(conversation, turn, **kwargs)
        return replace(stored, assistant_message_id=stored.user_message_id)


@breaks("test_clear_forgets_one_conversation_and_no_other")
class ForgetsToClear(Store):
    def clear(self, conversation_id: str) -> None:
        self.get(conversation_id)


@breaks("test_clear_forgets_one_conversation_and_no_other")
class ClearsEverything(Store):
    def clear(self, conversation_id: str) -> None:
        super().clear(conversation_id)
        self._transcripts.clear()


@breaks("test_clearing_an_unknown_conversation_is_no_error")
class CannotClearTheUnknown(Store):
    def clear(self, conversation_id: str) -> None:
        if self.get(conversation_id) is None:
            raise ConversationDoesNotExist(conversation_id)
        super().clear(conversation_id)


@breaks("test_a_cleared_id_begins_anew")
class NeverReusesAnId(Store):
    def __init__(self) -> None:
        super().__init__()
        self.used: set[str] = set()

    def clear(self, conversation_id: str) -> None:
        super().clear(conversation_id)
        self.used.add(conversation_id)

    def append(self, conversation: Any, turn: Turn, **kwargs: Any) -> StoredTurn:
        heading = Heading.of(conversation)
        if heading.id in self.used:
            raise ConversationConflict(heading.id, turn)
        return super().append(heading, turn, **kwargs)


@breaks("test_a_turn_is_written_whole_or_not_at_all")
class WritesHalfATurn(Store):
    def append(self, conversation: Any, turn: Turn, **kwargs: Any) -> StoredTurn:
        try:
            return super().append(conversation, turn, **kwargs)
        except AttributeError:
            super().append(conversation, turn.model_copy(update={"steps": ()}), **kwargs)
            raise


@breaks("test_a_turn_is_written_whole_or_not_at_all")
class LeavesAFailedAppendReserved(Store):
    def release(self, reservation: Any) -> None:
        """Do nothing where ``append`` cleans up."""


@breaks("test_what_a_caller_does_to_values_given_or_loaded_changes_nothing_stored")
class SharesItsValues(Store):
    def append(self, conversation: Any, turn: Turn, **kwargs: Any) -> StoredTurn:
        stored = super().append(conversation, turn, **kwargs)
        self._transcripts[stored.conversation_id].turns[-1].turn = turn
        return stored


@breaks("test_what_a_caller_does_to_values_given_or_loaded_changes_nothing_stored")
class LeaksItsList(Store):
    def load(self, conversation_id: str, **kwargs: Any) -> Any:
        return list(super().load(conversation_id, **kwargs))


class _ChangesTurns(Store):
    def change(self, turn: Turn) -> Turn:
        raise NotImplementedError

    def append(self, conversation: Any, turn: Turn, **kwargs: Any) -> StoredTurn:
        if all(hasattr(step, "items") for step in turn.steps):
            turn = self.change(turn)
        return super().append(conversation, turn, **kwargs)


@breaks("test_every_part_text_name_and_number_comes_back_equal")
class DropsToolResults(_ChangesTurns):
    def change(self, turn: Turn) -> Turn:
        dropped = ToolResult()
        steps = (step.with_results(dict.fromkeys(range(9), dropped)) for step in turn.steps)
        return turn.model_copy(update={"steps": tuple(steps)})


@breaks("test_parts_and_steps_come_back_equal")
class KeepsTextAlone(_ChangesTurns):
    def change(self, turn: Turn) -> Turn:
        step = turn.steps[-1:] and turn.steps[-1].model_copy(
            update={"items": (TextPart(text=turn.text),)}
        )
        return turn.model_copy(update={"steps": (step,) if step else ()})


@breaks("test_every_part_text_name_and_number_comes_back_equal")
class SortsKeys(_ChangesTurns):
    def change(self, turn: Turn) -> Turn:
        return changed(turn, lambda text: json.dumps(json.loads(text), sort_keys=True))


@breaks("test_every_part_text_name_and_number_comes_back_equal")
class ReplacesSurrogates(_ChangesTurns):
    def change(self, turn: Turn) -> Turn:
        return changed(turn, lambda text: text.replace("\\ud800", "\\ufffd"))


@breaks("test_every_part_text_name_and_number_comes_back_equal")
class CutsAtNul(_ChangesTurns):
    def change(self, turn: Turn) -> Turn:
        return changed(turn, lambda text: text.replace("\\u0000", ""))


@breaks("test_every_part_text_name_and_number_comes_back_equal")
class KeepsIntegersAsFloats(_ChangesTurns):
    def change(self, turn: Turn) -> Turn:
        return changed(turn, lambda text: json.dumps(json.loads(text, parse_int=_number)))


def _number(digits: str) -> Any:
    return float(digits) if len(digits) > 15 else int(digits)
