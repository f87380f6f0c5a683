"""Titles: drafted beside the reply, cleaned, and replaced by the prompt's first words."""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory import titles
from agent_memory.exceptions import ProviderUnavailable
from agent_memory.flow import Flow
from agent_memory.messages import (
    DocumentPart,
    ImagePart,
    Message,
    RefusalPart,
    Step,
    TextPart,
    Usage,
)
from agent_memory.providers import Provider
from agent_memory.records import check_title
from agent_memory.testing import ScriptedProvider
from tests.flows import Gate, by_every_driver, perform

PROMPT = "How do I plant a fig tree?"
USAGE = Usage(input_tokens=40, output_tokens=5)


def drafted(provider: Provider, prompt: str = PROMPT, *, generate: bool = True) -> Flow[Any]:
    """Begin a draft and take it at once."""
    draft = yield from titles.begin(provider, "small", prompt, generate=generate)
    return (yield from draft.take())


@by_every_driver
def test_a_draft_becomes_the_title_and_its_usage_is_told(driver: str) -> None:
    provider = ScriptedProvider(title='"Planting a fig tree."', usage=USAGE)
    result, _ = perform(driver, drafted(provider))
    assert result == ("Planting a fig tree", "draft", USAGE)


@by_every_driver
def test_the_draft_is_asked_of_the_model_with_the_prompts_first_500_characters(driver: str) -> None:
    provider = ScriptedProvider(title="Title")
    perform(driver, drafted(provider, "x" * 499 + "yz"))
    (request,) = provider.title_requests
    assert request.model == "small"
    assert request.instructions == titles.INSTRUCTIONS
    assert request.messages == (Message("user", "x" * 499 + "y"),)
    assert request.tools == ()


@by_every_driver
@pytest.mark.parametrize("reply", [ProviderUnavailable("Down."), LookupError, {"no": "reply"}])
def test_a_draft_that_fails_is_replaced_by_the_prompts_words(driver: str, reply: Any) -> None:
    result, _ = perform(driver, drafted(ScriptedProvider(title=reply)))
    assert result == (PROMPT, "prompt", Usage())


@by_every_driver
@pytest.mark.parametrize("text", ["", " \n ", '""', "**", "...", "#"])
def test_an_empty_draft_is_replaced_and_its_usage_is_told(driver: str, text: str) -> None:
    result, _ = perform(driver, drafted(ScriptedProvider(title=text, usage=USAGE)))
    assert result == (PROMPT, "prompt", USAGE)


def test_a_refusal_is_no_title() -> None:
    refusal = Step(items=(RefusalPart(text="I will not."),), finish_reason="refusal", usage=USAGE)
    result, _ = perform("run", drafted(ScriptedProvider(title=refusal)))
    assert result == (PROMPT, "prompt", USAGE)


@by_every_driver
def test_a_draft_that_is_late_is_replaced(driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Provider):
        def complete(self, request: object) -> Any:
            gate.wait()

        async def acomplete(self, request: object) -> Any:
            await gate.await_()

    gate = Gate()
    monkeypatch.setattr(titles, "GRACE_SECONDS", 0.001)
    result, _ = perform(driver, drafted(Slow()))
    gate.open()
    assert result == (PROMPT, "prompt", Usage())


@by_every_driver
@pytest.mark.parametrize(("prompt", "generate"), [(PROMPT, False), ("", True), (" \n ", True)])
def test_nothing_is_asked_when_titles_are_off_or_the_prompt_has_no_text(
    driver: str, prompt: str, generate: bool
) -> None:
    provider = ScriptedProvider(title="never")
    result, _ = perform(driver, drafted(provider, prompt, generate=generate))
    assert result == (prompt.strip(), "prompt", Usage())
    assert provider.title_requests == []


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Planting a fig tree", "Planting a fig tree"),
        ('  "Planting a fig tree"\n', "Planting a fig tree"),
        ('"Planting a fig tree."', "Planting a fig tree"),
        ('"Planting a fig tree".', "Planting a fig tree"),
        ("«Planter un figuier»", "Planter un figuier"),
        ("„Einen Feigenbaum pflanzen“", "Einen Feigenbaum pflanzen"),
        ("# Planting\n\na  fig\ttree", "Planting a fig tree"),
        ("**Planting a fig tree**", "Planting a fig tree"),
        ("First steps in C#", "First steps in C#"),
        (".NET and C++", ".NET and C++"),
        ("What is it?", "What is it?"),
        ("a\0b \ud800", "a\ufffdb \ufffd"),
        ("", ""),
        ("\u2028\x85 ", ""),
    ],
)
def test_a_models_answer_is_cleaned(text: str, title: str) -> None:
    assert titles.clean(text) == title


def test_an_essay_is_cut_to_a_title() -> None:
    title = titles.clean("The fig tree, " * 1000)
    assert len(title) <= titles.MAX_TITLE
    assert title.startswith("The fig tree, The")
    assert title.endswith("…")


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("Hello", "Hello"),
        ("  two\n\nlines\t ", "two lines"),
        ('"Quoted."', '"Quoted."'),
        ("a\0b\udfff", "a\ufffdb\ufffd"),
        ("", ""),
        ("   ", ""),
        ("x" * 100, "x" * 100),
        ("x" * 10_000, "x" * 99 + "…"),
        ("ab " * 40, "ab " * 32 + "ab…"),
        ("x" * 99 + " yes", "x" * 99 + "…"),
        ("Look: " + "x" * 10_000, "Look:…"),
        ("\U0001f600" * 101, "\U0001f600" * 99 + "…"),
    ],
)
def test_the_first_words_of_a_prompt_are_cut_at_a_word(prompt: str, words: str) -> None:
    assert titles.fallback(prompt) == words
    assert len(words) <= titles.MAX_TITLE


def test_a_prompt_of_files_alone_is_about_their_names() -> None:
    files = [DocumentPart(data=b"%PDF", file_name="march.pdf"), ImagePart(url="https://e.org/a")]
    assert titles.subject(Message(content=files)) == "march.pdf"
    assert titles.subject(Message(content=[TextPart(text="Pay?"), *files])) == "Pay?"


def test_a_title_never_needs_to_be_refused_by_a_store() -> None:
    for text in ("\0" * 300, "\ud800" * 300, "😀 " * 300, "\x07", "x" * 300):
        for title in (titles.clean(text), titles.fallback(text)):
            assert check_title(title) == title


def test_only_the_text_of_an_answer_is_a_title() -> None:
    step = Step(items=(TextPart(text="Fig "), RefusalPart(text="no"), TextPart(text="tree")))
    result, _ = perform("run", drafted(ScriptedProvider(title=step)))
    assert result[0] == "Fig tree"
