"""What a person does in the chat, and what they find there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page


def box(page: Page) -> Locator:
    return page.get_by_label("Message", exact=True)


def say(page: Page, text: str) -> None:
    box(page).fill(text)
    page.keyboard.press("Enter")


def answer(page: Page, text: str) -> Locator:
    """Return an answer that is stored, and not one that is still coming."""
    return page.locator(".messages .assistant", has_text=text)
