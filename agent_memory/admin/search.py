"""Searches that read a bounded part of a table, however long it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.contrib import admin
from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agent_memory.admin.lists import content_type, recent
from agent_memory.admin.showing import grouped
from agent_memory.exceptions import InvalidParticipant
from agent_memory.participants import Participant

MAX_SEARCHED = 20_000
MAX_FOUND = 1000
MAX_NAMED = 100


class SearchedFilter(admin.SimpleListFilter):
    """Whether words are sought in the newest rows alone or, which takes its time, in all."""

    title = _("words searched in")
    parameter_name = "among"
    everything = "all"

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(request, *args, **kwargs)
        self.searching = bool(request.GET.get("q"))

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(self.everything, gettext("all (slow)"))]

    def has_output(self) -> bool:
        return self.searching

    def choices(self, changelist: Any) -> Iterator[Any]:
        newest, everything = super().choices(changelist)
        count = grouped(MAX_SEARCHED)
        yield newest | {"display": gettext("the newest %(count)s") % {"count": count}}
        yield everything

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> Any:
        return queryset


def searched(request: HttpRequest, queryset: models.QuerySet[Any], column: str) -> Any:
    """Return the rows in which words are sought: the newest by an indexed column, or all."""
    if request.GET.get(SearchedFilter.parameter_name) == SearchedFilter.everything:
        return queryset
    manager = queryset.model._base_manager.using(queryset.db)
    newest = manager.order_by(f"-{column}").values_list(column, flat=True)
    bound = newest[MAX_SEARCHED - 1 : MAX_SEARCHED]
    return queryset.filter(**{f"{column}__gte": each for each in bound})


def newest_keys(found: models.QuerySet[Any], model_admin: Any) -> list[Any]:
    """Return the primary keys of the newest rows of a search."""
    return list(found.order_by(*model_admin.newest_first).values_list("pk", flat=True)[:MAX_FOUND])


def owned(request: HttpRequest, model_admin: Any, term: str) -> models.Q:
    """
    Return the condition that a term is the key of a conversation's participant, or names it.

    Names are found by the participants' own admin, where whoever searches may use it.
    """
    numbers = set(recent(request, model_admin, "participant_type")) - {None}
    wanted = models.Q(pk__in=())
    for number in numbers:
        keys = {term, *_named(request, model_admin.admin_site, content_type(number), term)}
        wanted |= models.Q(participant_type=number, participant_key__in=keys)
    return wanted


def _named(
    request: HttpRequest, site: admin.AdminSite, owner: ContentType, term: str
) -> Iterable[str]:
    model = owner.model_class()
    if model is None or not site.is_registered(model):
        return ()
    theirs = site.get_model_admin(model)
    if not theirs.get_search_fields(request) or not theirs.has_view_permission(request):
        return ()
    found, _doubled = theirs.get_search_results(request, theirs.get_queryset(request), term)
    try:
        return [Participant.of_row(each).key for each in found[:MAX_NAMED]]
    except InvalidParticipant:
        return ()
