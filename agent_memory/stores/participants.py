"""Whom a store knows: participants, and what stands for one."""

from __future__ import annotations

from typing import Any

from agent_memory.exceptions import InvalidParticipant
from agent_memory.participants import Participant


class Knowing:
    """The part of a store that tells participants."""

    def participant_of(self, obj: Any) -> Participant | None:
        """Return the participant an object stands for; raises ``InvalidParticipant``."""
        return Participant.of(obj)

    def _somebody(self, obj: Any) -> Participant:
        """Return the participant an object stands for; raises ``InvalidParticipant`` for none."""
        participant = self.participant_of(obj)
        if participant is None:
            raise InvalidParticipant(
                "None is nobody, and this is for somebody: pass a saved model instance, or "
                'Participant("app_label.model", "key").'
            )
        return participant
