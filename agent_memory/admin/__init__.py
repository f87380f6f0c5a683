"""
Conversations in the admin, to be read.

Nothing is added, changed or deleted here: conversations are what was said, and
``conversation_store.clear()`` forgets one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.admin.views.main import ChangeList
from django.db import models
from django.db.models.functions import Left
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from agent_memory.admin.lists import (
    AgentFilter,
    BoundedPaginator,
    HistoryList,
    ParticipantModelFilter,
    RoleFilter,
    StatusFilter,
    content_type,
)
from agent_memory.exceptions import InvalidConversationId, UnsupportedFormat
from agent_memory.models import Conversation, ConversationMessage
from agent_memory.records import check_conversation_id, readable
from agent_memory.stores import codec

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[models.Model]
else:
    _ModelAdmin = admin.ModelAdmin

EXCERPT = 100

TOKENS = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")


def link(url: str, text: object) -> SafeString:
    return format_html('<a href="{}">{}</a>', url, text)


def block(text: str) -> SafeString:
    """Show text as it was written; a lone surrogate has no bytes to be sent as."""
    return format_html('<pre class="agent-memory-text">{}</pre>', readable(text))


def pretty(value: Any) -> SafeString:
    return block(json.dumps(value, indent=2, ensure_ascii=False))


def pretty_json(text: str) -> SafeString:
    """Show JSON with indents, and what cannot be read as JSON as it is."""
    try:
        return pretty(json.loads(text))
    except (ValueError, RecursionError):
        return block(text)


class HistoryAdmin(_ModelAdmin):
    """
    Base of pages that are read and never written.

    ``unlisted`` names the columns that a list never loads.
    """

    unlisted: tuple[str, ...] = ()

    actions = None
    list_per_page = 50
    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER

    class Media:
        css = {"all": ("agent_memory/admin.css",)}

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return HistoryList

    def get_listed(self, queryset: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Return the rows of a list without what it does not show, and with their participants."""
        return queryset.defer(*self.unlisted).prefetch_related("participant")

    def get_url(self, model: type[models.Model], page: str, *args: str) -> str | None:
        """Return the address of a model's page; ``None``: it is not in this admin."""
        if not self.admin_site.is_registered(model):
            return None
        meta = model._meta
        name = f"admin:{meta.app_label}_{meta.model_name}_{page}"
        try:
            return reverse(name, args=args, current_app=self.admin_site.name)
        except NoReverseMatch:
            return None

    @admin.display(description=_("participant"))
    def participant_link(self, obj: Any) -> str:
        if obj.participant_type_id is None:
            return self.get_empty_value_display()
        participant = obj.participant
        if participant is None:
            owner = content_type(obj.participant_type_id)
            return f"{owner.app_label}.{owner.model} {obj.participant_key}"
        text = f"{participant._meta.verbose_name}: {participant}"
        url = self.get_url(type(participant), "change", quote(participant.pk))
        return text if url is None else link(url, text)

    @admin.display(description=_("agent"))
    def agent_name(self, obj: Any) -> str:
        """Show the last part of a label, which by default is the class; the rest on hovering."""
        if not obj.agent:
            return self.get_empty_value_display()
        name = obj.agent.rpartition(".")[2] or obj.agent
        return format_html('<span title="{}">{}</span>', obj.agent, name)


@admin.register(Conversation)
class ConversationAdmin(HistoryAdmin):
    """Conversations, latest activity first; those merely reserved are left out."""

    list_display = ("heading", "participant_link", "agent_name", "message_link", "last_activity")
    list_filter = (AgentFilter, ParticipantModelFilter, "last_activity")
    ordering = ("-last_activity", "-id")
    search_fields = ("title", "id__exact", "participant_key__exact")
    search_help_text = _("Words of a title, or the whole of an id or a participant's key.")
    sortable_by = ("message_link", "last_activity")
    unlisted = ("metadata",)

    fieldsets = (
        (None, {"fields": ("title", "id", "participant_link", "agent")}),
        (_("Activity"), {"fields": ("opened_at", "last_activity", "message_link")}),
        (_("Tokens"), {"fields": (TOKENS,)}),
        (_("Metadata"), {"fields": ("pretty_metadata",), "classes": ("collapse",)}),
    )
    readonly_fields = ("participant_link", "message_link", "pretty_metadata")

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        return super().get_queryset(request).filter(opened_at__isnull=False)

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        try:
            check_conversation_id(object_id)
        except InvalidConversationId:
            return None
        return super().get_object(request, object_id, from_field)

    @admin.display(description=_("conversation"))
    def heading(self, conversation: Conversation) -> str:
        return conversation.title.strip() or conversation.id

    @admin.display(description=_("turns"), ordering="turn_count")
    def message_link(self, conversation: Conversation) -> str:
        url = self.get_url(ConversationMessage, "changelist")
        count = conversation.turn_count
        turns = ngettext("%(count)d turn", "%(count)d turns", count) % {"count": count}
        if url is None:
            return turns
        return link(f"{url}?{urlencode({'conversation__id__exact': conversation.id})}", turns)

    @admin.display(description=_("metadata"))
    def pretty_metadata(self, conversation: Conversation) -> SafeString:
        return pretty_json(conversation.metadata)


@admin.register(ConversationMessage)
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
    list_filter = (RoleFilter, StatusFilter, AgentFilter, "created_at")
    list_select_related = ("conversation",)
    search_fields = ("content",)
    search_help_text = _("Words of a message.")
    sortable_by = ()
    unlisted = ("content", "parts", "steps", "meta", "replay", "conversation__metadata")

    fieldsets = (
        (None, {"fields": ("conversation", "position", "role", "status", "text", "tool_calls")}),
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

    @admin.display(description=_("message"))
    def excerpt(self, message: Any) -> str:
        words = " ".join(message.beginning.split())
        if not words:
            return gettext("(no text)")
        return words if len(words) <= EXCERPT else f"{words[: EXCERPT - 1]}\u2026"

    @admin.display(description=_("conversation"))
    def conversation_link(self, message: ConversationMessage) -> str:
        url = self.get_url(Conversation, "change", quote(message.conversation_id))
        return str(message.conversation) if url is None else link(url, message.conversation)

    @admin.display(description=_("from"))
    def sender(self, message: ConversationMessage) -> str:
        if message.role == "assistant":
            return self.agent_name(message)
        return self.participant_link(message)

    @admin.display(description=_("content"))
    def text(self, message: ConversationMessage) -> SafeString:
        return block(message.content)

    @admin.display(description=_("tool calls"))
    def tool_calls(self, message: ConversationMessage) -> str:
        try:
            (steps,) = codec.decode_steps([message.steps])
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
        return pretty_json(message.parts)

    @admin.display(description=_("steps"))
    def pretty_steps(self, message: ConversationMessage) -> SafeString:
        return pretty_json(message.steps)

    @admin.display(description=_("meta"))
    def pretty_meta(self, message: ConversationMessage) -> SafeString:
        return pretty_json(message.meta)
