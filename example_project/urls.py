"""Addresses: the chat, whoever signs in, the files of conversations and the admin."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path

from example_project.chat.access import ChatAttachmentView

urlpatterns = [
    path("", include("example_project.chat.urls")),
    path("login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    # Before agent_memory's own, and at its address, which has a way of its own to say who may see.
    path("agent-memory/attachments/<str:attachment_id>/", ChatAttachmentView.as_view()),
    path("agent-memory/", include("agent_memory.urls")),
    path("admin/", admin.site.urls),
]
