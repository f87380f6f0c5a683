"""A user model of the project's own; ``test_elsewhere`` runs it in a process that has one."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user, get_user_model
from django.core.checks import run_checks
from django.http import HttpRequest
from django.test import Client
from django.utils.functional import SimpleLazyObject

from agent_memory import Agent, RemembersConversations
from agent_memory.models import Conversation
from agent_memory.participants import Participant
from agent_memory.testing import ScriptedProvider


class Coach(RemembersConversations, Agent):
    pass


@pytest.mark.django_db
def test_a_user_is_remembered(scripted_provider: ScriptedProvider) -> None:
    assert run_checks() == []
    scripted_provider.extend(["Noted.", "Blue."])
    member = get_user_model().objects.create(email="ada@example.com")
    client, request = Client(), HttpRequest()
    client.force_login(member)
    request.session = client.session
    lazy = SimpleLazyObject(lambda: get_user(request))
    reply = Coach().for_user(lazy).prompt("Remember: blue.")
    again = Coach().continue_last_conversation(member).prompt("Which colour?")
    assert again.conversation_id == reply.conversation_id
    assert Participant.of(lazy) == Participant("testapp.member", str(member.pk))
    assert Conversation.objects.for_participant(lazy).get().participant == member
