"""What the promises share: the store under test, participants, and turns to append."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any
from unittest import TestCase

from agent_memory.messages import Message, Step, TextPart, ToolCall, ToolResult, Turn
from agent_memory.participants import Participant
from agent_memory.records import Item, Page, Reservation
from agent_memory.stores.base import ConversationStore

raises = TestCase().assertRaises

ONE, TWO = "one", "two"
COACH, CLERK = "tests.Coach", "tests.Clerk"

# No conversation id: empty, too long, not storable everywhere, no text.
INVALID_IDS: tuple[Any, ...] = ("", "x" * 256, "a\0b", "a\ud800", "\udfff", 7, b"one", ["one"])
# No page size.
INVALID_SIZES: tuple[Any, ...] = (0, -1, 1001, True, "5", 2.5)
# No page cursor; the long ones are forged, of times that have no zone or no form everywhere.
INVALID_CURSORS: tuple[Any, ...] = (
    *("", " ", "x", "1.5", "1 ", " 1", "1\n", "--1", "-", "\uff11", "9" * 40, "e30", "bnVsbA"),
    *(
        "WyIyMDMwLTAxLTAxVDAwOjAwOjAwIiwgIm9uZSJd",
        "WyIwMDAxLTAxLTAxVDAwOjAwOjAwKzAwOjAwIiwgIm9uZSJd",
        "WyI5OTk5LTEyLTMxVDIzOjU5OjU5LTIzOjU5IiwgIm9uZSJd",
    ),
    *("next_cursor=1", "\0", "\ud800", 0, 1, -1, True, False, 1.5, b"1", (), {}),
)


class Promises:
    """
    Base of the contract's parts: each promise is one method, named by its sentence.

    ``make_store`` gives a new, empty store, ``reopen`` the same one as another
    worker has it. The ``participants`` are two with the same key and different
    types, such as the store can hold.
    """

    participants = (Participant("auth.user", "1"), Participant("auth.group", "1"))

    def make_store(self) -> ConversationStore:
        raise NotImplementedError(f"{type(self).__name__} must define make_store().")

    def reopen(self) -> ConversationStore:
        """Return another store that holds the same conversations, if there can be one."""
        return self.store

    @cached_property
    def store(self) -> ConversationStore:
        return self.make_store()

    @property
    def elsewhere(self) -> ConversationStore:
        """The store under test, in the hands of another worker."""
        return self.reopen()

    @property
    def owner(self) -> Participant:
        return self.participants[0]

    @property
    def namesake(self) -> Participant:
        """Return one of another type with the owner's key."""
        return self.participants[1]

    @property
    def sibling(self) -> Participant:
        """Return one of the owner's type with another key."""
        return Participant(self.owner.type, f"{self.owner.key}0")

    def append(self, conversation_id: str, *prompts: str) -> list[Turn]:
        """Append a plain turn for each prompt."""
        turns = [plain_turn(prompt) for prompt in prompts]
        for turn in turns:
            self.store.append(conversation_id, turn)
        return turns

    def expire(self, reservation: Reservation) -> None:
        """Have a worker's reservation end, as if the worker had died long ago."""
        assert self.store.renew(reservation, 0)


def plain_turn(prompt: str = "Hello", answer: str | None = None, **fields: Any) -> Turn:
    """Return a turn of a prompt and one answer."""
    text = f"{prompt}!" if answer is None else answer
    step = Step(items=(TextPart(text=text),), model="test-model", provider="test")
    return Turn(user=Message("user", prompt), steps=(step,), **fields)


def tool_turn(prompt: str = "Weather?", calls: int = 2) -> Turn:
    """Return a turn in which each step but the last calls tools."""
    steps = [
        Step(
            items=(
                TextPart(text="Let me look."),
                ToolCall(
                    id=f"call-{number}",
                    name="weather",
                    arguments={"city": "Paris", "day": number},
                    result=ToolResult(value={"sky": ["blue", number]}),
                ),
            ),
            finish_reason="tool_calls",
        )
        for number in range(calls)
    ]
    return Turn(user=Message("user", prompt), steps=(*steps, Step(items=(TextPart(text="Fine."),))))


def messages_of(turns: Iterable[Turn]) -> tuple[Message, ...]:
    """Return turns as ``load`` gives them."""
    return tuple(message for turn in turns for message in turn.messages)


def walk(read: Callable[..., Page[Item]], *args: Any, **kwargs: Any) -> list[Page[Item]]:
    """Return all pages, from the first to the one without a next cursor."""
    pages = [read(*args, **kwargs)]
    while pages[-1].next_cursor is not None:
        assert len(pages) < 1000, "The pages do not end."
        pages.append(read(*args, **kwargs, cursor=pages[-1].next_cursor))
    return pages
