"""The directives of the reference: what autodoc is told to tell of."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.pages import Page

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
DIRECTIVE = re.compile(r"\.\. auto(?P<kind>\w+):: (?P<path>[\w.]+)(\(\))?")
OPTION = re.compile(r"   :(?P<name>[\w-]+):\s*(?P<value>.*)")


@dataclass(frozen=True)
class Directive:
    """What is told; ``owner`` is the class or the module that has it."""

    kind: str
    path: str
    owner: Any
    target: Any
    options: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, kind: str, path: str) -> Directive:
        """Make a directive of what stands on a page; raises for a name that there is not."""
        owner: Any = None
        target: Any = import_module(path.partition(".")[0])
        for name in path.split(".")[1:]:
            owner = target
            try:
                target = getattr(owner, name)
            except AttributeError:
                target = import_module(f"{owner.__name__}.{name}")
        return cls(kind, path, owner, target)

    def members(self) -> Iterator[str]:
        """Yield the names of the members that are told with it."""
        if "members" in self.options:
            left_out = self.options.get("exclude-members", "").split(", ")
            wanted = self.options["members"]
            for name in wanted.split(", ") if wanted else documented(self.target):
                if name not in left_out:
                    yield name


def documented(owner: type) -> list[str]:
    """Return the public members of a class that have a docstring."""
    return [name for name in vars(owner) if name[0] != "_" and inspect.getdoc(getattr(owner, name))]


@cache
def directives() -> list[Directive]:
    """Return those of all pages; raises ``ValueError`` for a line that is none."""
    found: list[Directive] = []
    for path in sorted(REFERENCE.glob("*.md")):
        for block in Page(path).blocks:
            for line in block.source.splitlines() if block.info == "{eval-rst}" else ():
                if match := DIRECTIVE.fullmatch(line):
                    found.append(Directive.of(match["kind"], match["path"]))
                elif match := OPTION.fullmatch(line):
                    found[-1].options[match["name"]] = match["value"]
                else:
                    raise ValueError(f"{path}: {line!r} is no directive of autodoc.")
    return found


def is_told(value: object) -> bool:
    return any(each.target is value for each in directives())


def told_members(owner: type) -> set[str]:
    """Return the members of a class that are told of, be it with one of its bases."""
    found: set[str] = set()
    for each in directives():
        if each.target in owner.__mro__:
            found.update(each.members())
        elif each.owner in owner.__mro__:
            found.add(each.path.rpartition(".")[2])
    return found
