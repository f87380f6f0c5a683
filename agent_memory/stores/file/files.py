"""
One file of lines: a header, then writes, each closed by a line with the state that it leaves.

What follows the last such line was never told to anybody: it is ignored, and
cut off by the next write.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import SEEK_END, FileIO
from pathlib import Path
from typing import IO, Any

from agent_memory.exceptions import UnsupportedFormat
from agent_memory.stores.file.values import encode
from agent_memory.stores.lines import Data

FORMAT = "agent_memory conversation"
VERSION = 2
STATE = re.compile(rb'\s*\{\s*"state"\s*:')
"""How a line begins that closes a write, even after a person has formatted it."""

BLOCK = 4096
"""Bytes of which a header has fewer, and in which a state is mostly found."""

UNREADABLE = AttributeError, IndexError, KeyError, TypeError, ValueError
"""What is raised where the data of a line is not as it was written."""

Write = list[Data]


class ConversationFile:
    """
    The file of a conversation, which its caller has locked.

    ``end`` is where the last write ends that was read or made here, 0 when there
    is no file; ``last`` is the line that closes it.
    """

    def __init__(self, path: Path, conversation_id: str, *, fsync: bool) -> None:
        self.path, self.id, self.fsync = path, conversation_id, fsync
        self.end, self.last = 0, b""

    def catch_up(self) -> tuple[bool, list[Write]]:
        """
        Return what was written since the last call, and whether that is all there is.

        It is when the file is another one than before, or is gone. Raises
        ``UnsupportedFormat`` for a file that cannot be read.
        """
        try:
            with self.path.open("rb") as file:
                anew = not self._is_the_same(file)
                if anew:
                    file.seek(0)
                    self.last = file.readline(BLOCK)
                    self.end = len(self.last)
                    self._check_header(self.last)
                file.seek(self.end)
                return anew, self._writes(file.read())
        except FileNotFoundError:
            self.end, self.last = 0, b""
            return True, []

    def _is_the_same(self, file: IO[bytes]) -> bool:
        """Tell whether what was read before stands there still; each closing line is unique."""
        file.seek(self.end - len(self.last))
        return bool(self.last) and file.read(len(self.last)) == self.last

    def _check_header(self, line: bytes) -> None:
        header = read_header(line)
        if header is None:
            raise UnsupportedFormat(
                f"{self.path} is no conversation file, and is left as it is. Move it away, or "
                f"delete it with store.clear({self.id!r})."
            )
        if header.get("version") != VERSION:
            raise UnsupportedFormat(
                f"{self.path} has format version {header.get('version')!r:.20}; this version "
                f"reads {VERSION}. Back it up if you need it, then clear the conversation with "
                f"store.clear({self.id!r})."
            )
        if header.get("id") != self.id:
            raise UnsupportedFormat(
                f"{self.path} holds the conversation {header.get('id')!r:.300}, not {self.id!r}: "
                "it was renamed. Give it its name back."
            )

    def _writes(self, data: bytes) -> list[Write]:
        writes: list[Write] = []
        write: list[bytes] = []
        position = self.end
        for line in data.split(b"\n")[:-1]:
            write.append(line)
            position += len(line) + 1
            if STATE.match(line):
                try:
                    writes.append([json.loads(each) for each in write])
                except ValueError as error:
                    raise self.damaged() from error
                self.end, self.last = position, line + b"\n"
                write = []
        return writes

    def damaged(self) -> UnsupportedFormat:
        return UnsupportedFormat(
            f"{self.path} is damaged: a line of it cannot be read. Restore it from a backup, or "
            f"clear the conversation with store.clear({self.id!r})."
        )

    def append(self, lines: bytes) -> None:
        """Write lines, the last one being a state; all of them, or ``OSError``."""
        with _named(self.path), self.path.open("r+b", buffering=0) as file:
            file.truncate(self.end)
            try:
                file.seek(self.end)
                self._write(file, lines)
            except OSError:
                file.truncate(self.end)
                raise
        self._note(self.end + len(lines), lines)

    def create(self, lines: bytes) -> None:
        """Put a new file in the place of what is there, at once."""
        whole = encode({"format": FORMAT, "version": VERSION, "id": self.id}) + lines
        with _named(self.path):
            try:
                with open(self._begun, "wb", buffering=0, opener=_private) as file:
                    self._write(file, whole)
                self._begun.replace(self.path)
            except OSError:
                self._begun.unlink(missing_ok=True)
                raise
            self._sync_folder()
        self._note(len(whole), lines)

    def delete(self) -> bool:
        """Remove the file, whatever it holds; tell whether there was one."""
        self.end, self.last = 0, b""
        self._begun.unlink(missing_ok=True)
        try:
            self.path.unlink()
        except FileNotFoundError:
            return False
        self._sync_folder()
        return True

    @property
    def _begun(self) -> Path:
        """What a file is called until it is whole."""
        return self.path.with_name(f".{self.path.name}.new")

    def _note(self, end: int, lines: bytes) -> None:
        self.end, self.last = end, lines[lines.rfind(b"\n", 0, -1) + 1 :]

    def _write(self, file: FileIO, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[file.write(rest) :]
        if self.fsync:
            os.fsync(file.fileno())

    def _sync_folder(self) -> None:
        if self.fsync and hasattr(os, "O_DIRECTORY"):  # Windows has no such thing
            descriptor = os.open(self.path.parent, os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def read_header(line: bytes) -> dict[str, Any] | None:
    """Return what a file's first line says, unless it is no conversation's."""
    with suppress(ValueError):
        header = json.loads(line)
        if line.endswith(b"\n") and isinstance(header, dict) and header.get("format") == FORMAT:
            return header
    return None


def last_state(path: Path) -> tuple[str, Data] | None:
    """Return the id and the state of the conversation in a file; ``None``: it has none to read."""
    with suppress(FileNotFoundError, KeyError, ValueError), path.open("rb") as file:
        header = read_header(file.readline(BLOCK))
        line = _last_state_line(file)
        if header is not None and header.get("version") == VERSION and line:
            return header["id"], json.loads(line)["state"]
    return None


def _last_state_line(file: IO[bytes]) -> bytes:
    """Return the last line that closes a write, reading no more of the end than needed."""
    size, block = file.seek(0, SEEK_END), BLOCK
    while True:
        begin = max(size - block, 0)
        file.seek(begin)
        lines = file.read(size - begin).split(b"\n")[:-1]
        for line in reversed(lines[1:]):  # the first may be cut, or is the header
            if STATE.match(line):
                return line
        if not begin:
            return b""
        block *= 4


def holds(path: Path, text: bytes) -> bool:
    """Tell whether a file has some text anywhere."""
    with suppress(FileNotFoundError):
        return text in path.read_bytes()
    return False


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Have an error of the system tell which file it is about."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise
