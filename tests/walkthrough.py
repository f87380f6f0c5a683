"""
A page that leads through a project, followed by the letter: in a folder, by its commands.

- a block after ``In `path`:`` is the file, after ``Add to `path`:`` its end;
- a ``console`` block is run by bash, without what installs, serves or needs a key;
- other Python is pasted into ``manage.py shell``, a new one after each command and
  where the prose says "a new one";
- an ``output`` block is what the block before it prints.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.pages import Block, Page

FILE = re.compile(r"(?P<add>Add to )?`(?P<path>[\w./]+\.(?:py|html))`:$")
LEFT_OUT = ("pip install", "runserver", "OPENAI_API_KEY")
MARK = "\x1e"


class Walkthrough:
    """Follow a page in an empty folder; raises ``PageError`` for what does not hold."""

    def __init__(self, page: Page, folder: Path) -> None:
        self.page, self.folder = page, folder
        programs = folder / ".programs"
        programs.mkdir()
        for name, call in (("python", ""), ("django-admin", " -m django")):
            (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable}{call} "$@"\n')
            (programs / name).chmod(0o755)
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("DJANGO_", "OPENAI_"))
        } | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
        self.pasted: list[Block] = []

    def go(self, *, until: str | None = None) -> None:
        """Follow the page, up to a heading."""
        end = next((line for line, text in self.page.prose if text == until), sys.maxsize)
        blocks = [each for each in self.page.blocks if not each.hidden and each.line < end]
        for block, following in zip(blocks, [*blocks[1:], None], strict=True):
            wanted = following.source if following and following.info == "output" else None
            if match := FILE.search(block.lead):
                self._write(block, self.folder / match["path"], add=bool(match["add"]))
            elif block.info == "console":
                self._paste()
                self._run(block, wanted)
            elif block.info == "python":
                if "a new one" in block.lead:
                    self._paste()
                self.pasted += [block] if wanted is None else [block, following]
        self._paste()

    def _write(self, block: Block, path: Path, *, add: bool) -> None:
        if add and not path.exists():
            raise self.page.error(block.line, f"there is no {path.name} to add to")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a" if add else "w") as file:
            file.write(f"\n{block.source}" if add else block.source)

    def _run(self, block: Block, wanted: str | None) -> None:
        lines = [line.removeprefix("$ ") for line in block.source.splitlines()]
        kept = [line for line in lines if not any(each in line for each in LEFT_OUT)]
        for line in kept:
            if line.startswith("export "):
                name, _, value = line.removeprefix("export ").partition("=")
                self.environment[name] = value
        printed = self._call(block, ["bash", "-ec", "\n".join(kept)])
        if wanted is not None:
            self._compare(block, printed, wanted)

    def _paste(self) -> None:
        """Paste what has come together into one shell."""
        blocks, self.pasted = self.pasted, []
        code = [each for each in blocks if each.info == "python"]
        if code:
            source = f"print({MARK!r})\n".join(each.source for each in code)
            printed = self._call(code[0], ["python", "manage.py", "shell"], source).split(MARK)
            for index, block in enumerate(blocks):
                if block.info == "output":
                    before = code.index(blocks[index - 1])
                    self._compare(block, printed[before], block.source)

    def _call(self, block: Block, command: list[str], told: str = "") -> str:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            input=told,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        if done.returncode or "Traceback" in done.stdout:
            raise self.page.error(block.line, f"{command[-1]} failed:\n{done.stdout}")
        return done.stdout

    def _compare(self, block: Block, printed: str, wanted: str) -> None:
        if wanted.strip() not in printed:
            raise self.page.error(block.line, f"it printed {printed!r}")
