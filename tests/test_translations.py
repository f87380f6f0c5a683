"""The German catalog has a text for each that people see, and pages show it."""

from __future__ import annotations

import ast
import gettext
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import translation
from django.utils.translation.template import templatize

import agent_memory
from tests.admin.calls import APPROVALS, PAY, pause, url_of
from tests.admin.saying import CONVERSATIONS, MESSAGES, conversation_page, seen, talk

APP = Path(agent_memory.__file__).parent
CATALOG = APP / "locale/de/LC_MESSAGES"
CALLS = {"_", "gettext", "gettext_lazy", "ngettext", "ngettext_lazy"}
PLACES = re.compile(r"%\(\w+\)[sd]|%%")

Texts = dict[str, tuple[str, ...]]
"""The texts of a catalog, singular and plural, by what they translate."""


def marked(source: str) -> Iterator[str]:
    """Yield the texts that Python code marks to be translated; of a plural the singular."""
    for node in ast.walk(ast.parse(source)):
        called = getattr(node, "func", None)
        name = getattr(called, "id", getattr(called, "attr", None))
        if isinstance(node, ast.Call) and name in CALLS:
            first = node.args[0]
            assert isinstance(first, ast.Constant), f"{name}() of no literal: {ast.unparse(node)}"
            yield first.value


def marked_in_template(source: str) -> Iterator[str]:
    """Yield the texts that a template marks."""
    code = templatize(source)
    for match in re.finditer(r"\b(?:_|n?gettext)\(", code):
        rest = code[match.end() :]
        literal = re.match(r"""u?("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')""", rest)
        assert literal, rest[:80]
        yield ast.literal_eval(literal[1])


def sources() -> set[str]:
    found = {text for path in APP.rglob("*.py") for text in marked(path.read_text())}
    for path in APP.rglob("templates/**/*.html"):
        found.update(marked_in_template(path.read_text()))
    return found


def entries() -> Iterator[dict[str, str]]:
    """Yield the entries of the catalog as it was written, field by field."""
    for entry in (CATALOG / "django.po").read_text(encoding="utf-8").split("\n\n")[1:]:
        assert "#, fuzzy" not in entry
        fields: dict[str, str] = {}
        for line in entry.splitlines():
            if match := re.match(r'(msg[\w\[\]]+) (".*")$', line):
                name, text = match.groups()
                fields[name] = ast.literal_eval(text)
            elif line.startswith('"'):
                fields[[*fields][-1]] += ast.literal_eval(line)
        yield fields


def written() -> Texts:
    """Return the catalog as it was written."""
    return {
        fields["msgid"]: tuple(text for name, text in fields.items() if name.startswith("msgstr"))
        for fields in entries()
    }


def compiled() -> Texts:
    """Return the catalog as Django reads it."""
    found: Texts = {}
    with (CATALOG / "django.mo").open("rb") as file:
        catalog: dict[Any, str] = vars(gettext.GNUTranslations(file))["_catalog"]
    for key, text in catalog.items():
        name, number = key if isinstance(key, tuple) else (key, 0)
        texts = found.get(name, ())
        assert number == len(texts), "plurals come in their order"
        found[name] = (*texts, text)
    found.pop("")
    return found


@pytest.mark.heavy
def test_the_catalog_translates_what_is_marked_and_nothing_else() -> None:
    assert sources() - written().keys() == set(), "run makemessages and translate"
    assert written().keys() - sources() == set(), "run makemessages --no-obsolete"


def test_each_text_has_a_german_one_with_the_same_places() -> None:
    for fields in entries():
        plural = fields.get("msgid_plural")
        pairs = {fields["msgid"]: fields["msgstr" if plural is None else "msgstr[0]"]}
        if plural is not None:
            pairs[plural] = fields["msgstr[1]"]
        for text, german in pairs.items():
            assert german, text
            assert sorted(PLACES.findall(german)) == sorted(PLACES.findall(text)), text


def test_what_is_compiled_is_what_is_written() -> None:
    assert compiled() == written(), "run compilemessages"


def test_a_text_that_nobody_translated_would_be_found() -> None:
    code = 'gettext("a" "b"); _("c"); translation.ngettext("d", "e", n); print("f")'
    assert list(marked(code)) == ["ab", "c", "d"]
    template = (
        '{% load i18n %}{% translate "a 50%" %}{% blocktranslate %}b {{ c }}{% endblocktranslate %}'
        "{% blocktranslate count n=n %}d{% plural %}e{% endblocktranslate %}"
    )
    assert list(marked_in_template(template)) == ["a 50%%", "b %(c)s", "d"]


@pytest.mark.django_db
def test_pages_are_german_to_who_reads_german(admin_client: Client) -> None:
    talk("one", title="Chairs")
    (call,) = pause("one", PAY)
    with translation.override("de"):
        listed = seen(admin_client.get(CONVERSATIONS))
        page = seen(admin_client.get(conversation_page("one")))
        said = seen(admin_client.get(MESSAGES))
        waiting = seen(admin_client.get(APPROVALS))
        form = seen(admin_client.get(url_of(call)))
        answer = admin_client.post(
            url_of(call), {f"call-{call.pk}-decision": "approve"}, follow=True
        )
    assert "Agenten-Gedächtnis" in listed
    assert "wartet auf Freigabe" in listed
    assert "Umbenennen" in page
    assert "Teilnehmer" in page
    assert "Assistent abgeschlossen" in said
    assert "Werkzeugfreigabe" in waiting
    assert "Mit anderen Argumenten freigeben" in form
    assert "Über 1 Werkzeugaufruf in „Chairs“ ist entschieden." in seen(answer)


@pytest.mark.django_db
def test_a_language_without_a_catalog_gets_english(admin_client: Client) -> None:
    User.objects.update(first_name="Ada")
    talk("one")
    with translation.override("cy"):
        assert "Rename" in seen(admin_client.get(conversation_page("one")))
