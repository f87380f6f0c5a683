"""Workers that go on with paused turns, or decide on their calls, alone or against each other."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent_memory import Approve, Deny, conversation_store
from agent_memory.exceptions import (
    ApprovalMismatch,
    ApprovalNotResumable,
    ConversationBusy,
    ConversationConflict,
)
from tests.faults.boundaries import boundaries
from tests.faults.clerks import Clerk, ClerkProvider, Ledger, note_in
from tests.faults.operations import ADA
from tests.faults.points import Points, StagedProvider, StagedStore

Tell = Callable[..., None]


def resume_one(order: dict[str, Any], tell: Tell) -> None:
    """Resume a turn, and stand still at one of its points."""
    points = Points(tell, order["stop"], Path(order["report"] + ".go"))
    provider, store, ledger = StagedProvider(), StagedStore(), Ledger(Path(order["ledger"]))
    provider.points = store.points = points
    conversation_store.list_conversations(ADA)  # has the content types looked up
    clerk = Clerk(provider=provider, store=store, tools=[note_in(ledger, points.at, gated=True)])
    try:
        with boundaries(points.at):
            clerk.continue_conversation(order["conversation_id"], ADA).resume()
    except ConversationConflict as conflict:
        tell(overtaken=str(conflict))


def resume_many(order: dict[str, Any], tell: Tell) -> None:
    """Resume the turns of many conversations, in an order of its own."""
    tool = note_in(Ledger(Path(order["ledger"])), gated=True)
    clerk = Clerk(provider=ClerkProvider(), tools=[tool])
    for conversation_id in _shuffled(order):
        try:
            clerk.continue_conversation(conversation_id, ADA).resume()
        except (ConversationBusy, ApprovalNotResumable):
            tell(refused=conversation_id)
        else:
            tell(resumed=conversation_id)


def decide_many(order: dict[str, Any], tell: Tell) -> None:
    """Decide on the calls of many conversations, in an order of its own."""
    decision = Approve() if order["approve"] else Deny("No.")
    for conversation_id in _shuffled(order):
        waiting = conversation_store.pending_approvals_for(conversation_id)
        for call_id in [asked.id for asked in waiting]:
            try:
                conversation_store.decide(conversation_id, {call_id: decision}, decided_by=ADA)
            except ApprovalMismatch:
                tell(refused=call_id, conversation_id=conversation_id)
            else:
                tell(decided=call_id, conversation_id=conversation_id)


def _shuffled(order: dict[str, Any]) -> list[str]:
    conversations: list[str] = order["conversations"]
    return random.Random(order["seed"]).sample(conversations, len(conversations))
