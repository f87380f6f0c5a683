"""Pages of the admin that are read and never written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.admin.views.main import ChangeList
from django.db import models
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from agent_memory.admin.lists import BoundedPaginator, HistoryList, content_type
from agent_memory.admin.showing import link

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[models.Model]
else:
    _ModelAdmin = admin.ModelAdmin

TOKENS = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")


def participant_text(participant: Any, type_id: int | None, key: str) -> str:
    """Return a participant in words: that of a row, ``None`` where it is gone; or nothing."""
    if type_id is None:
        return ""
    if participant is None:
        owner = content_type(type_id)
        return f"{owner.app_label}.{owner.model} {key}"
    return f"{participant._meta.verbose_name}: {participant}"


class HistoryAdmin(_ModelAdmin):
    """
    Base of pages that are read and never written.

    ``unlisted`` names the columns that a list never loads; ``newest_first`` is an
    order for which there is an index.
    """

    unlisted: tuple[str, ...] = ()
    newest_first: tuple[str, ...] = ("-pk",)

    actions: Any = None
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
        participant = obj.participant
        text = participant_text(participant, obj.participant_type_id, obj.participant_key)
        if participant is None:
            return text or self.get_empty_value_display()
        url = self.get_url(type(participant), "change", quote(participant.pk))
        return text if url is None else link(url, text)

    @admin.display(description=_("agent"))
    def agent_name(self, obj: Any) -> str:
        """Show the last part of a label, which by default is the class; the rest on hovering."""
        if not obj.agent:
            return self.get_empty_value_display()
        name = obj.agent.rpartition(".")[2] or obj.agent
        return format_html('<span title="{}">{}</span>', obj.agent, name)
