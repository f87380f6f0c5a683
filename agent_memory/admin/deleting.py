"""Conversations deleted on Django's own pages, through the store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.actions import delete_selected
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agent_memory.admin.pages import HistoryAdmin
from agent_memory.admin.rows import store_of_rows
from agent_memory.models import (
    Conversation,
    ConversationAttachment,
    ConversationMessage,
    ToolApproval,
)
from agent_memory.stores.database.terms import DatabaseMilliseconds

MAX_DELETED = 500
"""Conversations that one form deletes; it has a field for each, and Django takes 1000."""


class ConversationDeletion(HistoryAdmin):
    """Lets who may delete conversations, one by one or many selected in the list."""

    actions = ("delete_selected",)
    delete_confirmation_template = "admin/agent_memory/actions/delete.html"
    delete_selected_confirmation_template = "admin/agent_memory/actions/delete_selected.html"

    def may(self, request: HttpRequest, action: str) -> bool:
        """Tell whether somebody may see conversations and do this with them."""
        permission = f"{self.opts.app_label}.{action}_{self.opts.model_name}"
        return self.has_view_permission(request) and request.user.has_perm(permission)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, "delete")

    @admin.action(permissions=["delete"], description=_("Delete selected %(verbose_name_plural)s"))
    def delete_selected(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> Any:
        if queryset[: MAX_DELETED + 1].count() > MAX_DELETED:
            told = gettext("Select %(count)d conversations at most.") % {"count": MAX_DELETED}
            self.message_user(request, told, messages.ERROR)
            return None
        response: Any = delete_selected(self, request, queryset)
        if response is not None:
            response.context_data["answering"] = _answering(queryset)
        return response

    def render_delete_form(self, request: HttpRequest, context: dict[str, Any]) -> Any:
        one = Conversation.objects.filter(pk=context["object"].pk)
        return super().render_delete_form(request, context | {"answering": _answering(one)})

    def get_deleted_objects(self, objs: Iterable[Any], request: HttpRequest) -> Any:
        """Return titles and the counts of what goes, which is not loaded; nothing is in the way."""
        found = list(objs)
        pks = [conversation.pk for conversation in found]
        kinds: tuple[tuple[type[models.Model], str], ...] = (
            (ConversationMessage, "conversation"),
            (ConversationAttachment, "conversation"),
            (ToolApproval, "message__conversation"),
        )
        counts: dict[Any, int] = {self.opts.verbose_name_plural: len(found)}
        for model, leads in kinds:
            rows = model._base_manager.filter(**{f"{leads}__in": pks})
            counts[model._meta.verbose_name_plural] = rows.count()
        return [str(conversation) for conversation in found], counts, set(), []

    def response_delete(self, request: HttpRequest, *args: Any) -> HttpResponse:
        """Lead to the list, which Django does only for who may change something."""
        super().response_delete(request, *args)
        return HttpResponseRedirect(self.get_url(Conversation, "changelist") or "..")

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        store_of_rows().clear(obj.pk)

    def delete_queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> None:
        store = store_of_rows()
        for pk in queryset.values_list("pk", flat=True):
            store.clear(pk)


def _answering(found: models.QuerySet[Any]) -> int:
    """Return in how many conversations a turn runs."""
    return found.filter(reserved_until__gt=DatabaseMilliseconds()).count()
