"""Tool calls in the admin: what waits for a person, and what became of the rest."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.text import Truncator
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from agent_memory.admin.deciding import DecisionForms, settle
from agent_memory.admin.lists import AgentFilter, ColumnFilter
from agent_memory.admin.pages import HistoryAdmin
from agent_memory.admin.rows import store_of_rows
from agent_memory.admin.showing import link, pretty, pretty_json, written
from agent_memory.admin.waiting import Waiting, has_expired, is_waiting, url_to_decide
from agent_memory.approvals import Approve, Deny, Edit
from agent_memory.exceptions import AgentMemoryError, ApprovalError, ConversationDoesNotExist
from agent_memory.models import DECISIONS, Conversation, ToolApproval

MAX_DECIDED = 50
"""Calls that one form decides on."""

UNREAD = (
    "message__content",
    "message__parts",
    "message__steps",
    "message__meta",
    "message__replay",
    "message__conversation__metadata",
)
"""Columns that may be long, and tell nothing of a call."""

LOGGED = {
    Approve: _("Approved."),
    Edit: _("Approved with other arguments."),
    Deny: _("Denied."),
}


class ApprovalFilter(admin.SimpleListFilter):
    """What waits, unless somebody asks for the rest."""

    title = _("status")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [*DECISIONS, ("all", _("All"))]

    def choices(self, changelist: Any) -> Any:
        waiting, *others = super().choices(changelist)
        return [{**waiting, "display": _("waiting")}, *others]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        if self.value() is None:
            return queryset.waiting()
        return queryset if self.value() == "all" else queryset.filter(status=self.value())


class ToolFilter(ColumnFilter):
    title = _("tool")
    parameter_name = "tool"


class ToolApprovalAdmin(HistoryAdmin):
    """Tool calls that wait, the oldest first; others where somebody asks for them."""

    actions = ("decide_selected",)
    list_display: tuple[str, ...] = (
        "tool",
        "conversation_link",
        "conversation_participant",
        "short_reason",
        "created_at",
        "expires_at",
    )
    list_filter = (ApprovalFilter, ToolFilter, AgentFilter, "created_at")
    newest_first = ("-id",)
    ordering = ("id",)
    sortable_by = ("created_at",)
    unlisted = ("asked", "arguments_used", "denial", *UNREAD)

    fieldsets = (
        (None, {"fields": ("tool", "reason", "conversation_link", "agent_name", "state")}),
        (_("Arguments"), {"fields": ("arguments", "other_arguments")}),
        (_("Decision"), {"fields": ("decider", "decided_at", "told", "note")}),
        (_("Time"), {"fields": ("created_at", "expires_at")}),
    )
    readonly_fields = (
        "conversation_link",
        "agent_name",
        "state",
        "arguments",
        "other_arguments",
        "decider",
        "told",
    )

    class Media:
        css = {"all": ("agent_memory/waiting.css",)}

    def get_urls(self) -> list[URLPattern]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_decide"
        view = self.admin_site.admin_view(self.decide_view)
        return [path("decide/", view, name=name), *super().get_urls()]

    def has_decide_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(f"{self.opts.app_label}.decide_{self.opts.model_name}")

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell whether somebody may see calls, as who decides on them may."""
        return super().has_view_permission(request, obj) or self.has_decide_permission(request)

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        first = ("decide_link",) if self.has_decide_permission(request) else ()
        last = ("state",) if ApprovalFilter.parameter_name in request.GET else ()
        return (*first, *self.list_display, *last)

    def get_list_display_links(self, request: HttpRequest, list_display: Any) -> Any:
        return ["tool"]

    def get_listed(self, queryset: models.QuerySet[Any]) -> models.QuerySet[Any]:
        return (
            queryset.select_related("message__conversation")
            .defer(*self.unlisted)
            .prefetch_related("message__conversation__participant")
        )

    @admin.action(
        permissions=["decide"], description=_("Decide on selected %(verbose_name_plural)s")
    )
    def decide_selected(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> HttpResponse:
        pks = queryset.order_by("pk").values_list("pk", flat=True)[:MAX_DECIDED]
        return HttpResponseRedirect(url_to_decide(self.admin_site, pks))

    @transaction.non_atomic_requests
    def decide_view(self, request: HttpRequest) -> HttpResponse:
        """Show the calls that an address names and that wait, and settle what somebody decides."""
        if not self.has_decide_permission(request):
            raise PermissionDenied
        numbers = {int(pk) for pk in request.GET.getlist("id") if pk.isdecimal() and len(pk) < 19}
        seen = self.get_queryset(request).using(store_of_rows().writing)
        named = seen.filter(pk__in=numbers)
        named = named.select_related("message__conversation").defer(*UNREAD).order_by("pk")
        approvals: list[Any] = list(named[:MAX_DECIDED])
        waiting = [approval for approval in approvals if is_waiting(approval)]
        self._tell_of_the_rest(request, [each for each in approvals if each not in waiting])
        if not approvals or len(approvals) < min(len(numbers), MAX_DECIDED):
            told = gettext("Tool calls are gone, with their turn or conversation.")
            self.message_user(request, told, messages.WARNING)
        if not waiting:
            return HttpResponseRedirect(self.get_url(ToolApproval, "changelist") or "..")
        forms = DecisionForms(waiting, request.POST if request.method == "POST" else None)
        if request.method == "POST" and forms.is_valid():
            return self._settle(request, forms)
        request.current_app = self.admin_site.name
        url = url_to_decide(self.admin_site, [approval.pk for approval in waiting])
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Decide on tool calls"),
            "original": gettext("Decide"),
            "opts": self.opts,
            "has_view_permission": True,
            "media": self.media,
            "waiting": Waiting(forms, url, among_others=True),
        }
        return TemplateResponse(request, "admin/agent_memory/approvals/page.html", context)

    def _tell_of_the_rest(self, request: HttpRequest, approvals: list[ToolApproval]) -> None:
        """Say of each call that waits no more what has become of it."""
        for approval in approvals:
            told = gettext("“%(tool)s” waits no more: %(state)s.")
            names = {"tool": approval.tool, "state": self.state(approval)}
            self.message_user(request, told % names, messages.WARNING)

    def _settle(self, request: HttpRequest, forms: DecisionForms) -> HttpResponse:
        """Settle what is decided, a conversation at a time; go to the one, or to what waits still."""
        store, note = store_of_rows(), forms.note.cleaned_data["note"]
        decided = forms.by_conversation()
        for conversation_id, calls in decided.items():
            conversation = calls[0].approval.message.conversation
            names = {"conversation": conversation, "count": len(calls)}
            try:
                left = settle(store, conversation_id, calls, decided_by=request.user, note=note)
            except (ApprovalError, ConversationDoesNotExist):
                told = gettext(
                    "Nothing was decided in “%(conversation)s”: what waits there has changed "
                    "meanwhile."
                )
                self.message_user(request, told % names, messages.WARNING)
            except (AgentMemoryError, ValueError) as error:
                self.message_user(request, str(error), messages.ERROR)
            else:
                for call in calls:
                    self.log_change(request, call.approval, str(LOGGED[type(call.made)]))
                self._tell_of_decisions(request, names, left)
        return HttpResponseRedirect(self._url_after(request, list(decided)))

    def _tell_of_decisions(self, request: HttpRequest, names: dict[str, Any], left: int) -> None:
        told = ngettext(
            "%(count)d tool call is decided in “%(conversation)s”.",
            "%(count)d tool calls are decided in “%(conversation)s”.",
            names["count"],
        )
        if left:
            more = ngettext("%(left)d more waits there.", "%(left)d more wait there.", left) % {
                "left": left
            }
        else:
            more = gettext("Nothing waits there any more: a worker runs the turn on.")
        self.message_user(request, f"{told % names} {more}", messages.SUCCESS)

    def _url_after(self, request: HttpRequest, conversation_ids: list[str]) -> str:
        """Return the address of the one conversation, where somebody may see it, or of the list."""
        url = None
        if len(conversation_ids) == 1 and self.admin_site.is_registered(Conversation):
            theirs = self.admin_site.get_model_admin(Conversation)
            if theirs.has_view_permission(request):
                url = self.get_url(Conversation, "change", quote(conversation_ids[0]))
        return url or self.get_url(ToolApproval, "changelist") or ".."

    # Columns and fields.

    @admin.display(description=_("reason"))
    def short_reason(self, approval: ToolApproval) -> str:
        return Truncator(approval.reason).chars(100)

    @admin.display(description=_("conversation"))
    def conversation_link(self, approval: ToolApproval) -> str:
        conversation = approval.message.conversation
        url = self.get_url(Conversation, "change", quote(conversation.pk))
        return str(conversation) if url is None else link(url, conversation)

    @admin.display(description=_("participant"))
    def conversation_participant(self, approval: ToolApproval) -> str:
        return self.participant_link(approval.message.conversation)

    @admin.display(description=_("status"))
    def state(self, approval: ToolApproval) -> str:
        if is_waiting(approval):
            return gettext("waiting")
        if has_expired(approval):
            return str(dict(DECISIONS)["expired"])
        return approval.get_status_display()

    @admin.display(description="")
    def decide_link(self, approval: ToolApproval) -> str:
        if not is_waiting(approval):
            return ""
        url = url_to_decide(self.admin_site, [approval.pk])
        return format_html('<a class="button" href="{}">{}</a>', url, gettext("Decide"))

    @admin.display(description=_("arguments"))
    def arguments(self, approval: ToolApproval) -> str:
        try:
            return pretty(json.loads(approval.asked)["arguments"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return written(approval.asked)

    @admin.display(description=_("other arguments"))
    def other_arguments(self, approval: ToolApproval) -> str:
        used = approval.arguments_used
        return pretty_json(used) if used else self.get_empty_value_display()

    @admin.display(description=_("reason to deny"))
    def told(self, approval: ToolApproval) -> str:
        return pretty_json(approval.denial) if approval.denial else self.get_empty_value_display()

    @admin.display(description=_("decided by"))
    def decider(self, approval: ToolApproval) -> str:
        by = SimpleNamespace(
            participant_type_id=approval.decided_by_type_id,
            participant_key=approval.decided_by_key,
            participant=approval.decided_by,
        )
        return self.participant_link(by)
