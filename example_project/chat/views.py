"""The commonest way to use an agent that remembers: the user's last conversation goes on."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_POST

from agent_memory.exceptions import AgentMemoryError
from agent_memory.http_errors import error_response
from agent_memory.responses import Response
from agent_memory.sse import aevent_stream, event_stream
from example_project.chat.agents import SupportCoach

coach = SupportCoach()


@login_required
@require_POST
@transaction.non_atomic_requests
def chat(request: HttpRequest) -> HttpResponse:
    """Answer the posted ``text`` as JSON."""
    if not (text := request.POST.get("text", "").strip()):
        return nothing_asked()
    try:
        reply = coach.continue_last_conversation(request.user).prompt(text)
    except AgentMemoryError as error:
        return error_response(error)
    return answered(reply)


@login_required
@require_POST
@transaction.non_atomic_requests
async def achat(request: HttpRequest) -> HttpResponse:
    """See chat()."""
    if not (text := request.POST.get("text", "").strip()):
        return nothing_asked()
    user = await request.auser()
    try:
        reply = await coach.continue_last_conversation(user).aprompt(text)
    except AgentMemoryError as error:
        return error_response(error)
    return answered(reply)


@login_required
@require_POST
@transaction.non_atomic_requests
def stream_chat(request: HttpRequest) -> HttpResponseBase:
    """Answer the posted ``text`` as server-sent events; under WSGI."""
    if not (text := request.POST.get("text", "").strip()):
        return nothing_asked()
    return event_stream(request, coach.continue_last_conversation(request.user).stream(text))


@login_required
@require_POST
@transaction.non_atomic_requests
async def astream_chat(request: HttpRequest) -> HttpResponseBase:
    """See stream_chat(); under ASGI."""
    if not (text := request.POST.get("text", "").strip()):
        return nothing_asked()
    user = await request.auser()
    return await aevent_stream(request, coach.continue_last_conversation(user).astream(text))


def answered(reply: Response) -> JsonResponse:
    return JsonResponse({"text": reply.text, "conversation_id": reply.conversation_id})


def nothing_asked() -> JsonResponse:
    return JsonResponse({"error": "Post a text."}, status=400)
