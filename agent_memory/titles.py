"""A conversation's title: drafted beside the first reply, or the prompt's first words."""

from __future__ import annotations

from agent_memory.exceptions import ProviderUnavailable
from agent_memory.flow import Flow, Start, Take, Wait
from agent_memory.messages import FilePart, Message, Usage
from agent_memory.providers.base import Provider, ProviderRequest
from agent_memory.records import TitleSource, readable

MAX_PROMPT = 500
MAX_TITLE = 100
GRACE_SECONDS = 1.0
PATIENCE_SECONDS = 30.0
QUOTES = "\"'`*«»“”„ "

INSTRUCTIONS = (
    "Write a title of 3 to 5 words for the conversation that begins with the user's message, "
    "in the language of that message. Answer with the title only: no quotes, no full stop."
)


class Draft:
    """A title that is being drafted while the reply is generated."""

    def __init__(self, prompt: str, handle: object | None) -> None:
        self.prompt = prompt
        self.handle = handle

    def take(self) -> Flow[tuple[str, TitleSource, Usage]]:
        """
        Return title, source and usage.

        An unfinished draft gets a second more; a late, failed or empty one is
        replaced by the prompt's first words.
        """
        usage = Usage()
        if self.handle is not None and (yield Wait(self.handle, GRACE_SECONDS)):
            try:
                step = (yield Take(self.handle)).step
            except Exception:
                return fallback(self.prompt), "prompt", usage
            usage = step.usage
            if title := clean(step.text):
                return title, "draft", usage
        return fallback(self.prompt), "prompt", usage


def begin(provider: Provider, model: str, prompt: str, *, generate: bool) -> Flow[Draft]:
    """Begin to draft a title beside the reply; a prompt without text is not worth a request."""
    handle = None
    if generate and prompt.strip():
        handle = yield _start(provider, model, prompt)
    return Draft(prompt, handle)


def redraft(provider: Provider, model: str, prompt: str) -> Flow[tuple[str, Usage]]:
    """
    Draft the title of a conversation that has been, for somebody who waits for it.

    Returns an empty one when the model gave none. Raises what the provider raises,
    and ``ProviderUnavailable`` when it takes too long.
    """
    handle = yield _start(provider, model, prompt)
    if not (yield Wait(handle, PATIENCE_SECONDS)):
        raise ProviderUnavailable(f"No title came within {PATIENCE_SECONDS:g} seconds.")
    step = (yield Take(handle)).step
    return clean(step.text), step.usage


def _start(provider: Provider, model: str, prompt: str) -> Start:
    request = ProviderRequest(
        model=model,
        instructions=INSTRUCTIONS,
        messages=(Message("user", prompt[:MAX_PROMPT]),),
    )
    return Start(provider.complete, provider.acomplete, (request,))


def subject(message: Message) -> str:
    """Return what a conversation that begins with this message is about: its text, else its files."""
    if message.text.strip():
        return message.text
    names = [part.file_name for part in message.content if isinstance(part, FilePart)]
    return ", ".join(name for name in names if name)


def clean(text: str) -> str:
    """Return a model's answer as a title: one line, no quotes, at most 100 characters."""
    title = " ".join(readable(text).split()).lstrip("# ").strip(QUOTES)
    return shorten(title.rstrip("." + QUOTES))


def fallback(prompt: str) -> str:
    """Return the first words of a prompt, at most 100 characters."""
    return shorten(" ".join(readable(prompt).split()))


def shorten(text: str) -> str:
    """Cut text at a word, if it is too long for a title."""
    if len(text) <= MAX_TITLE:
        return text
    cut = text[:MAX_TITLE]
    return (cut.rsplit(" ", 1)[0] if " " in cut else cut[:-1]).rstrip() + "…"
