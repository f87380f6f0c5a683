"""Addresses: ``path("agent-memory/", include("agent_memory.urls"))``."""

from django.urls import path

from agent_memory.views import AttachmentView

app_name = "agent_memory"
urlpatterns = [
    path("attachments/<str:attachment_id>/", AttachmentView.as_view(), name="attachment"),
]
