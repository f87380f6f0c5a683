"""Whose conversations a user may see: their own, and those of their teams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.mixins import LoginRequiredMixin
from django.http import Http404, HttpRequest

from agent_memory import Participant, conversation_store
from agent_memory.models import Conversation
from agent_memory.records import StoredConversation
from agent_memory.views import AttachmentView


@dataclass(frozen=True)
class Owner:
    """A participant that a user may speak for; ``key`` names it in forms."""

    participant: Any
    key: str
    name: str


def owners(user: Any) -> list[Owner]:
    """Return the user, and the teams they are a member of."""
    teams = (Owner(team, f"team-{team.pk}", team.name) for team in user.teams.order_by("name"))
    return [Owner(user, "user", "You"), *teams]


def owner(user: Any, key: str) -> Owner:
    """Return an owner by its key; raises ``Http404``."""
    for each in owners(user):
        if each.key == key:
            return each
    raise Http404


def find(user: Any, conversation_id: str) -> tuple[StoredConversation, Owner]:
    """
    Return a conversation and whose it is.

    Raises ``Http404`` where there is none, and just so where it is somebody
    else's, so that nobody learns which ids there are.
    """
    stored = conversation_store.get(conversation_id)
    for each in owners(user) if stored else ():
        if stored and Participant.of(each.participant) == stored.participant:
            return stored, each
    raise Http404


class ChatAttachmentView(LoginRequiredMixin, AttachmentView):
    """Sends a file to the owner of its conversation, and to the members of a team's."""

    def may_see(self, request: HttpRequest, conversation: Conversation) -> bool:
        """See AttachmentView.may_see()."""
        return any(each.participant == conversation.participant for each in owners(request.user))
