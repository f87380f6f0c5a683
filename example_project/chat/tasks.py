"""Turns that wait for nobody any more are run on: by a command, or as tasks of Django 6."""

from __future__ import annotations

from typing import Any

from agent_memory.exceptions import ConversationBusy
from agent_memory.models import Conversation
from example_project.chat.agents import SupportCoach

AGENTS = {agent.get_label(): agent for agent in (SupportCoach(),)}
"""Each agent of the project by the label under which its turns are stored."""


def run_on(conversation_id: str) -> str:
    """
    Run the decided turn of a conversation on; return what became of it.

    Raises ``KeyError`` for the label of no agent, and as ``resume()`` does. The turn
    stays decided then, and running it on again is safe.
    """
    decided = Conversation.objects.decided().filter(pk=conversation_id).first()
    if decided is None:
        return "not decided"  # or somebody else has run it on
    agent = AGENTS[decided.paused_agent]
    try:
        return agent.continue_conversation(conversation_id, must_own=False).resume().status
    except ConversationBusy:
        return "running"


try:
    from django.tasks import task
except ImportError:  # before Django 6 the command does it
    pass
else:

    @task
    def resume_turn(conversation_id: str) -> str:
        """See run_on()."""
        return run_on(conversation_id)

    def enqueue_decided(conversation_id: str, **kwargs: Any) -> None:
        """Receive ``approval_decided``: enqueue the turn when its last call is decided."""
        if Conversation.objects.decided().filter(pk=conversation_id).exists():
            resume_turn.enqueue(conversation_id)
