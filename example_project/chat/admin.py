"""Teams and refunds in the admin; conversations are shown by agent_memory's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.http import HttpRequest

from example_project.chat.models import Refund, Team

if TYPE_CHECKING:
    RefundModelAdmin = admin.ModelAdmin[Refund]
    TeamModelAdmin = admin.ModelAdmin[Team]
else:
    RefundModelAdmin = TeamModelAdmin = admin.ModelAdmin


@admin.register(Team)
class TeamAdmin(TeamModelAdmin):
    filter_horizontal = ("members",)


@admin.register(Refund)
class RefundAdmin(RefundModelAdmin):
    """Shows refunds; only the agent's tool makes them."""

    list_display = ("order", "amount", "paid_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Refund | None = None) -> bool:
        return False
