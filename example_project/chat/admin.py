"""Teams in the admin; conversations are shown by agent_memory's own."""

from __future__ import annotations

from django.contrib import admin

from example_project.chat.models import Team

admin.site.register(Team)
