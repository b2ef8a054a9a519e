"""Everybody can use the page: by keyboard alone, on a thin screen, by ear, in light and in dark."""

from __future__ import annotations

import json
import re
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, expect

from support.browser import THIN, WIDE, Kept
from support.cli import taskyard as command
from support.desk import Desk
from support.page_scene import LIST
from support.page_team import at
from support.repo import TESTS

AXE = TESTS / "node" / "node_modules" / "axe-core" / "axe.min.js"


def serious(page: Page, rules: list[str] | None = None) -> list[str]:
    """What axe-core finds that keeps somebody out; by all of its rules if not told otherwise."""
    if not AXE.exists():
        pytest.fail("axe-core is not here. `make setup` brings it.")
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    found: dict[str, Any] = page.evaluate(
        """only => axe.run(document, { resultTypes: ["violations"], ...(only ? { runOnly: only } : {}) })""", rules
    )
    return [
        f"{fault['id']}: {fault['help']}: {json.dumps([node['html'][:120] for node in fault['nodes'][:3]])}"
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
    ]


@pytest.mark.req("U-04")
@pytest.mark.parametrize(
    ("size", "scheme", "rules"),
    [(WIDE, "light", None), (WIDE, "dark", ["color-contrast"]), (THIN, "light", None)],
    ids=["wide", "dark", "thin"],
)
def test_nothing_keeps_anybody_out_of_any_view(
    look: Kept, size: tuple[int, int], scheme: Literal["light", "dark"], rules: list[str] | None
) -> None:
    with look.at("board", LIST, size, scheme) as page:
        found: dict[str, list[str]] = {}
        for view in ("board", "graph", "background", "timeline", "panel"):
            at(page, view)
            found[view] = serious(page, rules)
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        found["help"] = serious(page, rules)
        assert found == {view: [] for view in found}


@pytest.mark.req("U-04")
def test_by_keyboard_alone_one_gets_everywhere_and_back(look: Kept) -> None:
    with look.at("board", LIST) as page:
        focused = page.locator(":focus")
        expect(page.locator('.card[data-id="8"]')).to_be_visible()
        page.locator("main").focus()
        page.keyboard.press("Tab")
        expect(focused).to_have_class(re.compile(r"\bcard\b"))  # the one where one was last
        page.keyboard.press("Home")
        expect(focused).to_have_attribute("data-id", "8")
        for key, task in (("ArrowDown", "9"), ("ArrowRight", "12"), ("ArrowRight", "16"), ("Home", "8")):
            page.keyboard.press(key)
            expect(focused).to_have_attribute("data-id", task)
        assert focused.evaluate("it => getComputedStyle(it).outlineStyle") == "solid"
        page.keyboard.press("Enter")
        expect(page.locator(".panel h2")).to_have_text("Update the README")
        expect(focused).to_have_attribute("aria-label", "Close")
        page.keyboard.press("Escape")
        expect(focused).to_have_attribute("data-id", "8")
        for key, view in (("g", "graph"), ("o", "background"), ("t", "timeline"), ("b", "board")):
            page.keyboard.press(key)
            expect(page.locator(f"main > section.{view}")).to_be_visible()
            expect(page.locator("main > section:visible")).to_have_count(1)
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_contain_text("One step back")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_be_hidden()
        page.keyboard.press("/")
        page.keyboard.type("b")  # a letter, not the board
        expect(page.get_by_label("Filter")).to_have_value("b")


@pytest.mark.req("U-04")
def test_a_screen_of_360_pixels_shows_one_thing_after_the_other(look: Kept) -> None:
    with look.at("board", LIST, (360, 720)) as page:
        for view in ("board", "graph", "timeline", "background"):
            at(page, view)
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= 360, f"{view} is {wide} wide"
        expect(page.locator(".background .list")).to_be_hidden()
        page.get_by_role("button", name="‹ jobs").click()
        expect(page.locator(".background .list")).to_be_visible()
        page.keyboard.press("b")
        tabs = page.get_by_role("group", name="Columns").get_by_role("button")
        for index, column in enumerate(("ready", "doing", "blocked", "done")):
            tabs.nth(index).click()
            expect(page.locator(".column:visible")).to_have_count(1)
            expect(page.locator(f".column.is-{column}")).to_be_visible()
        expect(page.locator(".side .row").first).to_be_hidden()
        page.locator(".side summary").click()
        expect(page.locator(".side .row").first).to_be_visible()


@pytest.mark.req("U-04")
def test_a_change_is_said_to_those_who_listen(desk: Desk) -> None:
    command("task", "add", "Read aloud")
    with desk.see() as page:
        expect(page.locator(".card")).to_have_count(1)
        command("task", "start", "1", "--by", "ada")
        expect(page.get_by_role("status").filter(has_text="Read aloud: doing")).to_have_count(1)
