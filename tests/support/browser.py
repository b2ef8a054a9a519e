"""A real browser for the page: one for all tests, and in it profiles, tabs, and tabs that many tests share."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from support.web import WebServer

#: Nothing of it talks to anybody but the server of the test.
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-lcd-text",
)  # fmt: skip

#: Seconds anything may take, on a machine with other things to do.
LONGEST = 20.0

WIDE, THIN = (1280, 800), (390, 844)

expect.set_options(timeout=LONGEST * 1000)


class _Loop:
    """The event loop that drives the browser: it counts as running as long as there is one, also between tests."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self) -> None:
        """A browser was started."""
        self._loop = asyncio._get_running_loop()

    def step_in(self) -> None:
        """What follows speaks with the browser."""
        if self._loop is not None:
            asyncio._set_running_loop(self._loop)

    def step_out(self) -> None:
        """What follows may run a loop of its own."""
        if self._loop is not None:
            asyncio._set_running_loop(None)

    def end(self) -> None:
        """The browser is closed."""
        self._loop = None


LOOP = _Loop()


@contextmanager
def running() -> Iterator[Browser]:
    """A browser without a window."""
    found = shutil.which("chromium")
    if found is None:
        pytest.fail("The page is tried in chromium, which is not here. `make setup` brings it.")
    with sync_playwright() as playwright:
        LOOP.begin()
        browser = playwright.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            LOOP.step_in()
            browser.close()
            LOOP.end()


class Tab:
    """One page, and what went wrong in it."""

    def __init__(self, context: BrowserContext) -> None:
        self.page: Page = context.new_page()
        self.wrong: list[str] = []
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", self._console)

    def _console(self, message: Any) -> None:
        is_lost = (
            "Failed to load resource" in message.text
        )  # a refusal, or a server that is gone: the page says so itself
        if message.type == "error" and not is_lost:
            self.wrong.append(message.text)

    def see(self, server: WebServer, place: str = "") -> Page:
        """Open the address that the server printed, and be at a place of the page when it is live."""
        self.page.goto(f"{server.url}#token={server.token}")
        expect(self.page.locator(".line .state")).to_have_text("live")
        if place:
            self.page.goto(f"{server.url}#/{place}")
        return self.page


@contextmanager
def profile(browser: Browser, size: tuple[int, int] = WIDE, **options: Any) -> Iterator[BrowserContext]:
    """A browser that nobody used before."""
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, locale="en-GB", **options)
    context.set_default_timeout(LONGEST * 1000)
    try:
        yield context
    finally:
        LOOP.step_in()
        context.close()


@contextmanager
def tab(browser: Browser, size: tuple[int, int] = WIDE, **options: Any) -> Iterator[Tab]:
    """One tab; nothing may have gone wrong in it."""
    with profile(browser, size, **options) as context:
        found = Tab(context)
        yield found
        assert found.wrong == []


class Kept:
    """
    A tab that many tests look into, one after the other: to load a page costs a browser more than all that a test
    then does with it. It goes from place to place by its address. A tab in which something went wrong is left behind.
    """

    def __init__(self, context: BrowserContext, server: WebServer) -> None:
        self._context = context
        self._server = server
        self._tab: Tab | None = None
        self._wrong: list[str] = []

    @contextmanager
    def at(
        self,
        view: str,
        list: str,
        size: tuple[int, int] = WIDE,
        scheme: Literal["light", "dark"] = "light",
    ) -> Iterator[Page]:
        """The page at a view of a list, as it is when one comes there; nothing may go wrong in it."""
        tab, self._tab = self._tab, None
        if tab is None:
            tab = Tab(self._context)
            tab.see(self._server)
        page, self._wrong = tab.page, tab.wrong
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.emulate_media(color_scheme=scheme)
        page.evaluate("there => { location.hash = there }", f"#/{view}/{list}")
        expect(page.locator("#lists")).to_have_value(list)
        expect(page.locator(f"main > section.{view}")).to_be_visible()
        expect(page.locator(".line .state")).to_have_text("live")
        yield page
        assert tab.wrong == []
        for _ in range(2):
            page.keyboard.press("Escape")
        expect(page.locator(".filter")).to_be_hidden()
        self._tab = tab

    def clear_errors(self) -> None:
        """What went wrong so far had to."""
        self._wrong.clear()
