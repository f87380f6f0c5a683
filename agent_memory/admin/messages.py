"""Messages in the admin: a list to search in, and a page each with what is stored."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.db import models
from django.db.models.functions import Left
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agent_memory.admin import search
from agent_memory.admin.lists import AgentFilter, RoleFilter, StatusFilter
from agent_memory.admin.pages import TOKENS, HistoryAdmin
from agent_memory.admin.showing import link, pretty, pretty_json, written
from agent_memory.admin.transcript import ROWS
from agent_memory.exceptions import UnsupportedFormat
from agent_memory.models import Conversation, ConversationMessage
from agent_memory.stores import codec

EXCERPT = 100


class ConversationMessageAdmin(HistoryAdmin):
    """Messages, newest first; those of one conversation in the order in which they were said."""

    list_display = (
        "excerpt",
        "role",
        "status",
        "conversation_link",
        "sender",
        "created_at",
    )
    list_filter = (search.SearchedFilter, RoleFilter, StatusFilter, AgentFilter, "created_at")
    list_select_related = ("conversation",)
    search_fields = ("content",)
    search_help_text = _("Words of a message.")
    sortable_by = ()
    unlisted = ("content", "parts", "steps", "meta", "replay", "conversation__metadata")

    fieldsets = (
        (
            None,
            {"fields": ("conversation_link", "position", "role", "status", "text", "tool_calls")},
        ),
        (_("Who"), {"fields": ("participant_link", "agent", "provider", "model")}),
        (
            _("How it ended"),
            {"fields": ("finish_reason", "error_code", "created_at", "finished_at")},
        ),
        (_("Tokens"), {"fields": (TOKENS,)}),
        (
            _("As stored"),
            {"fields": ("pretty_parts", "pretty_steps", "pretty_meta"), "classes": ("collapse",)},
        ),
    )
    readonly_fields = (
        "conversation_link",
        "text",
        "tool_calls",
        "participant_link",
        "pretty_parts",
        "pretty_steps",
        "pretty_meta",
    )

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        return ("position",) if "conversation__id__exact" in request.GET else ("-id",)

    def get_listed(self, queryset: models.QuerySet[Any]) -> Any:
        return super().get_listed(queryset).annotate(beginning=Left("content", 2 * EXCERPT))

    def get_search_results(
        self, request: HttpRequest, queryset: models.QuerySet[Any], search_term: str
    ) -> tuple[Any, bool]:
        if search_term.strip() and "conversation__id__exact" not in request.GET:
            queryset = search.searched(request, queryset, "id")
        return super().get_search_results(request, queryset, search_term)

    @admin.display(description=_("message"))
    def excerpt(self, message: Any) -> str:
        words = " ".join(message.beginning.split())
        if not words:
            return gettext("(no text)")
        return words if len(words) <= EXCERPT else f"{words[: EXCERPT - 1]}\u2026"

    @admin.display(description=_("conversation"))
    def conversation_link(self, message: ConversationMessage) -> str:
        """Link to where the conversation has the message, in the middle of a page."""
        url = self.get_url(Conversation, "change", quote(message.conversation_id))
        if url is None:
            return str(message.conversation)
        end = message.position // 2 * 2 + ROWS // 2
        place = f"{url}?before={end}#message-{message.position}"
        return link(place, message.conversation)

    @admin.display(description=_("from"))
    def sender(self, message: ConversationMessage) -> str:
        if message.role == "assistant":
            return self.agent_name(message)
        return self.participant_link(message)

    @admin.display(description=_("content"))
    def text(self, message: ConversationMessage) -> SafeString:
        return written(message.content)

    @admin.display(description=_("tool calls"))
    def tool_calls(self, message: ConversationMessage) -> str:
        try:
            (steps,) = codec.decode_steps([(message.steps, message.content)])
        except (UnsupportedFormat, ValueError, RecursionError):
            return gettext("They cannot be read; see below what is stored.")
        items = [item for step in steps for item in step.items if item.type.endswith("tool_call")]
        told = [
            item.model_dump(exclude_defaults=True, exclude={"provider_metadata"}) for item in items
        ]
        return (
            format_html_join("", "{}", ((pretty(call),) for call in told))
            or self.get_empty_value_display()
        )

    @admin.display(description=_("parts"))
    def pretty_parts(self, message: ConversationMessage) -> SafeString:
        return pretty_json(codec.whole_parts((message.parts, message.content)))

    @admin.display(description=_("steps"))
    def pretty_steps(self, message: ConversationMessage) -> SafeString:
        return pretty_json(codec.whole_steps((message.steps, message.content)))

    @admin.display(description=_("meta"))
    def pretty_meta(self, message: ConversationMessage) -> SafeString:
        return pretty_json(message.meta)
