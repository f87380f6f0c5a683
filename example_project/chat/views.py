"""The commonest way to use an agent that remembers: the user's last conversation goes on."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_POST

from agent_memory.exceptions import ConversationBusy, ProviderUnavailable
from agent_memory.responses import Response
from example_project.chat.agents import SupportCoach

coach = SupportCoach()


@login_required
@require_POST
@transaction.non_atomic_requests
def chat(request: HttpRequest) -> HttpResponse:
    """Answer the posted ``text`` as JSON."""
    if not (text := request.POST.get("text", "").strip()):
        return JsonResponse({"error": "Post a text."}, status=400)
    try:
        reply = coach.continue_last_conversation(request.user).prompt(text)
    except (ConversationBusy, ProviderUnavailable) as error:
        return try_again(error)
    return answered(reply)


@login_required
@require_POST
@transaction.non_atomic_requests
async def achat(request: HttpRequest) -> HttpResponse:
    """See chat()."""
    if not (text := request.POST.get("text", "").strip()):
        return JsonResponse({"error": "Post a text."}, status=400)
    user = await request.auser()
    try:
        reply = await coach.continue_last_conversation(user).aprompt(text)
    except (ConversationBusy, ProviderUnavailable) as error:
        return try_again(error)
    return answered(reply)


def answered(reply: Response) -> JsonResponse:
    return JsonResponse({"text": reply.text, "conversation_id": reply.conversation_id})


def try_again(error: ConversationBusy | ProviderUnavailable) -> JsonResponse:
    status = 409 if isinstance(error, ConversationBusy) else 503
    return JsonResponse({"error": str(error)}, status=status)
