"""Whatever an agent is asked: refused by name before the model is called, or stored with its answer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory import Agent, Message, RemembersConversations, tool
from agent_memory.exceptions import InvalidConversationId
from agent_memory.messages import Step, TextPart, ToolCall
from agent_memory.testing import ScriptedProvider
from tests.anything import ITEMS, JSON, MESSAGES, OBJECTS, SHORT_TEXTS, TEXTS
from tests.stores.every_store import ANYTHING, is_storable, reopened, store

pytestmark = pytest.mark.heavy

__all__ = ["store"]


@tool
def recite(text: Any = None) -> Any:
    """Return what there is."""
    return RETURNED[-1]


RETURNED: list[Any] = []
REFUSED_OPTIONS = st.sampled_from([float("nan"), float("inf"), 10**5000, [{"": -(10**4300)}]])
RETURNABLE = JSON | st.one_of(
    st.binary(max_size=9),
    st.sets(st.integers()),
    st.decimals(),
    st.fractions(),
    st.datetimes(),
    st.complex_numbers(),
    st.uuids(),
    st.just(float("nan")),
    st.just(10**5000),
    st.builds(object),
    st.dictionaries(st.integers() | st.booleans() | st.tuples(TEXTS), JSON, max_size=3),
)


class Coach(RemembersConversations, Agent):
    label = "coach"
    model = "test"
    tools = [recite]
    generate_titles = False


@ANYTHING
@given(
    message=MESSAGES | TEXTS,
    options=OBJECTS | st.dictionaries(TEXTS, REFUSED_OPTIONS, min_size=1, max_size=1),
    key=st.none() | SHORT_TEXTS,
    name=st.none() | SHORT_TEXTS,
    answer=st.lists(ITEMS.filter(lambda item: not isinstance(item, ToolCall)), max_size=3),
    returned=RETURNABLE,
)
def test_what_is_asked_is_refused_by_name_or_stored_with_all_that_was_answered(
    store, message, options, key, name, answer, returned
):
    RETURNED.append(returned)
    call = ToolCall(id="1", name="recite", provider_metadata={"given": "back"})
    provider = ScriptedProvider([[call], Step(items=tuple(answer))])
    part = TextPart(text="So:", provider_options=options)
    if isinstance(message, Message):
        message = message.model_copy(update={"content": (*message.content, part)})
    coach = Coach(provider=provider, store=store).for_participant(None)
    try:
        response = coach.prompt(message, conversation_id=name, idempotency_key=key)
    except (ValueError, InvalidConversationId):
        assert provider.requests == []
        if name is not None and name and is_storable(name):
            assert store.get(name) is None
        return
    assert repr(reopened(store).load(response.conversation_id)) == repr(response.turn.messages)
    assert len(provider.requests) == 2
    stored = store.get(response.conversation_id)
    assert is_storable(stored.title)
    store.clear(response.conversation_id)
