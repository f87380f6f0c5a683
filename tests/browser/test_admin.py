"""The admin in a browser: transcripts are read, and what they hold does no harm."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.browser.chromium import Watch, expect
from tests.browser.conftest import Axe, NewPage
from tests.browser.site import Site

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

CONVERSATIONS = "/admin/agent_memory/conversation/"
DJANGOS = ('href="/admin/">Home</a>', 'id="searchbar"')
TALKS = "tests.browser.talks"


@pytest.fixture
def staff(site: Site, page: Page, request: pytest.FixtureRequest) -> str:
    """Sign in who may do everything, under a name of the test's own; return the name."""
    name = request.node.name.replace("[", "-").strip("]")[:60]
    site.seed("superuser", name)
    site.login(page, name)
    return name


def faults(axe: Axe, page: Page) -> list[str]:
    """Return what axe finds in what is not Django's own."""
    return [fault for fault in axe(page) if not any(each in fault for each in DJANGOS)]


def open_conversation(site: Site, page: Page, key: str, query: str = "") -> None:
    page.goto(f"{site.url}{CONVERSATIONS}{key}/change/{query}")


def test_a_transcript_is_found_in_the_list_and_read(site: Site, page: Page, staff: str) -> None:
    site.seed("rich", staff, "read", module=TALKS)
    page.goto(f"{site.url}{CONVERSATIONS}?q={staff}")
    page.get_by_role("link", name="Where is my blue chair?").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Where is my blue chair?")
    assert urlsplit(page.url).fragment == "newest"
    expect(page.get_by_role("table").get_by_role("cell", name="Kiel")).to_be_visible()
    result = page.get_by_text('"sku": "chair-blue"')
    expect(result).to_be_hidden()
    page.get_by_text("look_up_order").click()
    expect(result).to_be_visible()
    picture = page.get_by_role("img", name="chair.png")
    picture.scroll_into_view_if_needed()
    expect(picture).to_have_js_property("naturalWidth", 240)


def test_hostile_conversations_run_nothing_and_ask_no_other_server(
    site: Site, page: Page, staff: str, watch: Watch
) -> None:
    site.seed("hostile", staff, "harm", module=TALKS)
    page.goto(f"{site.url}{CONVERSATIONS}?q={staff}")
    page.get_by_role("link", name="<script>alert('script')").click()
    for folded in page.locator("main details").all():
        folded.locator("summary").click()
    expect(page.get_by_text("<iframe src=").first).to_be_visible()
    expect(page.locator("main :is(script, iframe, svg, style, object)")).to_have_count(0)
    page.locator("time a").first.click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert {urlsplit(url).netloc for url in watch.requests} == {urlsplit(site.url).netloc}


def test_a_hostile_file_is_downloaded_and_never_opened(site: Site, page: Page, staff: str) -> None:
    site.seed("hostile", staff, "files", module=TALKS)
    open_conversation(site, page, "files")
    links = page.locator(".agent-memory-chip a")
    assert links.count() == 2
    for link in links.all():
        with page.expect_download() as download:
            link.click()
        name = download.value.suggested_filename
        assert not set(name) & set('<>"/\u202e'), name


def test_older_messages_are_reached_by_links(site: Site, page: Page, staff: str) -> None:
    site.seed("long", staff, "long", 45, module=TALKS)
    open_conversation(site, page, "long")
    expect(page.get_by_text("Answer 44.")).to_be_visible()
    expect(page.get_by_text("Answer 24.")).to_have_count(0)
    page.get_by_role("link", name="Older messages").click()
    expect(page.get_by_text("Answer 24.")).to_be_visible()
    page.get_by_role("link", name="Older messages").click()
    expect(page.get_by_text("Be brief.")).to_be_visible()
    expect(page.get_by_role("link", name="Older messages")).to_have_count(0)
    page.get_by_role("link", name="Newest messages").click()
    expect(page.get_by_text("Answer 44.")).to_be_visible()


@pytest.mark.parametrize("form", ["JSON", "Markdown"])
def test_a_conversation_is_downloaded(site: Site, page: Page, staff: str, form: str) -> None:
    site.seed("rich", staff, f"saved-{form}", module=TALKS)
    open_conversation(site, page, f"saved-{form}")
    with page.expect_download() as download:
        page.get_by_role("link", name=f"Download {form}").click()
    suffix = {"JSON": "json", "Markdown": "md"}[form]
    expected = f"where-is-my-blue-chair-saved-{form.lower()}.{suffix}"
    assert download.value.suggested_filename == expected
    assert "blue chair" in download.value.path().read_text()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_pages_are_accessible_and_fit_in_light_and_dark_on_phones_and_screens(
    site: Site, new_page: NewPage, axe: Axe, scheme: str, width: int
) -> None:
    page = new_page(color_scheme=scheme, viewport={"width": width, "height": 800})
    name = f"fits-{scheme}-{width}"
    site.seed("superuser", name)
    site.login(page, name)
    for make in ("rich", "hostile"):
        key = f"{make}-{name}"
        site.seed(make, name, key, module=TALKS)
        open_conversation(site, page, key)
        for folded in page.locator("main details").all():
            folded.evaluate("element => { element.open = true }")
        assert faults(axe, page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 18, 18)"}[scheme]
    page.goto(f"{site.url}{CONVERSATIONS}?q={name}")
    assert faults(axe, page) == []


def test_nothing_breaks_a_strict_content_security_policy(
    site: Site, new_page: NewPage, watch: Watch
) -> None:
    page = new_page()
    site.seed("superuser", "strict")
    site.login(page, "strict")
    site.seed("rich", "strict", "strict", module=TALKS)

    def with_policy(route: object) -> None:
        response = route.fetch()  # type: ignore[attr-defined]  # Playwright may be absent
        policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'"
        headers = {**response.headers, "content-security-policy": policy}
        route.fulfill(response=response, headers=headers)  # type: ignore[attr-defined]  # as above

    page.route(lambda url: "/change/" in url, with_policy)
    open_conversation(site, page, "strict")
    expect(page.get_by_role("img", name="chair.png")).to_be_visible()
    expect(page.locator(".agent-memory-bubble").first).to_have_css("border-radius", "8px")
    assert watch.faults == []
