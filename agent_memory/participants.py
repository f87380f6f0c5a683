"""Whose conversation it is: a type and a key, nothing more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from asgiref.sync import sync_to_async
from django.apps import apps
from django.core.exceptions import ObjectDoesNotExist, ValidationError

from agent_memory.exceptions import InvalidParticipant, ParticipantDoesNotExist
from agent_memory.storable import is_storable


@dataclass(frozen=True, slots=True)
class Participant:
    """
    The owner of a conversation, or who spoke.

    ``type`` is the concrete model's ``app_label.model``, ``key`` the text of
    its primary key (1 to 255 characters), so user 1 and team 1 are two. Both are
    taken as they are written: the keys "7" and "07" are two.
    """

    type: str
    key: str

    def __post_init__(self) -> None:
        for name, value in (("type", self.type), ("key", self.key)):
            if not isinstance(value, str) or not 1 <= len(value) <= 255:
                raise InvalidParticipant(
                    f"A participant's {name} is text of 1 to 255 characters, not {value!r:.80}."
                )
            if not is_storable(value):
                raise InvalidParticipant(
                    f"A participant's {name} may hold neither NUL nor lone surrogates."
                )

    @classmethod
    def of(cls, obj: Any) -> Participant | None:
        """
        Return the participant that a saved model instance stands for.

        ``None`` and a ready ``Participant`` are returned as they are. Raises
        ``InvalidParticipant`` for anything else.
        """
        if obj is None or isinstance(obj, cls):
            return obj
        meta = getattr(obj, "_meta", None)
        if meta is None or isinstance(obj, type):
            raise InvalidParticipant(_refusal(obj))
        if obj._state.adding or obj.pk is None:
            raise InvalidParticipant(
                f"This {meta.object_name} is not saved, or was deleted, so it has no key to "
                "remember it by: save it first. One that was deleted is still a "
                'Participant("app_label.model", "its key").'
            )
        return cls.of_row(obj)

    @classmethod
    def of_row(cls, obj: Any) -> Participant:
        """
        Return the participant under whose key an instance is filed, saved or not, deleted or not.

        Raises ``InvalidParticipant`` for a key of several columns.
        """
        concrete = obj._meta.concrete_model._meta
        if len(concrete.pk_fields) > 1:
            raise InvalidParticipant(
                f"{concrete.object_name} has a primary key of several columns, and a participant "
                f'has one key: pass Participant("{concrete.label_lower}", "text that names it").'
            )
        return cls(concrete.label_lower, str(concrete.pk.to_python(obj.pk)))

    def get_object(self) -> Any:
        """
        Return the saved instance that this participant stands for.

        Raises ``ParticipantDoesNotExist`` when its model or its row is gone.
        """
        try:
            model = apps.get_model(self.type)
            found = model._base_manager.get(pk=model._meta.pk.to_python(self.key))
            # Its table may find a row under other texts than its own: in other case, say.
            if Participant.of(found) == self:
                return found
        except (LookupError, ValueError, ValidationError, ObjectDoesNotExist):
            pass
        raise ParticipantDoesNotExist(
            f"There is no {self.type} with the key {self.key!r:.80} any more."
        )

    async def aget_object(self) -> Any:
        """See get_object()."""
        return await sync_to_async(self.get_object)()


def _refusal(obj: Any) -> str:
    if getattr(obj, "is_anonymous", False) is True:
        return (
            "AnonymousUser has no key to remember it by: use for_participant(None) and keep "
            "the conversation id in the session."
        )
    return (
        f"{type(obj).__name__} cannot own a conversation: pass a saved model instance, "
        'Participant("app_label.model", "key"), or None.'
    )
