"""Calls that wait in tests of the admin, and the form that decides on them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.test import Client
from django.urls import reverse
from django.utils.http import urlencode

from agent_memory import Message
from agent_memory.approvals import PendingApproval
from agent_memory.messages import Step, ToolCall, Turn
from agent_memory.models import ToolApproval
from agent_memory.records import Heading
from tests.admin.saying import store

APPROVALS = "/admin/agent_memory/toolapproval/"
HOUR = timedelta(hours=1)
PAY = ("pay", {"to": "Ada", "amount": 40})


def pause(
    conversation_id: str,
    *calls: tuple[str, dict[str, Any]],
    expires_at: datetime | None = None,
    **fields: Any,
) -> list[ToolApproval]:
    """Append a turn that waits for decisions on calls of ids a, b, c...; return their rows."""
    asked = tuple(
        ToolCall(id=call_id, name=name, arguments=arguments, approval_reason="It costs.")
        for call_id, (name, arguments) in zip("abcdefghij", calls, strict=False)
    )
    step = Step(items=asked, finish_reason="tool_calls")
    turn = Turn(user=Message("user", "Pay."), steps=(step,), status="paused")
    waiting = tuple(
        PendingApproval(call.id, call.name, call.arguments, "It costs.", expires_at)
        for call in asked
    )
    store.append(Heading(conversation_id, approvals=waiting, **fields), turn)
    found = ToolApproval.objects.filter(message__conversation=conversation_id)
    return list(found.order_by("-pk")[: len(calls)][::-1])


def url_of(*approvals: ToolApproval) -> str:
    query = urlencode([("id", approval.pk) for approval in approvals])
    return f"{reverse('admin:agent_memory_toolapproval_decide')}?{query}"


def detail(approval: ToolApproval) -> str:
    return reverse("admin:agent_memory_toolapproval_change", args=[approval.pk])


def decide(client: Client, *made: tuple[ToolApproval, dict[str, str]], note: str = "") -> Any:
    """Post the form of some calls."""
    data = {
        f"call-{approval.pk}-{name}": value
        for approval, fields in made
        for name, value in fields.items()
    }
    return client.post(url_of(*(approval for approval, _ in made)), {"note": note, **data})


def status_of(*approvals: ToolApproval) -> list[str]:
    return [ToolApproval.objects.get(pk=approval.pk).status for approval in approvals]
