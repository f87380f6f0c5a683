"""Lists of the admin that stay cheap however long their tables are: pages, rows and filters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, get_args

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.contrib.contenttypes.models import ContentType
from django.core.paginator import Paginator
from django.db import models, router
from django.http import HttpRequest
from django.utils.functional import cached_property
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agent_memory.admin.states import State, in_state
from agent_memory.messages import Role, Status
from agent_memory.models import Conversation

if TYPE_CHECKING:
    _Paginator = Paginator[models.Model]
else:
    _Paginator = Paginator

MAX_LISTED = 5000
RECENT = 1000


class BoundedPaginator(_Paginator):
    """Pages of the first ``MAX_LISTED`` rows, so that no page counts or skips a whole table."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        return int(rows.order_by().values("pk")[:MAX_LISTED].count())


class HistoryList(ChangeList):
    """A list that loads what it shows, and tells when there may be more."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.result_count == MAX_LISTED:
            self.title = gettext("The first %(count)d %(name)s; search or filter for others") % {
                "count": MAX_LISTED,
                "name": self.opts.verbose_name_plural,
            }

    def get_queryset(self, *args: Any, **kwargs: Any) -> Any:
        model_admin: Any = self.model_admin
        return model_admin.get_listed(super().get_queryset(*args, **kwargs))


def recent(request: HttpRequest, model_admin: Any, column: str) -> list[Any]:
    """Return a column of the newest ``RECENT`` rows."""
    newest = model_admin.get_queryset(request).order_by(*model_admin.newest_first)
    return list(newest.values_list(column, flat=True)[:RECENT])


class ColumnFilter(admin.SimpleListFilter):
    """Filters by the values of a column, which ``known`` lists."""

    parameter_name: str

    def known(self, request: HttpRequest, model_admin: Any) -> Iterable[Any]:
        """Return the values to offer; by default those of the newest ``RECENT`` rows."""
        return set(recent(request, model_admin, self.parameter_name))

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[Any, str]]:
        values = [*self.known(request, model_admin), self.value()]
        labels = dict(model_admin.opts.get_field(self.parameter_name).flatchoices)
        found = sorted({value for value in values if value})
        return [(value, labels.get(value, value)) for value in found]

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> Any:
        return queryset.filter(**{self.parameter_name: self.value()}) if self.value() else queryset


class AgentFilter(ColumnFilter):
    title = _("agent")
    parameter_name = "agent"


class RoleFilter(ColumnFilter):
    title = _("role")
    parameter_name = "role"

    def known(self, request: HttpRequest, model_admin: Any) -> Iterable[Any]:
        return [role for role in get_args(Role) if role != "tool"]


class StatusFilter(ColumnFilter):
    title = _("status")
    parameter_name = "status"

    def known(self, request: HttpRequest, model_admin: Any) -> Iterable[Any]:
        return get_args(Status)


class StateFilter(admin.SimpleListFilter):
    title = _("status")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return list(State.choices)

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> Any:
        if self.value() is None:
            return queryset
        condition = in_state(str(self.value()))
        return queryset.none() if condition is None else queryset.filter(condition)


class ParticipantModelFilter(ColumnFilter):
    title = _("participant")
    parameter_name = "participant_model"
    nobody = "-"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[Any, str]]:
        found = set(recent(request, model_admin, "participant_type"))
        types = [content_type(number) for number in found if number is not None]
        choices = {f"{one.app_label}.{one.model}": str(one) for one in types}
        if None in found:
            choices[self.nobody] = gettext("nobody")
        if self.value():
            choices.setdefault(str(self.value()), str(self.value()))
        return sorted(choices.items(), key=lambda choice: choice[1])

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> Any:
        if self.value() == self.nobody:
            return queryset.filter(participant_type__isnull=True)
        if not self.value():
            return queryset
        app_label, _, model = str(self.value()).partition(".")
        return queryset.filter(participant_type__app_label=app_label, participant_type__model=model)


def content_type(number: int) -> ContentType:
    """Return a content type that conversations name; from memory, once it was read."""
    types = ContentType.objects.db_manager(router.db_for_read(Conversation))
    return types.get_for_id(number)
