"""Sphinx: the pages of this folder, and the reference that is made of docstrings."""

from __future__ import annotations

import inspect
import os
import re
import sys
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

import django

sys.path.insert(0, str(Path(__file__).parent.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")
django.setup()

from django.db import models  # noqa: E402 - models need settings
from docutils import nodes  # noqa: E402 - after the path is set, as all that follows
from pydantic import BaseModel  # noqa: E402 - see above
from sphinx.application import Sphinx  # noqa: E402 - see above

from agent_memory.messages import Usage  # noqa: E402 - see above

project = "django-agent-memory"
author = "the agent_memory contributors"
project_copyright = author
release = version = version_of(project)

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
exclude_patterns = ["changelog.d"]

myst_heading_anchors = 4

add_module_names = False
autodoc_default_options = {"member-order": "bysource", "exclude-members": "model_config"}
autodoc_preserve_defaults = True
autodoc_type_aliases = {
    name: name
    for name in (
        "Decision", "Decisions", "Decided", "NeedsApproval", "Part", "Policy", "Reply", "Role",
        "Source", "Status", "StepItem", "StoredPart", "TitleSource", "Told", "Wanted",
    )
}  # fmt: skip
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 96

html_theme = "furo"
html_title = project
html_static_path = ["_static"]
html_css_files = ["tables.css"]
html_copy_source = False
html_show_sphinx = False

READABLE = [
    (re.compile(re.escape(repr(Usage()))), "Usage()"),
    (re.compile(r"TypeAliasForwardRef\('(\w+)'\)"), r"\1"),
    (re.compile(r"Annotated\[(\w+), [^]]*\]"), r"\1"),
    (re.compile("<factory>"), "..."),
]
"""What stands in a signature, and how it is told."""

LISTED = re.compile(r"^(?:-|\d+\.) \[[^\]]+\]\(([\w/-]+)\.md\)", re.MULTILINE)


def add_toctrees(_: Sphinx, name: str, source: list[str]) -> None:
    """Make a hidden table of contents of each list of pages on an index page."""
    if name.rpartition("/")[2] != "index":
        return
    head, *sections = re.split(r"^(?=## )", source[0], flags=re.MULTILINE)
    for number, section in enumerate(sections):
        if pages := LISTED.findall(section):
            caption = section.partition("\n")[0].strip("# ")
            options = f":hidden:\n:caption: {caption}\n\n" if name == "index" else ":hidden:\n\n"
            tree = "\n".join(pages)
            sections[number] = f"{section}\n\n```{{toctree}}\n{options}{tree}\n```\n\n"
    source[0] = head + "".join(sections)


def drop_comments(_: Sphinx, tree: nodes.document) -> None:
    """Leave out HTML comments: they tell the tests of a page what to do."""
    for node in list(tree.findall(nodes.raw)):
        if node.astext().lstrip().startswith("<!--"):
            node.parent.remove(node)


def add_columns(
    _: Sphinx, what: str, _name: str, obj: Any, _options: Any, lines: list[str]
) -> None:
    """Tell the columns of a model."""
    if what == "class" and issubclass(obj, models.Model):
        columns = [f"``{field.name}`` ({field.get_internal_type()})" for field in obj._meta.fields]
        lines += [f"Columns: {', '.join(columns)}.", ""]


def sign(
    _: Sphinx, what: str, _name: str, obj: Any, _options: Any, signature: str | None, returns: Any
) -> tuple[str, Any] | None:
    """Sign values with the annotations as they are written, and the rest with names of aliases."""
    if what == "class" and issubclass(obj, BaseModel):
        signature = signature_of(obj)
    if signature is None:
        return None
    for pattern, text in READABLE:
        signature = pattern.sub(text, signature)
    return signature, returns


def signature_of(model: type[BaseModel]) -> str:
    written = {
        name: text
        for base in reversed(model.__mro__)
        for name, text in inspect.get_annotations(base).items()
    }
    parameters = [
        f"{name}: {written[name]}" + ("" if field.is_required() else f" = {field.default!r}")
        for name, field in model.model_fields.items()
        if name != "type"
    ]
    return f"({', '.join(parameters)})"


def setup(app: Sphinx) -> None:
    app.connect("source-read", add_toctrees)
    app.connect("doctree-read", drop_comments)
    app.connect("autodoc-process-docstring", add_columns)
    app.connect("autodoc-process-signature", sign)
