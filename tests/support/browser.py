"""A real browser for the page: one for the tests of a module, a profile of its own for each test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

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


@contextmanager
def running() -> Iterator[Browser]:
    """A browser without a window."""
    found = shutil.which("chromium")
    if found is None:
        pytest.fail("The page is tried in chromium, which is not here. `make setup` brings it.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


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
        context.close()


@contextmanager
def tab(browser: Browser, size: tuple[int, int] = WIDE, **options: Any) -> Iterator[Tab]:
    """One tab; nothing may have gone wrong in it."""
    with profile(browser, size, **options) as context:
        found = Tab(context)
        yield found
        assert found.wrong == []
