"""Who talks to the agent beside users, and what its tool writes."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Team(models.Model):
    """A team has conversations of its own, which all its members see."""

    name = models.CharField(max_length=100)
    members = models.ManyToManyField(settings.AUTH_USER_MODEL, blank=True, related_name="teams")

    def __str__(self) -> str:
        return self.name


class Refund(models.Model):
    """Money that was paid back; nothing but this row in an example."""

    order = models.CharField(max_length=100)
    amount = models.DecimalField(max_digits=12, decimal_places=2)
    paid_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.amount} for {self.order}"
