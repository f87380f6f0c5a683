"""What waits in a conversation for a person: shown on its page, and decided on where one may."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from agent_memory.admin.deciding import DecisionForms
from agent_memory.models import Conversation, ToolApproval


@dataclass(frozen=True, slots=True)
class Waiting:
    """The calls that wait, as forms; without an ``url`` they are only shown."""

    forms: DecisionForms
    url: str | None = None
    among_others: bool = False
    """Whether the page tells of more than one conversation."""


def is_waiting(approval: ToolApproval) -> bool:
    """Tell whether a call can be decided on. See ToolApproval.objects.waiting()."""
    return (
        approval.status == "pending"
        and approval.message.status == "paused"
        and not has_expired(approval)
    )


def has_expired(approval: ToolApproval) -> bool:
    """Tell whether nobody has decided on a call in time."""
    return approval.status == "expired" or (
        approval.status == "pending"
        and approval.expires_at is not None
        and approval.expires_at <= timezone.now()
    )


def url_to_decide(site: admin.AdminSite, pks: Iterable[int]) -> str:
    """Return the address of the page that decides on calls."""
    url = reverse("admin:agent_memory_toolapproval_decide", current_app=site.name)
    return f"{url}?{urlencode([('id', pk) for pk in pks])}"


def waiting_on(
    request: HttpRequest, conversation: Conversation, site: admin.AdminSite = admin.site
) -> Waiting | None:
    """Return what a conversation waits for, in one statement; ``None``: no turn of it is paused."""
    if conversation.paused_position is None:
        return None
    found = ToolApproval.objects.using(conversation._state.db).waiting()
    found = found.filter(message__conversation=conversation)
    forms = DecisionForms(found)
    if not site.is_registered(ToolApproval):
        return Waiting(forms)
    theirs: Any = site.get_model_admin(ToolApproval)
    may_decide = theirs.has_decide_permission(request)
    pks = [form.approval.pk for form in forms.calls]
    return Waiting(forms, url_to_decide(site, pks) if may_decide else None)
