"""
A page of the documentation: its code blocks, run in order, and its links.

What a page may say to its runner, in HTML comments that no reader sees:

- ``<!-- invisible-code-block: python`` ... ``-->`` is a block like the visible ones;
- ``<!-- skip: next "why" -->`` leaves the next Python block out.

An ``output`` block holds what the Python block before it printed.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import re
import shlex
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from asgiref.sync import async_to_sync

from agent_memory import conf

FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<info>.*)$")
HIDDEN = re.compile(r"^\s*<!--+\s*invisible-code-block:\s*(?P<info>\S+)\s*$")
HIDDEN_END = "-->"
SKIP = re.compile(r'^\s*<!--+\s*skip: next(?:\s+"(?P<reason>[^"]*)")?\s*-->\s*$')
HEADING = re.compile(r"^#{1,6}\s+(?P<text>.+?)\s*#*\s*$")
LINK = re.compile(r"\]\(\s*<?(?P<inline>[^)\s>]+)|^\s*\[[^\]]+\]:\s+(?P<reference>\S+)")
ANCHOR = re.compile(r"""<a\s+(?:id|name)=["']([^"']+)["']""")
INLINE_CODE = re.compile(r"(`+).+?\1")
NO_PYTHON = ("py", "python3", "pycon")
SHELLS = ("console", "bash", "sh", "shell")
OPERATORS = ";&|><"


class PageError(AssertionError):
    """A page says something that does not hold; the text names file and line."""


@dataclass(frozen=True)
class Block:
    """
    A code block; ``line`` is that of its first line of code, counted from 1.

    ``lead`` is the line of prose before it, if one is. A hidden one is told to the tests alone.
    """

    info: str
    source: str
    line: int
    lead: str = ""
    hidden: bool = False


class Page:
    """A Markdown file, read once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.blocks: list[Block] = []
        self.prose: list[tuple[int, str]] = []
        lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for number, line in lines:
            if match := FENCE.match(line):
                self._read_block(lines, number, match["info"], match["fence"], match["indent"])
            elif match := HIDDEN.match(line):
                self._read_block(lines, number, match["info"], HIDDEN_END, "")
            elif match := SKIP.match(line):
                if not match["reason"]:
                    raise self.error(number, 'a skip needs its reason: <!-- skip: next "why" -->')
                self.blocks.append(Block("skip", match["reason"], number))
            else:
                self.prose.append((number, line))

    def _read_block(
        self, lines: Iterator[tuple[int, str]], number: int, info: str, end: str, indent: str
    ) -> None:
        info = info.strip()
        code: list[str] = []
        if info in NO_PYTHON:
            raise self.error(number, f"call this block 'python', not {info!r}, so that it is run")
        if info.startswith("python") and info != "python":
            raise self.error(number, f"{info!r} is no block that is known")
        for _, line in lines:
            if line.strip().startswith(end) and not line.strip().strip(end[0] + ">"):
                lead = self._lead()
                source = "\n".join(code) + "\n"
                self.blocks.append(Block(info, source, number + 1, lead, end == HIDDEN_END))
                return
            code.append(line.removeprefix(indent))
        raise self.error(number, f"this block does not end with {end}")

    def _lead(self) -> str:
        """Return the last line of prose, if no visible block stands between."""
        shown = max((block.line for block in self.blocks if not block.hidden), default=0)
        lines = (text for line, text in reversed(self.prose) if line > shown and text.strip())
        return next(lines, "")

    def error(self, line: int, text: str) -> PageError:
        return PageError(f"{self.path}:{line}: {text}")

    def run(self, names: dict[str, Any]) -> int:
        """
        Run the Python blocks in one namespace that starts with ``names``.

        ``await`` is allowed at the top of a block. Return how many were run.
        Raises ``PageError`` for an output that differs and for a setting that
        does not exist, and what a block raises, with its place as a note.
        """
        module = types.ModuleType("page_" + re.sub(r"\W", "_", self.path.stem))
        vars(module).update(names)
        sys.modules[module.__name__] = module  # where type hints and pickles look
        printed, skip, count = "", False, 0
        try:
            for block in self.blocks:
                if block.info == "output" and not skip and printed.strip() != block.source.strip():
                    raise self.error(block.line, f"the block before printed {printed!r}")
                if block.info == "python" and not skip:
                    printed = self._run_block(block, module)
                    count += 1
                if block.info in ("skip", "python"):
                    skip = block.info == "skip"
        finally:
            del sys.modules[module.__name__]
        return count

    def _run_block(self, block: Block, module: types.ModuleType) -> str:
        source = "\n" * (block.line - 1) + block.source
        namespace, printed = vars(module), io.StringIO()
        namespace.pop("AGENT_MEMORY", None)
        try:
            code = compile(source, str(self.path), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            call = types.FunctionType(code, namespace)
            with contextlib.redirect_stdout(printed):
                async_to_sync(call)() if code.co_flags & inspect.CO_COROUTINE else call()
        except BaseException as error:
            error.add_note(f"in the block at {self.path}:{block.line}")
            raise
        if unknown := set(namespace.get("AGENT_MEMORY", ())) - set(conf.DEFAULTS):
            raise self.error(block.line, f"AGENT_MEMORY has no {', '.join(sorted(unknown))}")
        return printed.getvalue()

    def commands(self) -> Iterator[tuple[int, list[str]]]:
        """Yield line and arguments of every ``manage.py`` that a shell block calls."""
        for block in self.blocks:
            for number, line in enumerate(block.source.splitlines(), block.line):
                if block.info not in SHELLS or "manage.py" not in line:
                    continue
                words = shlex.shlex(line, posix=True, punctuation_chars=OPERATORS)
                words.whitespace_split = True
                for _, group in groupby(words, lambda word: set(word) <= set(OPERATORS)):
                    call = list(group)
                    names = [index for index, word in enumerate(call) if word.endswith("manage.py")]
                    if names and (arguments := call[names[0] + 1 :]):
                        yield number, arguments

    def links(self) -> Iterator[tuple[int, str]]:
        """Yield line and target of every link and image, addresses of the web left out."""
        for number, line in self.prose:
            for match in LINK.finditer(INLINE_CODE.sub("", line)):
                target = match["inline"] or match["reference"]
                if not re.match(r"[a-z]+:", target):
                    yield number, target

    def broken_links(self) -> list[str]:
        """Return the links that lead to no file or to no heading."""
        broken = []
        for number, target in self.links():
            name, _, anchor = target.partition("#")
            path = self.path.parent / unquote(name) if name else self.path
            if not path.exists() or (
                anchor and path.suffix == ".md" and anchor not in Page(path).anchors()
            ):
                broken.append(f"{self.path}:{number}: {target}")
        return broken

    def anchors(self) -> set[str]:
        """Return the anchors of the headings, as GitHub makes them, and those set by hand."""
        found: set[str] = set()
        for _, line in self.prose:
            found.update(ANCHOR.findall(line))
            if match := HEADING.match(line):
                text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match["text"])
                slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
                name, number = slug, 0
                while name in found:
                    number += 1
                    name = f"{slug}-{number}"
                found.add(name)
        return found
