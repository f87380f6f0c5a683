"""The web chat, as a person uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.chatting import answer, box, say
from tests.browser.chromium import Watch, expect
from tests.browser.conftest import NewPage
from tests.browser.model import TITLE, Model
from tests.browser.site import Site
from tests.files import PDF, PNG

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser


def test_an_answer_is_streamed_and_is_there_again(
    server: Site, page: Page, model: Model, someone: str
) -> None:
    model.script("**Hello** Ada.", "You said hello.")
    server.user(page, someone)
    page.goto(server.url)
    with model.hold():
        say(page, "Hello")
        expect(page.locator(".streaming")).to_have_text("**Hello** ")
        expect(page.get_by_text("Answering now…").first).to_be_visible()
    expect(page.locator(".messages strong")).to_have_text("Hello")
    expect(page.get_by_role("heading", level=1)).to_have_text(TITLE)
    say(page, "What did I say?")
    expect(answer(page, "You said hello.")).to_be_visible()
    page.reload()
    expect(page.locator("article")).to_have_count(4)
    page.goto(server.url)
    page.get_by_role("link", name=TITLE).click()
    expect(page.locator("article")).to_have_count(4)


def test_stopping_ends_the_turn_on_the_server_and_gives_the_message_back(
    server: Site, page: Page, model: Model, someone: str
) -> None:
    model.script("A long answer.", "Short.")
    server.user(page, someone)
    page.goto(server.url)
    with model.hold():
        say(page, "Tell me all")
        expect(page.locator(".streaming")).to_have_text("A ")
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_role("alert")).to_contain_text("Stopped")
        expect(box(page)).to_have_value("Tell me all")
        if server.server == "asgi":
            model.wait_until_left()
    expect(page.locator("article")).to_have_count(0)
    page.keyboard.press("Enter")
    expect(answer(page, "Short.")).to_be_visible()
    page.reload()
    expect(page.locator("article")).to_have_count(2)


def test_a_page_that_is_loaded_again_shows_that_it_is_answering_and_then_the_answer(
    server: Site, page: Page, model: Model, someone: str
) -> None:
    model.script("The whole answer.")
    server.user(page, someone)
    page.goto(server.url)
    with model.hold():
        say(page, "Hello")
        expect(page.locator(".streaming")).to_have_text("The ")
        page.reload()
        expect(page.locator("#answering")).to_contain_text("Answering now…")
        expect(page.locator(".user.running")).to_contain_text("Hello")
    expect(answer(page, "The whole answer.")).to_be_visible()
    expect(page.locator("article")).to_have_count(2)
    expect(page.locator("#answering")).to_be_hidden()


def test_a_turn_can_be_stopped_from_a_page_that_is_loaded_again(
    site: Site, page: Page, model: Model, someone: str
) -> None:
    model.script("Never told.")
    site.user(page, someone)
    page.goto(site.url)
    with model.hold():
        say(page, "Hello")
        expect(page.locator(".streaming")).to_have_text("Never ")
        page.reload()
        page.get_by_role("button", name="Stop").click()
        model.wait_until_left()
        expect(page.locator("#answering")).to_be_hidden()
    expect(page.locator("article")).to_have_count(0)


def test_a_second_tab_that_asks_at_once_is_told_to_wait_and_keeps_its_message(
    site: Site, page: Page, model: Model, someone: str, watch: Watch
) -> None:
    model.script("First.", "The first is told.", "Third.")
    site.user(page, someone)
    page.goto(site.url)
    say(page, "One")
    expect(answer(page, "First.")).to_be_visible()
    other = page.context.new_page()
    other.goto(page.url)
    with model.hold():
        say(page, "Two")
        expect(page.locator(".streaming")).to_have_text("The ")
        say(other, "Three")
        expect(other.get_by_role("alert")).to_contain_text("Another message is being answered")
        expect(other.locator("#answering")).to_be_visible()
    expect(answer(other, "The first is told.")).to_be_visible()
    expect(box(other)).to_have_value("Three")
    other.keyboard.press("Enter")
    expect(answer(other, "Third.")).to_be_visible()
    page.reload()
    expect(page.locator("article")).to_have_count(6)
    watch.forgive("409 .Conflict")


def test_a_double_click_is_one_turn(site: Site, page: Page, model: Model, someone: str) -> None:
    site.user(page, someone)
    page.goto(site.url)
    box(page).fill("Hello")
    page.get_by_role("button", name="Send").dblclick()
    expect(answer(page, "Fine.")).to_be_visible()
    page.reload()
    expect(page.locator("article")).to_have_count(2)
    assert len(model.bodies) == 1


def test_a_message_whose_connection_is_lost_is_answered_once(
    site: Site, page: Page, model: Model, someone: str, watch: Watch
) -> None:
    site.user(page, someone)
    conversation = site.seed("conversation", someone, [["Hello", "Hi."]])
    page.goto(f"{site.url}/?conversation={conversation}")
    page.route("**/ask/**", lambda route: (route.fetch(), route.abort()))
    say(page, "Are you there?")
    expect(answer(page, "Fine.")).to_be_visible()
    expect(page.get_by_role("alert")).to_be_hidden()
    expect(box(page)).to_have_value("")
    page.unroute_all()
    page.route("**/ask/**", lambda route: route.abort())
    say(page, "And now?")
    expect(page.get_by_role("alert")).to_contain_text("The connection was lost")
    expect(box(page)).to_have_value("And now?")
    page.unroute_all()
    page.keyboard.press("Enter")
    expect(page.locator(".messages article")).to_have_count(6)
    assert len(model.bodies) == 2
    watch.forgive("ERR_FAILED")


def test_files_are_previewed_sent_and_shown_again(
    site: Site, page: Page, model: Model, someone: str
) -> None:
    site.user(page, someone)
    page.goto(site.url)
    page.get_by_label("Attach files").set_input_files(
        [
            {"name": "chart.png", "mimeType": "image/png", "buffer": PNG},
            {"name": "report.pdf", "mimeType": "application/pdf", "buffer": PDF},
            {"name": "wrong.pdf", "mimeType": "application/pdf", "buffer": PDF},
        ]
    )
    expect(page.locator("#files li")).to_have_count(3)
    assert page.locator("#files img").evaluate("image => image.decode().then(() => 'shown')")
    page.get_by_role("button", name="Remove wrong.pdf").click()
    say(page, "Compare them.")
    expect(answer(page, "Fine.")).to_be_visible()
    image = page.get_by_role("img", name="chart.png")
    assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") == 1
    expect(page.get_by_role("link", name="report.pdf")).to_be_visible()
    expect(page.get_by_text("wrong.pdf")).to_have_count(0)
    kinds = [part["type"] for part in model.bodies[-1]["input"][-1]["content"]]
    assert kinds == ["input_text", "input_image", "input_file"]


def test_history_is_scrolled_back_page_by_page(site: Site, page: Page, someone: str) -> None:
    site.user(page, someone)
    turns = [[f"Question {number}", "Answer. " * 40] for number in range(30)]
    conversation = site.seed("conversation", someone, turns)
    page.goto(f"{site.url}/?conversation={conversation}")
    expect(page.get_by_text("Question 29", exact=True)).to_be_in_viewport()
    expect(page.get_by_text("Question 0", exact=True)).to_have_count(0)
    shown = page.locator("article").count()
    for _ in range(2):
        page.get_by_role("button", name="Show earlier messages").press("Enter")
        expect(page.locator("article").nth(shown)).to_be_attached()
        shown = page.locator("article").count()
    expect(page.get_by_text("Question 0", exact=True)).to_have_count(1)
    expect(page.get_by_role("button", name="Show earlier messages")).to_have_count(0)
    expect(page.locator("article")).to_have_count(60)
    order = page.locator(".user .bubble").all_text_contents()
    assert order == [f"Question {number}" for number in range(30)]
    page.get_by_role("log").evaluate("log => { log.scrollTop = 0; }")
    expect(page.get_by_text("Question 0", exact=True)).to_be_in_viewport()


def test_a_conversation_is_renamed_and_deleted(
    site: Site, page: Page, someone: str, watch: Watch
) -> None:
    site.user(page, someone)
    conversation = site.seed("conversation", someone, [["Hello", "Hi."]], title="Before")
    page.goto(f"{site.url}/?conversation={conversation}")
    page.get_by_role("button", name="Rename").click()
    expect(page.get_by_label("Title")).to_be_focused()
    page.keyboard.type("After")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("After")
    expect(page.get_by_role("link", name="After")).to_have_attribute("aria-current", "page")
    other = page.context.new_page()
    other.goto(page.url)
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("The conversation was deleted.")).to_be_visible()
    expect(page.get_by_role("link", name="After")).to_have_count(0)
    say(other, "Still there?")
    expect(other.get_by_role("alert")).to_contain_text("This conversation has been deleted.")
    expect(box(other)).to_have_value("Still there?")
    watch.forgive("404 ")


def test_a_model_that_fails_is_told_in_words_and_the_message_may_be_sent_again(
    site: Site, page: Page, model: Model, someone: str
) -> None:
    model.script(400, "Now it works.")
    site.user(page, someone)
    page.goto(site.url)
    say(page, "Hello")
    expect(page.get_by_role("alert")).to_contain_text("The model did not take this message.")
    expect(box(page)).to_have_value("Hello")
    page.keyboard.press("Enter")
    expect(answer(page, "Now it works.")).to_be_visible()
    expect(page.get_by_role("alert")).to_be_hidden()


@pytest.mark.parametrize(
    ("upload", "words"),
    [
        ({"name": "run.exe", "mimeType": "image/png", "buffer": b"MZ\0\0"}, "cannot be sent"),
        ({"name": "big.txt", "mimeType": "text/plain", "buffer": b"a" * 100_001}, "too large"),
    ],
)
def test_a_file_that_cannot_be_sent_is_named_and_kept(
    site: Site, page: Page, someone: str, watch: Watch, upload: Any, words: str
) -> None:
    site.user(page, someone)
    page.goto(site.url)
    page.get_by_label("Attach files").set_input_files([upload])
    say(page, "Look.")
    expect(page.get_by_role("alert")).to_contain_text(f"“{upload['name']}” ")
    expect(page.get_by_role("alert")).to_contain_text(words)
    expect(page.locator("#files li")).to_have_count(1)
    watch.forgive("41[35] ")


def test_a_team_shares_its_conversations(
    site: Site, page: Page, new_page: NewPage, someone: str
) -> None:
    member = f"{someone}-b"
    site.user(page, someone)
    site.seed("user", member)
    site.seed("team", "Support", [someone, member])
    page.goto(site.url)
    page.get_by_label("Start as").select_option("Support")
    say(page, "Hello from the team")
    expect(answer(page, "Fine.")).to_be_visible()
    other = new_page()
    site.login(other, member)
    other.goto(site.url)
    other.get_by_role("region", name="Support").get_by_role("link", name=TITLE).click()
    expect(other.get_by_text("Hello from the team")).to_be_visible()
    say(other, "Hello from a colleague")
    expect(other.locator("article")).to_have_count(4)
