"""What a turn begins with when nothing is remembered."""

from __future__ import annotations

from agent_memory import flow
from agent_memory.messages import Message, Step
from agent_memory.recalled import Noted, Recalled


def test_without_memory_nothing_is_held_or_noted_and_nothing_can_wait():
    recalled = Recalled(user=Message("user", "Hello"))
    assert flow.run(recalled.hold()) is None
    assert flow.run(recalled.journal(Noted(0, -1, Step()))) is None
    assert not recalled.can_pause


def test_each_turn_has_an_id_of_its_own():
    hello = Message("user", "Hello")
    assert Recalled(user=hello).turn_id != Recalled(user=hello).turn_id
