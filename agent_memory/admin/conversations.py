"""Conversations in the admin: the list, and a page each that reads as what was said."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    StreamingHttpResponse,
)
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext_lazy as _

from agent_memory.admin import search
from agent_memory.admin.actions import ConversationActions
from agent_memory.admin.exports import as_json, download
from agent_memory.admin.lists import (
    AgentFilter,
    HistoryList,
    ParticipantModelFilter,
    StateFilter,
)
from agent_memory.admin.prose import Prose
from agent_memory.admin.showing import grouped, link, pretty_json, tokens_text
from agent_memory.admin.states import answering_since, state_of, with_clock
from agent_memory.admin.transcript import page_before
from agent_memory.admin.waiting import waiting_on
from agent_memory.exceptions import InvalidConversationId, InvalidCursor
from agent_memory.models import Conversation, ConversationMessage
from agent_memory.records import check_conversation_id
from agent_memory.stores.cursors import read_message_cursor
from agent_memory.views import AttachmentView

TRANSCRIPT = "admin/agent_memory/conversation/transcript.html"
MAX_HEADING = 80


def title_of(conversation: Conversation) -> str:
    return conversation.title.strip() or conversation.pk


class ConversationAttachmentView(AttachmentView):
    """An attachment of a conversation that somebody was found to be allowed to read."""

    conversation_id = ""

    def may_see(self, request: HttpRequest, conversation: Conversation) -> bool:
        return bool(conversation.pk == self.conversation_id)


class ConversationList(HistoryList):
    """A list whose links lead to the end of a conversation, where the newest was said."""

    def url_for_result(self, result: Any) -> str:
        return f"{super().url_for_result(result)}#newest"


class ConversationAdmin(ConversationActions):
    """Conversations, latest activity first; those merely reserved are left out."""

    list_display = (
        "heading",
        "participant_link",
        "agent_name",
        "state",
        "message_link",
        "tokens",
        "last_activity",
    )
    list_filter = (
        search.SearchedFilter,
        StateFilter,
        AgentFilter,
        ParticipantModelFilter,
        "last_activity",
    )
    ordering = newest_first = ("-last_activity", "-id")
    search_fields = ("title",)
    search_help_text = _(
        "Words of a title, a participant's name, or the whole of an id or a participant's key."
    )
    sortable_by = ("last_activity",)
    unlisted = ("metadata",)
    change_form_template = TRANSCRIPT

    class Media:
        css = {"all": ("agent_memory/transcript.css",)}

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        return super().get_queryset(request).filter(opened_at__isnull=False)

    def get_listed(self, queryset: models.QuerySet[Any]) -> Any:
        return with_clock(super().get_listed(queryset))

    def get_search_results(
        self, request: HttpRequest, queryset: models.QuerySet[Any], search_term: str
    ) -> tuple[Any, bool]:
        """Find conversations by three searches, since no index serves one for all."""
        term = search_term.strip()
        if not term:
            return queryset, False
        within = search.searched(request, queryset, "last_activity")
        titled, _doubled = super().get_search_results(request, within, term)
        owned = queryset.filter(search.owned(request, self, term))
        keys = {term, *search.newest_keys(titled, self), *search.newest_keys(owned, self)}
        return queryset.filter(pk__in=keys), False

    # A list.

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ConversationList]:
        return ConversationList

    @admin.display(description=_("conversation"))
    def heading(self, conversation: Conversation) -> str:
        """Show the title, as much of it as a list has room for."""
        return Truncator(title_of(conversation)).chars(MAX_HEADING)

    @admin.display(description=_("status"))
    def state(self, conversation: Any) -> SafeString:
        state = state_of(conversation)
        return format_html(
            '<span class="agent-memory-badge" data-state="{}">{}</span>', state.value, state.label
        )

    @admin.display(description=_("turns"))
    def message_link(self, conversation: Conversation) -> str:
        url = self.get_url(ConversationMessage, "changelist")
        turns = grouped(conversation.turn_count)
        if url is None:
            return turns
        return link(f"{url}?{urlencode({'conversation__id__exact': conversation.id})}", turns)

    @admin.display(description=_("tokens"))
    def tokens(self, conversation: Conversation) -> str:
        return grouped(conversation.input_tokens + conversation.output_tokens)

    # A conversation.

    def get_urls(self) -> list[URLPattern]:
        name = f"{self.opts.app_label}_{self.opts.model_name}"
        see = self.admin_site.admin_view
        return [
            path("<path:object_id>/json/", see(self.json_view), name=f"{name}_json"),
            path("<path:object_id>/markdown/", see(self.markdown_view), name=f"{name}_markdown"),
            path(
                "<path:object_id>/attachments/<str:attachment_id>/",
                see(self.attachment_view, cacheable=True),
                name=f"{name}_attachment",
            ),
            *super().get_urls(),
        ]

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        try:
            check_conversation_id(object_id)
        except InvalidConversationId:
            return None
        found = with_clock(self.get_queryset(request)).prefetch_related("participant")
        return found.filter(pk=object_id).first()

    def may_read(self, request: HttpRequest) -> bool:
        """Tell whether somebody may see what was said, beside that something was."""
        permission = "agent_memory.view_conversationmessage"
        return self.has_view_permission(request) and request.user.has_perm(permission)

    def readable_or_404(self, request: HttpRequest, object_id: str) -> Any:
        """Return a conversation that somebody may read; raises ``PermissionDenied``."""
        if not self.may_read(request):
            raise PermissionDenied
        conversation = self.get_object(request, unquote(object_id))
        if conversation is None:
            raise Http404
        return conversation

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show what was said, newest page first; ``before`` is the position where a page ends."""
        if not self.has_view_permission(request) or request.method not in ("GET", "HEAD"):
            raise PermissionDenied
        conversation = self.get_object(request, unquote(object_id))
        try:
            before = read_message_cursor(request.GET.get("before"))
        except InvalidCursor as error:
            raise Http404 from error
        if conversation is None:
            raise Http404
        may_read = self.may_read(request)
        context = {
            **self.admin_site.each_context(request),
            "title": title_of(conversation),
            "subtitle": None,
            "opts": self.opts,
            "original": conversation,
            "has_view_permission": True,
            "media": self.media,
            "participant": self.participant_link(conversation),
            "agent": self.agent_name(conversation),
            "state": self.state(conversation),
            "turns": self.message_link(conversation),
            "tokens": tokens_text(conversation) or self.get_empty_value_display(),
            "metadata": pretty_json(conversation.metadata),
            "answering_since": answering_since(conversation),
            "may_read": may_read,
            "page": page_before(conversation, before) if may_read else None,
            "stored_pages": self.get_url(ConversationMessage, "changelist"),
            "waiting": waiting_on(request, conversation, self.admin_site) if may_read else None,
            "conversation_actions": self.conversation_actions(request, conversation),
            **(extra_context or {}),
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, self.change_form_template or TRANSCRIPT, context)

    def json_view(self, request: HttpRequest, object_id: str) -> StreamingHttpResponse:
        conversation = self.readable_or_404(request, object_id)
        return download(request, conversation, "json", "application/json", as_json(conversation))

    def markdown_view(self, request: HttpRequest, object_id: str) -> StreamingHttpResponse:
        conversation = self.readable_or_404(request, object_id)
        return download(request, conversation, "md", "text/markdown", Prose(conversation))

    def attachment_view(
        self, request: HttpRequest, object_id: str, attachment_id: str
    ) -> HttpResponseBase:
        conversation = self.readable_or_404(request, object_id)
        view = ConversationAttachmentView.as_view(conversation_id=conversation.pk)
        return view(request, attachment_id=attachment_id)
