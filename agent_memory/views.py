"""Attachments over HTTP, for those who may see their conversation."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import Http404, HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.utils.cache import get_conditional_response, patch_cache_control
from django.utils.http import content_disposition_header, quote_etag
from django.views.generic import View

from agent_memory.exceptions import AttachmentDoesNotExist
from agent_memory.models import Conversation, ConversationAttachment
from agent_memory.stores.database.files import pieces

logger = logging.getLogger("agent_memory")

UNKNOWN = "application/octet-stream"
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
}


class AttachmentView(View):
    """
    Sends an attachment of the database store, by its id; 404 for what one may not see.

    Images are shown, all else is downloaded, and nothing of it ever runs in a
    browser. Override ``may_see()`` to say who may see what, and put
    ``LoginRequiredMixin`` before it to send strangers to the login.
    """

    http_method_names = ["get", "head", "options"]
    inline_types = ("image/png", "image/jpeg", "image/gif", "image/webp")
    """Media types that a browser is told, and may show."""

    def may_see(self, request: HttpRequest, conversation: Conversation) -> bool:
        """Tell whether a request may see a conversation: by default, whether it is its user's."""
        user = request.user
        return user.is_authenticated and bool(conversation.participant == user)

    def get(self, request: HttpRequest, attachment_id: str) -> HttpResponseBase:
        row = self.find(request, attachment_id)
        etag = quote_etag(row.sha256)
        response = get_conditional_response(request, etag=etag) or self.respond(request, row)
        response["ETag"] = etag
        # Who may see it may change: a browser asks again, and the tag spares it the bytes.
        patch_cache_control(response, private=True, no_cache=True)
        return response

    def find(self, request: HttpRequest, attachment_id: str) -> ConversationAttachment:
        """Return the row of an attachment; raises ``Http404``."""
        found = ConversationAttachment.objects.select_related("conversation")
        row = found.filter(public_id=attachment_id, conversation__opened_at__isnull=False).first()
        if row is None or not self.may_see(request, row.conversation):
            raise Http404
        return row

    def respond(self, request: HttpRequest, row: ConversationAttachment) -> HttpResponseBase:
        """Return the bytes, which are read while they are sent; raises ``Http404``."""
        shown = row.media_type in self.inline_types
        try:
            parts = iter(()) if request.method == "HEAD" else pieces(row)
        except AttachmentDoesNotExist as error:
            logger.error("%s", error)
            raise Http404 from error
        response = StreamingHttpResponse(
            as_sent(request, parts),
            content_type=row.media_type if shown else UNKNOWN,
            headers=HEADERS | {"Content-Length": str(row.size)},
        )
        disposition = content_disposition_header(not shown, row.file_name)
        if disposition:
            response["Content-Disposition"] = disposition
        return response


def as_sent(request: HttpRequest, parts: Iterator[bytes]) -> Any:
    """Return what a streaming response takes, so that it is read while it is sent."""
    return _awaited(parts) if isinstance(request, ASGIRequest) else parts


async def _awaited(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    following: Any = sync_to_async(next)
    while (part := await following(parts, None)) is not None:
        yield part
