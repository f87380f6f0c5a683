"""Conversations in the memory of this process: for tests and short-lived agents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from agent_memory.exceptions import InvalidStore
from agent_memory.records import check_conversation_id
from agent_memory.signals import conversation_cleared
from agent_memory.stores.catalogue import Catalogue, Entry

NEVER = datetime.min.replace(tzinfo=UTC)


class InMemoryConversationStore(Catalogue):
    """
    Keeps conversations in this process; a restart forgets them.

    Safe for threads and event loops. What goes in and out is copied, so nobody
    can change what is stored. Of more than ``max_conversations`` the least
    recently active are forgotten, but none of which a turn runs.
    """

    def __init__(self, *, max_conversations: int | None = None, **options: Any) -> None:
        super().__init__(**options)
        if max_conversations is not None and (
            isinstance(max_conversations, bool)
            or not isinstance(max_conversations, int)
            or max_conversations < 1
        ):
            raise InvalidStore(
                "max_conversations is a whole number from 1, or None for no limit, not "
                f"{max_conversations!r:.80}."
            )
        self.max_conversations = max_conversations

    def clear(self, conversation_id: str) -> None:
        check_conversation_id(conversation_id)
        with self._lock:
            known = self._forget(conversation_id)
        if known:
            conversation_cleared.send_robust(type(self), conversation_id=conversation_id)

    def anonymise_participant(self, participant: Any) -> None:
        gone = self._somebody(participant)
        with self._lock:
            for transcript in [*self._transcripts.values()]:
                if transcript.participant == gone:
                    self._cut_off(transcript)
                transcript.anonymise(gone)

    def _entries(self) -> Iterable[Entry]:
        with self._lock:
            return [
                Entry(
                    transcript.id,
                    None if transcript.opened_at is None else transcript.stored(),
                    transcript.spoke.copy(),
                )
                for transcript in self._transcripts.values()
            ]

    @contextmanager
    def working_on(self, conversation_id: str) -> Iterator[None]:
        with self._lock:
            yield
            if self.max_conversations is not None:
                self._forget_all_over(self.max_conversations, but=conversation_id)

    def _forget_all_over(self, limit: int, *, but: str) -> None:
        over = len(self._transcripts) - limit
        if over > 0:
            idle = [
                transcript
                for transcript in self._transcripts.values()
                if transcript.id != but and not self._is_held(transcript.id)
            ]
            idle.sort(key=lambda transcript: transcript.last_activity or NEVER)
            for transcript in idle[:over]:
                self._forget(transcript.id)

    def _forget(self, conversation_id: str) -> bool:
        self._held.pop(conversation_id, None)
        return self._transcripts.pop(conversation_id, None) is not None
