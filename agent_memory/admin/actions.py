"""What staff may do with a conversation: each thing by a permission, and noted in the admin's log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

from django import forms
from django.contrib import messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import ImproperlyConfigured, PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agent_memory import conf, flow, titles
from agent_memory.admin.deleting import ConversationDeletion
from agent_memory.admin.rows import store_of_rows
from agent_memory.exceptions import AgentMemoryError, ConversationDoesNotExist
from agent_memory.models import Conversation, ConversationMessage
from agent_memory.providers import get_provider
from agent_memory.records import MAX_LENGTH, check_title
from agent_memory.stores.database import conversations

logger = logging.getLogger("agent_memory")


class Action(NamedTuple):
    """A page that does something, as a button that leads to it."""

    name: str
    label: str
    url: str | None


class RenameForm(forms.Form):
    """The title that a person gives."""

    title = forms.CharField(
        label=_("Title"),
        max_length=MAX_LENGTH,
        widget=forms.TextInput(attrs={"class": "vTextField", "autofocus": True}),
    )

    def clean_title(self) -> str:
        try:
            return check_title(" ".join(self.cleaned_data["title"].split()))
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error


View = Callable[[Any, HttpRequest, Any], HttpResponse]


def of_a_conversation(action: str) -> Callable[[View], Callable[..., HttpResponse]]:
    """
    Give a view the conversation that an address names, if somebody may do this with it.

    The view runs outside of any transaction; what it cannot do it tells by raising.
    """

    def decorate(view: View) -> Callable[..., HttpResponse]:
        @transaction.non_atomic_requests
        @wraps(view)
        def wrapped(self: Any, request: HttpRequest, object_id: str) -> HttpResponse:
            if not self.may(request, action):
                raise PermissionDenied
            conversation = self.get_object(request, unquote(object_id))
            try:
                if conversation is None:
                    raise ConversationDoesNotExist(unquote(object_id))
                return view(self, request, conversation)
            except ConversationDoesNotExist:
                told = gettext("This conversation is gone: somebody has deleted it.")
                self.message_user(request, told, messages.WARNING)
                return HttpResponseRedirect(self.get_url(Conversation, "changelist"))
            except AgentMemoryError as error:
                self.message_user(request, str(error), messages.ERROR)
                back: HttpResponse = self.back_to(conversation)
                return back

        return wrapped

    return decorate


class ConversationActions(ConversationDeletion):
    """The pages that rename a conversation, redraft its title, release it and delete it."""

    class Media:
        css = {"all": ("agent_memory/waiting.css",)}

    def get_urls(self) -> list[URLPattern]:
        views = {
            "rename": self.rename_view,
            "redraft": self.redraft_view,
            "release": self.release_view,
        }
        return [
            path(
                f"<path:object_id>/{name}/",
                self.admin_site.admin_view(view),
                name=f"{self.opts.app_label}_{self.opts.model_name}_{name}",
            )
            for name, view in views.items()
        ] + super().get_urls()

    def conversation_actions(
        self, request: HttpRequest, conversation: Conversation
    ) -> list[Action]:
        """Return what somebody may do with a conversation now, as buttons."""
        labels = {
            "rename": gettext("Rename"),
            "redraft": gettext("Redraft title"),
            "release": gettext("Release"),
            "delete": gettext("Delete"),
        }
        if not conversation.reservation:
            del labels["release"]
        return [
            Action(name, label, self.get_url(Conversation, name, quote(conversation.pk)))
            for name, label in labels.items()
            if self.may(request, name)
        ]

    def back_to(self, conversation: Conversation) -> HttpResponseRedirect:
        url = self.get_url(Conversation, "change", quote(conversation.pk))
        return HttpResponseRedirect(url or "..")

    # Titles.

    @of_a_conversation("rename")
    def rename_view(self, request: HttpRequest, conversation: Conversation) -> HttpResponse:
        given = request.POST if request.method == "POST" else None
        form = RenameForm(given, initial={"title": conversation.title})
        if form.is_valid():
            title = form.cleaned_data["title"]
            store_of_rows().rename(conversation.pk, title)
            return self._retitled(request, conversation, title)
        return self._page(
            request, conversation, gettext("Rename conversation"), gettext("Rename"), form=form
        )

    @of_a_conversation("redraft")
    def redraft_view(self, request: HttpRequest, conversation: Conversation) -> HttpResponse:
        """Ask the project's provider for a title, as at the conversation's beginning."""
        said = ConversationMessage.objects.filter(
            conversation=conversation, role="user", position__gte=0
        )
        prompt = said.order_by("position").values_list("content", flat=True).first() or ""
        model = conf.setting("TITLE_MODEL") or conf.setting("MODEL")
        fault = ""
        if not prompt.strip():
            fault = gettext("The conversation begins with no text that a title could be made of.")
        elif not model:
            fault = gettext("The settings name no model that drafts titles.")
        elif request.method == "POST":
            title, fault = self._redrafted(conversation, model, prompt)
            if title:
                return self._retitled(request, conversation, title)
        if fault:
            self.message_user(request, fault, messages.ERROR)
            return self.back_to(conversation)
        return self._page(
            request, conversation, gettext("Redraft title"), gettext("Redraft"), model=model
        )

    def _redrafted(self, conversation: Conversation, model: str, prompt: str) -> tuple[str, str]:
        """Give a conversation a drafted title; return it, or else what went wrong."""
        try:
            title, usage = flow.run(titles.redraft(get_provider(), model, prompt))
        except (AgentMemoryError, ImproperlyConfigured) as error:
            return "", gettext("No title was drafted. %(error)s") % {"error": error}
        except Exception:  # a provider of the project's own may raise anything
            logger.exception("A title could not be drafted.")
            return "", gettext("No title was drafted; the log tells why.")
        if not title:
            return "", gettext("The model gave no title.")
        conversations.rename(store_of_rows().writing, conversation.pk, title, "draft", usage)
        return title, ""

    def _retitled(
        self, request: HttpRequest, conversation: Conversation, title: str
    ) -> HttpResponse:
        names = {"before": conversation.title, "after": title}
        self.log_change(
            request,
            conversation,
            gettext("Title changed from “%(before)s” to “%(after)s”.") % names,
        )
        told = gettext("The conversation is now called “%(after)s”.") % names
        self.message_user(request, told, messages.SUCCESS)
        return self.back_to(conversation)

    # A reservation that a worker has left.

    @of_a_conversation("release")
    def release_view(self, request: HttpRequest, conversation: Conversation) -> HttpResponse:
        store = store_of_rows()
        held = next(iter(store.held_reservations(conversation.pk)), None)
        seen = request.POST.get("token")
        if held is not None and seen is None:
            return self._page(
                request, conversation, gettext("Release"), gettext("Release"), held=held
            )
        if held and held.token == seen and store.end_reservation(held, although_running=True):
            self.log_change(request, conversation, gettext("Reservation ended."))
            told = gettext("The conversation is released: the next prompt is taken.")
            self.message_user(request, told, messages.SUCCESS)
        else:
            told = gettext("The turn that had reserved this conversation has ended by itself.")
            self.message_user(request, told, messages.WARNING)
        return self.back_to(conversation)

    def _page(
        self,
        request: HttpRequest,
        conversation: Conversation,
        title: str,
        submit: str,
        **context: Any,
    ) -> TemplateResponse:
        """Return the page that asks whether to do something."""
        request.current_app = self.admin_site.name
        context |= {
            **self.admin_site.each_context(request),
            "title": title,
            "subtitle": str(conversation),
            "original": conversation,
            "opts": self.opts,
            "submit": submit,
            "back": self.back_to(conversation).url,
            "has_view_permission": True,
            "media": self.media,
        }
        return TemplateResponse(request, "admin/agent_memory/actions/page.html", context)
