"""What the tests of the admin share: something said, and pages as a person sees them."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from typing import Any

from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse

from agent_memory.messages import Message, Step, TextPart, ToolCall, ToolResult, Turn, Usage
from agent_memory.models import ConversationMessage
from agent_memory.participants import Participant
from agent_memory.records import Heading
from agent_memory.stores.database import DatabaseConversationStore

CONVERSATIONS = "/admin/agent_memory/conversation/"
MESSAGES = "/admin/agent_memory/conversationmessage/"

HOSTILE = "<script>alert(1)</script>\"'&amp;\u202e{{ 7 }}"
store = DatabaseConversationStore()


def talk(conversation_id: str, participant: Any = None, **fields: Any) -> None:
    """Append one turn with a tool call."""
    step = Step(
        items=(
            TextPart(text=fields.pop("answer", "Fine.")),
            ToolCall(id="1", name="look", arguments={"at": "sky"}, result=ToolResult(value="blue")),
        ),
        usage=Usage(input_tokens=17, output_tokens=4),
    )
    turn = Turn(user=Message("user", fields.pop("prompt", "Hello")), steps=(step,))
    heading = Heading(conversation_id, Participant.of(participant), **fields)
    store.append(heading, fields.pop("turn", turn))


def seen(response: Any) -> str:
    """Return a page as text that a browser would show."""
    assert response.status_code == 200
    shown = re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", response.content.decode(), flags=re.S)
    return re.sub(r"\s+", " ", html.unescape(shown))


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def elements(page: str) -> list[tuple[str, dict[str, str | None]]]:
    """Return the elements of a page with their attributes, as a browser would find them."""
    parser = _Elements()
    parser.feed(page)
    return parser.found


def page_of(client: Client, url: str) -> str:
    """Return a page as it is sent."""
    response = client.get(url)
    assert response.status_code == 200
    return response.content.decode()


def conversation_page(conversation_id: str) -> str:
    return reverse("admin:agent_memory_conversation_change", args=[quote(conversation_id)])


def message_page(**which: Any) -> str:
    pk = ConversationMessage.objects.get(**which).pk
    return reverse("admin:agent_memory_conversationmessage_change", args=[pk])
