"""The agent of the example, and what it can do."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Annotated

from pydantic import Field

from agent_memory import Agent, RemembersConversations, tool
from example_project.chat.models import Refund

Amount = Annotated[Decimal, Field(gt=0, max_digits=12, decimal_places=2)]


@tool(needs_approval="A refund pays money back.", approval_expires=timedelta(days=7))
def refund(order: Annotated[str, Field(max_length=100)], amount: Amount) -> str:
    """Pay an order back, in part or in full."""
    Refund._default_manager.create(order=order, amount=amount)
    return f"{amount} paid back for order {order}."


class SupportCoach(RemembersConversations, Agent):
    """Answers users and teams, and remembers what each of them said."""

    instructions = "You are a support coach. Keep replies short."
    tools = [refund]
