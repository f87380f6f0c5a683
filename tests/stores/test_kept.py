"""A turn is read back as two messages, without what is the provider's alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from agent_memory.messages import Message, Replay, TurnError
from agent_memory.participants import Participant
from agent_memory.records import Heading
from agent_memory.stores.kept import answer_of, messages_of
from agent_memory.testing.contract.base import plain_turn, tool_turn

BEGUN = datetime(2030, 1, 2, tzinfo=UTC)
ENDED = BEGUN + timedelta(seconds=5)
OWNER = Participant("auth.user", "1")


def test_a_turn_is_a_user_message_and_an_assistants_behind_it():
    turn = tool_turn()
    user, assistant = messages_of(turn, Heading("one", OWNER, "coach"), 4, BEGUN, ENDED)
    assert user.id != assistant.id
    assert (user.role, user.position, user.created_at) == ("user", 4, BEGUN)
    assert (user.content, user.parts) == ("Weather?", turn.user.content)
    assert (user.participant, user.agent) == (OWNER, "coach")
    assert (assistant.role, assistant.position, assistant.created_at) == ("assistant", 5, ENDED)
    assert (assistant.content, assistant.steps) == ("Fine.", turn.steps)
    assert (assistant.participant, assistant.agent) == (None, "coach")


def test_an_answer_has_no_opaque_blocks_and_says_what_a_turn_died_of():
    replay = Replay(provider="test", model="test-model", blocks=({"type": "secret"},))
    (step,) = plain_turn().steps
    turn = plain_turn(status="failed", error=TurnError(code="Timeout", status=504)).model_copy(
        update={"steps": (step.model_copy(update={"replay": replay}),)}
    )
    answer = answer_of(turn)
    assert (answer["steps"], answer["status"]) == ((step,), "failed")
    assert answer["meta"] == {"error": {"code": "Timeout", "status": 504}}
    assert answer_of(turn.model_copy(update={"user": Message()})) == answer
    assert answer_of(plain_turn())["meta"] == {}
