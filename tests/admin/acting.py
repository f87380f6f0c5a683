"""What the tests of the admin's actions share: members of staff, messages, the log."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission, User
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse

from agent_memory import Message
from agent_memory.journals import JournalEntry
from agent_memory.messages import Step, ToolCall, ToolResult
from agent_memory.records import Heading, Reservation
from tests.admin.saying import store

ACTIONS = ["rename", "redraft", "release", "delete"]


def staff(client: Client, *permissions: str, name: str = "manager") -> User:
    """Log a member of staff in who has these permissions and no others."""
    user = User.objects.create_user(name, is_staff=True)
    found = Permission.objects.filter(codename__in=permissions)
    assert len(found) == len(permissions)
    user.user_permissions.set(found)
    client.force_login(user)
    return user


def page_of(action: str, conversation_id: str) -> str:
    """Return the address at which something is done with a conversation."""
    return reverse(f"admin:agent_memory_conversation_{action}", args=[quote(conversation_id)])


def told(response: Any) -> list[str]:
    """Return the messages that a response leaves for the next page."""
    return [message.message for message in get_messages(response.wsgi_request)]


def logged() -> list[str]:
    """Return what the admin's log holds, oldest first."""
    entries = LogEntry.objects.order_by("pk").select_related("user")
    return [f"{entry.user}: {entry.object_repr}: {entry.get_change_message()}" for entry in entries]


def title_of(conversation_id: str) -> tuple[str, str]:
    found = store.get(conversation_id)
    assert found is not None
    return found.title, found.title_source


def reserve(conversation_id: str, *, tools: bool = False) -> Reservation:
    """Let a turn reserve a conversation; its tools may have been begun."""
    reservation = store.reserve(conversation_id)
    store.load(conversation_id, reservation=reservation)
    if tools:
        step = Step(items=(ToolCall(id="1", name="act"),), finish_reason="tool_calls")
        heading = Heading(conversation_id)
        assert store.journal(
            reservation, JournalEntry(0, -1, step, heading, Message("user", "Act.")), 60
        )
        assert store.journal(reservation, JournalEntry(0, 0, ToolResult(value="done")), 60)
    return reservation
