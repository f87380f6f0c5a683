"""Who talks to the agent beside users."""

from __future__ import annotations

from django.db import models


class Team(models.Model):
    """A team has conversations of its own."""

    name = models.CharField(max_length=100)

    def __str__(self) -> str:
        return self.name
