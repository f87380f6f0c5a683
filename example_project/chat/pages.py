"""The chat's page, and the pieces of it that its script asks for."""

from __future__ import annotations

from typing import Any

from django.contrib import messages as notices
from django.contrib.auth.decorators import login_required
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from agent_memory import conf, conversation_store
from agent_memory.exceptions import ConversationDoesNotExist, InvalidCursor
from agent_memory.records import StoredConversation
from example_project.chat import access, going_on
from example_project.chat.forms import RenameForm

CONVERSATIONS_PER_PAGE = 20
EXAMPLES = ("Hello", "Remember: blue.", "Refund 12.50 for order A7.")


@login_required
@require_GET
def page(request: HttpRequest) -> HttpResponse:
    """Show a conversation, or the place to start one."""
    context: dict[str, Any] = {
        "owners": access.owners(request.user),
        "examples": EXAMPLES,
        "media_types": ",".join(sorted(conf.media_types())),
        # Each kind of server has its own views for what it streams.
        "ask": "chat:aask" if isinstance(request, ASGIRequest) else "chat:ask",
        "decide": "chat:adecide" if isinstance(request, ASGIRequest) else "chat:decide",
    }
    context["lists"] = [listed(each) for each in context["owners"]]
    if conversation_id := request.GET.get("conversation"):
        stored, owner = access.find(request.user, conversation_id)
        context |= {"owner": owner, **told(stored)}
    return render(request, "chat/page.html", context)


@login_required
@require_GET
def messages(request: HttpRequest) -> HttpResponse:
    """Give one page of a conversation: the newest, or the one of a ``cursor``."""
    stored, _ = access.find(request.user, request.GET.get("conversation", ""))
    try:
        context = told(stored, request.GET.get("cursor"))
    except InvalidCursor:
        return HttpResponse(status=400)
    return render(request, "chat/messages.html", context)


@login_required
@require_GET
def conversations(request: HttpRequest) -> HttpResponse:
    """Give one page of an owner's conversations, latest activity first."""
    owner = access.owner(request.user, request.GET.get("owner", "user"))
    try:
        context = listed(owner, request.GET.get("cursor"))
    except InvalidCursor:
        return HttpResponse(status=400)
    return render(request, "chat/conversations.html", context)


@login_required
@require_POST
def rename(request: HttpRequest) -> HttpResponse:
    """Give a conversation the posted title."""
    stored, _ = access.find(request.user, request.POST.get("conversation", ""))
    form = RenameForm(request.POST)
    if not form.is_valid():
        notices.error(request, " ".join(map(str, form.errors["title"])))
        return to(stored.id)
    try:
        conversation_store.rename(stored.id, form.cleaned_data["title"])
    except ConversationDoesNotExist:
        notices.error(request, "This conversation has been deleted meanwhile.")
        return to()
    return to(stored.id)


@login_required
@require_POST
def delete(request: HttpRequest) -> HttpResponse:
    """Forget a conversation with all it holds."""
    stored, _ = access.find(request.user, request.POST.get("conversation", ""))
    conversation_store.clear(stored.id)
    notices.success(request, "The conversation was deleted.")
    return to()


def told(stored: StoredConversation, cursor: str | None = None) -> dict[str, Any]:
    """Return what a template shows of a conversation: a page of messages, oldest first."""
    answering = going_on.is_running(stored.id)  # asked first, or its end would be missed
    read = conversation_store.paginate_conversation_messages(stored.id, cursor=cursor)
    said = [message for message in read if message.role in ("user", "assistant")]
    return {
        "conversation": stored,
        "said": said[::-1],
        "next_cursor": read.next_cursor,
        "pending": conversation_store.pending_approvals_for(stored.id),
        "answering": answering,
    }


def listed(owner: access.Owner, cursor: str | None = None) -> dict[str, Any]:
    """Return what a template shows of an owner's conversations."""
    found = conversation_store.list_conversations(
        owner.participant, per_page=CONVERSATIONS_PER_PAGE, cursor=cursor
    )
    return {"owner": owner, "conversations": found}


def to(conversation_id: str | None = None) -> HttpResponseRedirect:
    """Lead to the page of a conversation, or to the one that starts afresh."""
    query = {"conversation": conversation_id} if conversation_id else {}
    return HttpResponseRedirect(reverse("chat:page", query=query))
