"""
Asking, deciding and stopping.

Each answer is streamed, by a sync view under WSGI and by its async twin under
ASGI. It goes on when the reader leaves, so that a page that is loaded again
finds it; ``stop()`` is what ends it.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_POST

from agent_memory import Approve, Deny, conversation_store, load_file
from agent_memory.exceptions import AgentMemoryError, ConversationConflict
from agent_memory.http_errors import error_payload, error_response
from agent_memory.messages import DocumentPart, ImagePart
from agent_memory.sse import aevent_stream, event_stream
from example_project.chat import access, going_on
from example_project.chat.agents import SupportCoach
from example_project.chat.forms import AskForm, DecideForm

coach = SupportCoach()


class Refused(Exception):
    """A post is answered with an error; ``response`` is that."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__()
        self.response = response


@login_required
@require_POST
@transaction.non_atomic_requests
def ask(request: HttpRequest) -> HttpResponseBase:
    """Stream the answer to the posted message; under WSGI."""
    try:
        bound, prompt = asked(request)
        stream = bound.stream(**prompt)
    except Refused as refused:
        return refused.response
    except AgentMemoryError as error:
        return error_response(error)
    return event_stream(request, going_on.detached(stream, str(bound.current_conversation_id)))


@login_required
@require_POST
@transaction.non_atomic_requests
async def aask(request: HttpRequest) -> HttpResponseBase:
    """See ask(); under ASGI."""
    try:
        bound, prompt = await sync_to_async(asked)(request)
        stream = bound.astream(**prompt)
    except Refused as refused:
        return refused.response
    except AgentMemoryError as error:
        return error_response(error)
    detached = going_on.adetached(stream, str(bound.current_conversation_id))
    return await aevent_stream(request, detached)


@login_required
@require_POST
@transaction.non_atomic_requests
def decide(request: HttpRequest) -> HttpResponseBase:
    """Settle a call that waits, and stream what becomes of its turn; under WSGI."""
    try:
        bound, decision = decided(request)
    except Refused as refused:
        return refused.response
    stream = bound.stream_resume(**decision)
    return event_stream(request, going_on.detached(stream, str(bound.current_conversation_id)))


@login_required
@require_POST
@transaction.non_atomic_requests
async def adecide(request: HttpRequest) -> HttpResponseBase:
    """See decide(); under ASGI."""
    try:
        bound, decision = await sync_to_async(decided)(request)
    except Refused as refused:
        return refused.response
    stream = bound.astream_resume(**decision)
    detached = going_on.adetached(stream, str(bound.current_conversation_id))
    return await aevent_stream(request, detached)


@login_required
@require_POST
@transaction.non_atomic_requests
def stop(request: HttpRequest) -> HttpResponse:
    """End the turn that runs in a conversation."""
    stored, _ = access.find(request.user, request.POST.get("conversation", ""))
    going_on.stop(stored.id)
    return HttpResponse(status=204)


def asked(request: HttpRequest) -> tuple[SupportCoach, dict[str, Any]]:
    """Return the agent, bound to where a message goes, and what it is asked."""
    form = AskForm(request.POST, request.FILES)
    if not form.is_valid():
        raise Refused(invalid(form))
    prompt = {
        "message": form.cleaned_data["text"],
        "attachments": [attached(upload) for upload in request.FILES.getlist("files")],
        "idempotency_key": str(form.cleaned_data["key"]),
    }
    if conversation_id := form.cleaned_data["conversation"]:
        return bound_to(request, conversation_id), prompt
    owner = access.owner(request.user, form.cleaned_data["owner"] or "user").participant
    return started(owner, form.cleaned_data["key"]), prompt


def decided(request: HttpRequest) -> tuple[SupportCoach, dict[str, Any]]:
    """Return the agent, bound to a conversation, and what it resumes with."""
    form = DecideForm(request.POST)
    if not form.is_valid():
        raise Refused(invalid(form))
    note, call = form.cleaned_data["note"], form.cleaned_data["call"]
    decision = Approve() if form.cleaned_data["decision"] == "approve" else Deny(note)
    return bound_to(request, form.cleaned_data["conversation"]), {
        "decisions": {call: decision} if call else None,
        "decided_by": request.user,
        "note": note,
    }


def bound_to(request: HttpRequest, conversation_id: str) -> SupportCoach:
    """Return the agent, bound to a conversation that the user may see; raises ``Http404``."""
    stored, owner = access.find(request.user, conversation_id)
    return coach.continue_conversation(stored.id, owner.participant, must_own=True)


def started(owner: Any, key: uuid.UUID) -> SupportCoach:
    """
    Open a conversation, or find the one that the same message has opened.

    It is there before its first answer is, so that a page that is loaded again finds it.
    """
    participant = conversation_store.participant_of(owner)
    conversation_id = str(uuid.uuid5(key, repr(participant)))
    with suppress(ConversationConflict):
        coach.start_conversation(owner, conversation_id=conversation_id)
    return coach.continue_conversation(conversation_id, owner, must_own=True)


def attached(upload: Any) -> ImagePart | DocumentPart:
    """Return an upload as a part of a message; raises ``Refused``, which names the file."""
    try:
        return load_file(upload)
    except AgentMemoryError as error:
        payload = error_payload(error) | {"file": upload.name}
        raise Refused(JsonResponse(payload, status=payload["status"])) from error


def invalid(form: AskForm | DecideForm) -> HttpResponse:
    text = " ".join(str(text) for texts in form.errors.values() for text in texts)
    return JsonResponse({"code": "invalid", "error": text, "status": 400}, status=400)
