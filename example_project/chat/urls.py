"""Addresses of the chat."""

from __future__ import annotations

from django.urls import path

from example_project.chat import views

app_name = "chat"
urlpatterns = [
    path("", views.chat, name="chat"),
    path("async/", views.achat, name="achat"),
    path("stream/", views.stream_chat, name="stream_chat"),
    path("stream/async/", views.astream_chat, name="astream_chat"),
]
