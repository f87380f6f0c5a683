"""The store: each conversation is caught up from its file, worked on, and written down."""

from __future__ import annotations

import json
import os
import time
import weakref
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from filelock import FileLock

from agent_memory.exceptions import InvalidStore
from agent_memory.participants import Participant
from agent_memory.records import check_conversation_id
from agent_memory.signals import conversation_cleared
from agent_memory.stores.catalogue import Catalogue, Entry
from agent_memory.stores.file.files import UNREADABLE, ConversationFile, holds, last_state
from agent_memory.stores.file.names import SUFFIX, file_name
from agent_memory.stores.file.transcript import WrittenTranscript, conversation_in, spoke_in
from agent_memory.stores.transcript import Transcript

LOCKS = 64
"""How many lock files a folder has; conversations that share one wait for each other's writes."""

LOCK_SECONDS = 30
"""How long to wait for a process that writes, before ``TimeoutError``."""

CACHED = 100
CACHED_BYTES = 50_000_000
"""How much a process keeps, in conversations and of their files, to read only what is new."""


class FileConversationStore(Catalogue):
    """
    Keeps each conversation in a file of JSON lines, in ``folder``.

    Safe for threads, event loops, forks and the processes of one machine. An
    append costs the turn, however long the conversation is; it is on the disk
    when it returns, unless ``fsync`` is false. A list looks at every file. Raises
    ``OSError`` for what the file system refuses, of which nothing is stored then.
    """

    _clock = staticmethod(time.time)  # all processes have it, after a restart of the machine too

    def __init__(
        self, *, folder: str | os.PathLike[str], fsync: bool = True, **options: Any
    ) -> None:
        super().__init__(**options)
        if not os.fspath(folder):
            raise InvalidStore("FileConversationStore takes the path of a folder, not ''.")
        self.folder, self.fsync = Path(folder).absolute(), fsync
        self._files: dict[str, ConversationFile] = {}
        self._working: set[str] = set()
        _locks.add(self._lock)

    def new_transcript(
        self, conversation_id: str, participant: Participant | None, agent: str
    ) -> Transcript:
        return WrittenTranscript(conversation_id, participant, agent)

    def clear(self, conversation_id: str) -> None:
        check_conversation_id(conversation_id)
        with self._lock, self._locked(conversation_id):
            known = self._file(conversation_id).delete()
            self._forget(conversation_id)
        if known:
            conversation_cleared.send_robust(type(self), conversation_id=conversation_id)

    def anonymise_participant(self, participant: Any) -> None:
        gone = self._somebody(participant)
        name = json.dumps(gone.key).encode()
        for path in self._paths():
            if holds(path, name) and (found := last_state(path)):
                self._anonymise(found[0], gone)

    def _anonymise(self, conversation_id: str, gone: Participant) -> None:
        with self.working_on(conversation_id):
            transcript = self._transcripts.get(conversation_id)
            if transcript is None:
                return
            if transcript.participant == gone:
                self._cut_off(transcript)
            transcript.anonymise(gone)

    def _entries(self) -> Iterable[Entry]:
        for path in self._paths():
            found = last_state(path)
            if found is None or path.name != file_name(found[0]):
                continue
            with suppress(*UNREADABLE):  # what is damaged, a turn will tell
                yield Entry(found[0], conversation_in(*found), spoke_in(found[1]))

    def _paths(self) -> list[Path]:
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        return [self.folder / name for name in names if name.endswith(SUFFIX) and name[0] != "."]

    # One conversation, in memory while it is worked on.

    @contextmanager
    def working_on(self, conversation_id: str) -> Iterator[None]:
        with self._lock:
            if conversation_id in self._working:
                yield
                return
            with self._locked(conversation_id):
                self._catch_up(conversation_id)
                known = conversation_id in self._transcripts
                self._working.add(conversation_id)
                try:
                    yield
                finally:
                    self._working.remove(conversation_id)
                    self._write_down(conversation_id, known=known)
                    self._forget_the_oldest()

    def _catch_up(self, conversation_id: str) -> None:
        """Read what others have written since, or all of it."""
        file = self._files.pop(conversation_id, None) or self._file(conversation_id)
        try:
            anew, writes = file.catch_up()
            if anew:
                self._forget(conversation_id)
            for write in writes:
                transcript = self._written(conversation_id) or WrittenTranscript(conversation_id)
                held = transcript.read(write)
                self._transcripts[conversation_id] = transcript
                self._held.pop(conversation_id, None)
                if held is not None:
                    self._held[conversation_id] = held
        except UNREADABLE as error:
            self._forget(conversation_id)
            raise file.damaged() from error
        except BaseException:
            self._forget(conversation_id)
            raise
        self._files[conversation_id] = file

    def _write_down(self, conversation_id: str, *, known: bool) -> None:
        """Write what has changed; what cannot be written is forgotten here too."""
        file = self._files[conversation_id]
        transcript, held = self._written(conversation_id), self._held.get(conversation_id)
        try:
            if transcript is None:
                if known:
                    file.delete()
                self._forget(conversation_id)
                return
            lines = transcript.unwritten(held)
            if transcript.written is None:
                file.create(lines)
            elif lines:
                file.append(lines)
            transcript.is_written(held)
        except BaseException:
            self._forget(conversation_id)
            raise

    def _written(self, conversation_id: str) -> WrittenTranscript | None:
        transcript = self._transcripts.get(conversation_id)
        assert transcript is None or isinstance(transcript, WrittenTranscript)
        return transcript

    def _forget_the_oldest(self) -> None:
        """Keep a bounded part of what is written, and what was used last."""
        size = 0
        for count, (conversation_id, file) in enumerate(reversed([*self._files.items()]), 1):
            size += file.end
            if count > 1 and (count > CACHED or size > CACHED_BYTES):
                self._forget(conversation_id)

    def _forget(self, conversation_id: str) -> None:
        self._files.pop(conversation_id, None)
        self._transcripts.pop(conversation_id, None)
        self._held.pop(conversation_id, None)

    def _file(self, conversation_id: str) -> ConversationFile:
        path = self.folder / file_name(conversation_id)
        return ConversationFile(path, conversation_id, fsync=self.fsync)

    def _locked(self, conversation_id: str) -> AbstractContextManager[object]:
        """Let one process at a time have a file; a lock is made anew, since a fork spoils it."""
        folder = self.folder / ".locks"
        if not folder.is_dir():
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
        number = sha256(file_name(conversation_id).encode()).digest()[0] % LOCKS
        path = folder / f"{number:02}.lock"
        return FileLock(path).acquire(timeout=LOCK_SECONDS, poll_interval=0.005)


_locks: weakref.WeakSet[Any] = weakref.WeakSet()
_taken: list[Any] = []


def _stop() -> None:
    """Have no thread in the middle of something when the process is forked."""
    for lock in [*_locks]:
        lock.acquire()
        _taken.append(lock)


def _go_on() -> None:
    while _taken:
        _taken.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_stop, after_in_parent=_go_on, after_in_child=_go_on)
