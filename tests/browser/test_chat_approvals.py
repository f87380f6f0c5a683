"""A tool call that waits for a person in the web chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from example_project.endpoints.openai_shapes import Called
from tests.browser.chatting import answer, say
from tests.browser.chromium import expect
from tests.browser.model import Model
from tests.browser.site import Site

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

REFUND = Called("refund", {"order": "A7", "amount": "12.50"})


def test_a_call_waits_for_its_approval_over_a_reload_and_a_restart(
    site: Site, page: Page, model: Model, someone: str
) -> None:
    model.script(REFUND, "Paid back.")
    site.user(page, someone)
    page.goto(site.url)
    say(page, "I want my money back.")
    expect(page.get_by_role("heading", name="Waits for your approval")).to_be_visible()
    page.wait_for_load_state("networkidle")
    site.kill()
    site.start()
    page.reload()
    card = page.locator(".decision")
    expect(card).to_contain_text("12.50")
    before = site.seed("refunds")
    card.get_by_role("button", name="Approve").dblclick()
    expect(answer(page, "Paid back.")).to_be_visible()
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    assert site.seed("refunds") == before + 1


def test_a_refused_call_does_not_run_and_its_reason_is_told(
    site: Site, page: Page, model: Model, someone: str
) -> None:
    model.script(REFUND, "I may not.")
    site.user(page, someone)
    page.goto(site.url)
    say(page, "I want my money back.")
    before = site.seed("refunds")
    page.get_by_label("Note").fill("Not without a receipt.")
    page.get_by_role("button", name="Do not allow").click()
    expect(answer(page, "I may not.")).to_be_visible()
    expect(page.locator("details")).to_contain_text("not allowed")
    assert site.seed("refunds") == before
    assert "Not without a receipt." in model.bodies[-1]["input"][-1]["output"]


def test_a_turn_whose_call_was_decided_elsewhere_goes_on_from_the_page(
    site: Site, page: Page, model: Model, someone: str
) -> None:
    model.script(REFUND, "Done.")
    site.user(page, someone)
    page.goto(site.url)
    say(page, "I want my money back.")
    expect(page.get_by_role("button", name="Approve")).to_be_visible()
    site.seed("approve", page.url.split("conversation=")[1])
    page.reload()
    page.get_by_role("button", name="Go on").click()
    expect(answer(page, "Done.")).to_be_visible()
