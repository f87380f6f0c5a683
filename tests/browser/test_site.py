"""The site that the tests of this folder open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.chromium import Watch
from tests.browser.site import Site

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser


def test_a_page_that_does_what_it_should_not_is_noticed(
    site: Site, page: Page, watch: Watch
) -> None:
    page.goto(f"{site.url}/admin/login/")
    assert watch.faults == []
    with page.expect_event("pageerror"):
        page.evaluate("() => { alert('hello'); console.error('oh'); setTimeout(() => oh()); }")
    with pytest.raises(Exception, match="ERR_CONNECTION_REFUSED"):
        page.goto("http://localhost:8331/")
    for pattern in (
        "^dialog: hello",
        "^console error: oh",
        "^page error: oh",
        "^request: .*:8331/",
    ):
        watch.forgive(pattern)
    assert watch.faults == []
