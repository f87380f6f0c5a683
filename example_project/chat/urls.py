"""Addresses of the chat: its page, what the page's script asks for, and the JSON views."""

from __future__ import annotations

from django.urls import path

from example_project.chat import asking, pages, views

app_name = "chat"
urlpatterns = [
    path("", pages.page, name="page"),
    path("messages/", pages.messages, name="messages"),
    path("conversations/", pages.conversations, name="conversations"),
    path("rename/", pages.rename, name="rename"),
    path("delete/", pages.delete, name="delete"),
    path("ask/", asking.ask, name="ask"),
    path("ask/async/", asking.aask, name="aask"),
    path("decide/", asking.decide, name="decide"),
    path("decide/async/", asking.adecide, name="adecide"),
    path("stop/", asking.stop, name="stop"),
    path("chat/", views.chat, name="chat"),
    path("chat/async/", views.achat, name="achat"),
    path("chat/stream/", views.stream_chat, name="stream_chat"),
    path("chat/stream/async/", views.astream_chat, name="astream_chat"),
]
