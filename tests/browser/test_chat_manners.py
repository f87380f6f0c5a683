"""What the chat is for those who use no mouse, no eyes, no large screen, and for those who attack."""

from __future__ import annotations

from typing import TYPE_CHECKING

import django
import pytest

from example_project.endpoints.openai_shapes import Called
from tests.browser.chatting import answer, box, say
from tests.browser.chromium import Watch, expect
from tests.browser.conftest import Axe, NewPage
from tests.browser.model import Model
from tests.browser.seeding import PASSWORD
from tests.browser.site import Site
from tests.files import PDF, PNG

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>"
HOSTILE = f"""{SCRIPT}

[click](javascript:alert(3)) ![pixel](http://evil.example/pixel.png)
<iframe src="http://evil.example/"></iframe> <style>body {{ display: none }}</style>

<a href="data:text/html,<script>alert(4)</script>">here</a> \u202egnp.exe {{{{ 7 }}}} {{% url 'x' %}}
"""


def test_signing_in_leads_to_the_page_that_was_asked_for_and_out_again(
    site: Site, page: Page, someone: str
) -> None:
    site.seed("user", someone)
    conversation = site.seed("conversation", someone, [["Hello", "Hi."]])
    page.goto(f"{site.url}/?conversation={conversation}")
    page.get_by_label("Username").fill(someone)
    page.get_by_label("Password").fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("correct username and password")
    page.get_by_label("Username").fill(someone)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("Hi.")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()


def test_a_page_whose_user_has_signed_out_says_so(site: Site, page: Page, someone: str) -> None:
    site.user(page, someone)
    page.goto(site.url)
    page.context.clear_cookies(name="sessionid")
    say(page, "Hello")
    expect(page.get_by_role("alert")).to_contain_text("You have been signed out")
    expect(box(page)).to_have_value("Hello")


def test_somebody_elses_conversation_is_not_found_by_its_id(
    site: Site, page: Page, someone: str, watch: Watch
) -> None:
    site.seed("user", f"{someone}-b")
    conversation = site.seed("conversation", f"{someone}-b", [["Secret", "Hi."]])
    site.user(page, someone)
    response = page.goto(f"{site.url}/?conversation={conversation}")
    assert response
    assert response.status == 404
    assert "Secret" not in page.content()
    watch.forgive("404 ")


def test_nothing_that_is_hostile_does_anything(
    site: Site, page: Page, model: Model, someone: str, watch: Watch
) -> None:
    call = Called("refund", {"order": SCRIPT, "amount": "1"})
    model.title = SCRIPT
    model.script(HOSTILE, call)
    site.user(page, someone)
    page.goto(site.url)
    files = [
        {"name": f"{SCRIPT}.png".replace("/", "_"), "mimeType": "image/png", "buffer": PNG},
        {"name": "\u202efdp.exe\"'<b>.pdf", "mimeType": "application/pdf", "buffer": PDF},
    ]
    page.get_by_label("Attach files").set_input_files(files)
    say(page, HOSTILE)
    expect(answer(page, "alert(1)")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text(SCRIPT)
    say(page, "Money!")
    expect(page.locator(".decision")).to_contain_text("alert(1)")
    page.reload()
    expect(answer(page, "alert(1)").first).to_contain_text("<iframe")
    links = page.locator(".messages a").evaluate_all("all => all.map((each) => each.protocol)")
    assert set(links) <= {"http:", "https:"}
    assert page.locator("script, iframe, style, [onerror]").count() == 1  # the page's own module
    assert not [url for url in watch.requests if "evil" in url]


def test_all_is_done_by_keyboard_alone(site: Site, page: Page, model: Model, someone: str) -> None:
    model.script(Called("refund", {"order": "A7", "amount": "3"}), "Paid back.")
    site.user(page, someone)
    page.goto(site.url)
    expect(box(page)).to_be_focused()
    page.keyboard.type("Refund, please")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("soon")
    page.keyboard.press("Enter")
    approve = page.get_by_role("button", name="Approve")
    expect(approve).to_be_visible()
    expect(box(page)).to_be_focused()
    expect(page.get_by_text("Refund, please soon")).to_be_visible()
    expect(page.locator("#status")).to_have_text("A tool call waits for your approval.")
    for _ in range(5):
        if approve.evaluate("button => button === document.activeElement"):
            break
        page.keyboard.press("Shift+Tab")
    expect(approve).to_be_focused()
    page.keyboard.press("Enter")
    expect(answer(page, "Paid back.")).to_be_visible()
    expect(page.locator("#status")).to_have_text("Answered.")
    expect(box(page)).to_be_focused()
    skip = page.get_by_role("link", name="Skip to the message box")
    expect(skip).not_to_be_in_viewport()
    skip.focus()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(box(page)).to_be_focused()


MARKDOWN = "# Title\n\n- one\n\n`code` [link](https://example.com)\n\n|a|b|\n|-|-|\n|1|2|"


def test_axe_finds_no_serious_fault(
    site: Site, page: Page, model: Model, someone: str, axe: Axe
) -> None:
    page.goto(f"{site.url}/login/")
    assert axe(page) == []
    model.script(MARKDOWN, "Held.", 400, Called("refund", {"order": "A7", "amount": "3"}))
    site.user(page, someone)
    site.seed("conversation", someone, [["Hello", "Hi."]] * 20, title="Long")
    page.goto(site.url)
    assert axe(page) == []
    say(page, "Hello")
    expect(answer(page, "one")).to_be_visible()
    with model.hold():
        say(page, "And now?")
        expect(page.locator(".streaming")).to_have_text("Held.")
        assert axe(page) == []
    expect(answer(page, "Held.")).to_be_visible()
    say(page, "Fail")
    expect(page.get_by_role("alert")).to_be_visible()
    say(page, "Refund")
    expect(page.get_by_role("button", name="Approve")).to_be_visible()
    page.get_by_label("Attach files").set_input_files(
        [{"name": "chart.png", "mimeType": "image/png", "buffer": PNG}]
    )
    assert axe(page) == []
    page.get_by_role("button", name="Rename").click()
    assert axe(page) == []
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("link", name="Long").click()
    expect(page.get_by_role("button", name="Show earlier messages")).to_be_attached()
    assert axe(page) == []


def test_axe_finds_no_serious_fault_in_the_dark(
    site: Site, new_page: NewPage, someone: str, axe: Axe
) -> None:
    page = new_page(color_scheme="dark")
    page.goto(f"{site.url}/login/")
    assert axe(page) == []
    site.user(page, someone)
    conversation = site.seed("conversation", someone, [["Hello", MARKDOWN]], title="Dark")
    page.goto(f"{site.url}/?conversation={conversation}")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(230, 232, 236)"
    assert axe(page) == []


def test_a_phone_shows_one_thing_at_a_time_and_nothing_too_wide(
    site: Site, new_page: NewPage, someone: str, axe: Axe
) -> None:
    page = new_page(viewport={"width": 360, "height": 640}, is_mobile=True, has_touch=True)
    site.user(page, someone)
    wide = (
        "W" * 300 + "\n\n```\n" + "x" * 300 + "\n```\n\n|" + "a long column|" * 9 + "\n" + "|-" * 9
    )
    conversation = site.seed("conversation", someone, [["V" * 300, wide]], title="T" * 200)
    page.goto(f"{site.url}/?conversation={conversation}")
    expect(page.get_by_text("WWW")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    link = page.get_by_role("link", name="New chat")
    expect(link).to_be_hidden()
    page.get_by_role("button", name="Conversations").tap()
    expect(link).to_be_focused()
    assert axe(page) == []
    page.keyboard.press("Escape")
    expect(link).to_be_hidden()
    expect(page.get_by_role("button", name="Conversations")).to_be_focused()


@pytest.mark.skipif(django.VERSION < (6, 0), reason="Django 6 has the policy's middleware")
def test_pages_have_a_policy_that_allows_no_script_but_their_own(
    site: Site, page: Page, someone: str
) -> None:
    site.user(page, someone)
    for path in ("/", "/login/"):
        response = page.goto(site.url + path)
        assert response
        assert "default-src 'self'" in response.headers["content-security-policy"]
        assert "unsafe" not in response.headers["content-security-policy"]
