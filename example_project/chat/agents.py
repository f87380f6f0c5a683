"""The agents of the example."""

from __future__ import annotations

from agent_memory import Agent, RemembersConversations


class SupportCoach(RemembersConversations, Agent):
    """Answers users and teams, and remembers what each of them said."""

    instructions = "You are a support coach. Keep replies short."
