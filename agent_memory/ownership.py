"""Models whose instances have conversations, and what becomes of those when one is deleted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from django.core.exceptions import ImproperlyConfigured
from django.db import models, transaction
from django.db.models.signals import post_delete

from agent_memory.models import Conversation
from agent_memory.participants import Participant
from agent_memory.querysets import OwnConversationQuerySet
from agent_memory.stores import ConversationStore, get_store
from agent_memory.stores.database import DatabaseConversationStore

__all__ = ["ANONYMISE", "DELETE", "KEEP", "HasConversations", "on_delete_of"]

Policy = Callable[[ConversationStore, Participant], None]


def KEEP(store: ConversationStore, gone: Participant) -> None:
    """Leave conversations as they are, under the label and the key of who is gone."""


def ANONYMISE(store: ConversationStore, gone: Participant) -> None:
    """Keep what was said, and make nobody of who is gone."""
    store.anonymise_participant(gone)


def DELETE(store: ConversationStore, gone: Participant) -> None:
    """Forget conversations, and make nobody of who is gone in those of others."""
    store.clear_conversations(gone)
    store.anonymise_participant(gone)


class _OwnConversations:
    """The attribute ``conversations``: those that were prefetched, or a fresh queryset."""

    def __get__(self, instance: models.Model | None, owner: type[Any]) -> Any:
        if instance is None:
            return self
        prefetched = getattr(instance, "_prefetched_objects_cache", {}).get("conversations")
        if prefetched is not None:
            return prefetched
        return OwnConversationQuerySet(Conversation).of(instance)

    def __set__(self, instance: models.Model, value: object) -> None:
        raise AttributeError(
            "'conversations' is read: agents and conversation_store.create() open conversations, "
            "conversation_store.transfer_conversation() hands one over."
        )


class HasConversations:
    """
    Mixin of a model: ``team.conversations``, and a policy for when a team is deleted.

    ``conversations`` is a queryset of ``agent_memory.models.Conversation``, and
    can be prefetched. ``conversations_on_delete`` is ``KEEP``, ``ANONYMISE``,
    ``DELETE``, or a function of yours that takes the store and the participant.
    Raises ``ImproperlyConfigured`` for anything else when the class is made.
    """

    if TYPE_CHECKING:
        conversations: OwnConversationQuerySet
    else:
        conversations = _OwnConversations()

    conversations_on_delete: ClassVar[Policy] = KEEP

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        on_delete_of(cls, cls.conversations_on_delete)


def on_delete_of(model: type[Any], policy: Policy) -> None:
    """
    Have a policy followed whenever an instance of a model is deleted.

    For models that cannot have the mixin; call it in ``AppConfig.ready()``. It
    holds for the class itself, not for its proxies.
    """
    if not callable(policy):
        raise ImproperlyConfigured(
            f"What becomes of the conversations of {model.__name__} is KEEP, ANONYMISE, DELETE or "
            f"a function of store and participant, not {policy!r:.80}."
        )
    post_delete.disconnect(sender=model, dispatch_uid="agent_memory")
    if policy is not KEEP:  # without a receiver Django deletes rows that it has not loaded
        post_delete.connect(
            partial(_deleted, policy), sender=model, dispatch_uid="agent_memory", weak=False
        )


def _deleted(policy: Policy, *, instance: models.Model, using: str, **kwargs: Any) -> None:
    """Follow a policy: in the deletion's transaction where that holds both, else after it."""
    store = get_store()
    follow = partial(policy, store, Participant.of_row(instance))
    if isinstance(store, DatabaseConversationStore) and store.writing == using:
        follow()
    else:
        transaction.on_commit(follow, using=using)
