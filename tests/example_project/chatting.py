"""What the tests of the chat do over HTTP, and what they find stored."""

from __future__ import annotations

import uuid
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import AsyncClient
from django.urls import reverse

from agent_memory import conversation_store
from agent_memory.messages import Message, Step, TextPart, Turn
from agent_memory.participants import Participant
from agent_memory.records import Heading
from tests.sse_parsing import ServerSent, parse


def talk(conversation_id: str, owner: Any, *, turns: int = 1, title: str = "") -> str:
    heading = Heading(conversation_id, Participant.of(owner), "coach", title, title and "draft")
    for number in range(turns):
        step = Step(items=(TextPart(text=f"Answer {number}."),))
        conversation_store.append(
            heading, Turn(user=Message("user", f"Question {number}"), steps=(step,))
        )
    return conversation_id


def message(text: str = "Remember: blue.", **fields: Any) -> dict[str, Any]:
    return {"text": text, "key": uuid.uuid4().hex, **fields}


def post(view: str, data: dict[str, Any], name: str = "ada") -> tuple[Any, list[ServerSent]]:
    """Post to an async view, under ASGI; return the response and its events."""

    async def ask() -> tuple[Any, list[ServerSent]]:
        client = AsyncClient()
        await client.aforce_login(await User.objects.aget(username=name))
        response = await client.post(reverse(f"chat:{view}"), data)
        if not response.streaming:
            return response, []
        return response, parse(b"".join([part async for part in response]))

    return async_to_sync(ask)()


def said(conversation_id: str) -> list[str]:
    page = conversation_store.paginate_conversation_messages(conversation_id)
    return [each.content for each in page][::-1]
