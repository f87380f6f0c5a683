"""
A browser, the example project on a real server, and a model that a test scripts.

How to write a test here::

    pytestmark = pytest.mark.browser

    def test_a_promise(site: Site, page: Page, model: Model, axe: Axe) -> None:
        site.user(page, "ada", staff=True)       # made and signed in
        id = site.seed("conversation", "ada", [["Hello", "Hi!"]])
        model.script("An answer", Called("refund", {"order": "A7"}), 503)
        page.goto(f"{site.url}/admin/")
        expect(page.get_by_role("heading", level=1)).to_have_text("Site administration")
        assert axe(page) == []

One server of each kind, one database and one browser serve all tests of a run: name your
users after your test, as ``someone`` does. ``expect`` and ``Watch`` are in
``tests.browser.chromium``; import what is Playwright's under ``TYPE_CHECKING`` alone, since it
may be absent. axe-core may be too, and is installed as ``tests.browser.axe.INSTALL`` says.

``site`` runs under ASGI, ``wsgi_site`` under WSGI on a database of its own, ``server`` is each of
them; ``site.kill()``, ``stop()`` and ``start()`` end and begin the process on the same database
and port. ``site.seed()`` calls a function of ``tests.browser.seeding`` or of the ``module``
you name. ``with model.hold(): ...`` stops answers after their first word.

``page`` is a fresh context of its own; ``new_page(**options)`` gives further ones, such as
``new_page(color_scheme="dark")``. Each fails its test on an error of the console, a violation
of the content security policy, a dialog, a page error, or a request that leaves the site. A
test that expects one calls ``watch.forgive(pattern)``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser import axe as axe_core
from tests.browser.chromium import ARGS, CHROMIUM, PATIENCE, Watch
from tests.browser.model import Model, serving
from tests.browser.site import Site

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Axe = Callable[["Page"], list[str]]
NewPage = Callable[..., "Page"]


@pytest.fixture(scope="session")
def model_server() -> Iterator[Model]:
    with serving() as model:
        yield model


@pytest.fixture
def model(model_server: Model) -> Iterator[Model]:
    model_server.reset()
    yield model_server
    model_server.release()
    assert model_server.faults == []


def _site(tmp_path_factory: pytest.TempPathFactory, model: Model, server: Any) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp(server), model.url, server)
    site.start()
    yield site
    site.close()


@pytest.fixture(scope="session")
def asgi_server(tmp_path_factory: pytest.TempPathFactory, model_server: Model) -> Iterator[Site]:
    yield from _site(tmp_path_factory, model_server, "asgi")


@pytest.fixture(scope="session")
def wsgi_server(tmp_path_factory: pytest.TempPathFactory, model_server: Model) -> Iterator[Site]:
    yield from _site(tmp_path_factory, model_server, "wsgi")


@pytest.fixture
def site(asgi_server: Site, model: Model) -> Site:
    """The example under ASGI, and a model with nothing scripted."""
    return asgi_server


@pytest.fixture
def wsgi_site(wsgi_server: Site, model: Model) -> Site:
    """The example under WSGI, and a model with nothing scripted."""
    return wsgi_server


@pytest.fixture(params=["asgi", "wsgi"])
def server(request: pytest.FixtureRequest, model: Model) -> Site:
    """The example under each kind of server."""
    site: Site = request.getfixturevalue(f"{request.param}_server")
    return site


@pytest.fixture
def someone(request: pytest.FixtureRequest) -> str:
    """A user's name that no other test has."""
    return re.sub(r"\W+", "-", request.node.name)[-100:]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        yield browser
        browser.close()


@pytest.fixture
def watch() -> Iterator[Watch]:
    watch = Watch()
    yield watch
    assert watch.faults == []


@pytest.fixture
def new_page(browser: Browser, watch: Watch) -> Iterator[NewPage]:
    contexts = []

    def new_page(**options: Any) -> Page:
        context = browser.new_context(locale="en-GB", **options)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        context.on("page", watch.over)
        return context.new_page()

    yield new_page
    for context in contexts:
        context.close()


@pytest.fixture
def page(new_page: NewPage) -> Page:
    return new_page()


@pytest.fixture(scope="session")
def axe() -> Axe:
    """Return what axe-core finds serious or critical on a page."""
    if not axe_core.SCRIPT.exists():
        pytest.skip(f"needs axe-core: {axe_core.INSTALL}")
    return axe_core.violations
