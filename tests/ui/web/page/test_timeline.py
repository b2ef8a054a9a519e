"""The timeline shows who did what when, and folds the time in which nobody did anything."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from support.browser import Kept
from support.cli import taskyard as command
from support.desk import Desk
from support.page_scene import LIST


@pytest.mark.req("U-04")
def test_lanes_bars_and_the_time_nobody_worked(look: Kept) -> None:
    with look.at("timeline", LIST) as page:
        expect(page.locator(".who")).to_have_text(["ada", "bob", "cleo", "shells"])
        ada = page.locator(".lane", has_text="ada")
        expect(ada.locator(".bar")).to_have_text(
            ["✓1 Agree on the scope", "✓4 Sketch the new tables", "✓11 Freeze the API", "◐12 Migrate the schema"]
        )
        expect(page.locator(".bar.of-fail")).to_contain_text("make lint: exit 2")
        fold = page.locator(".fold")
        expect(fold).to_have_text("⌇ 38m ⌇")
        tight = page.locator(".bar", has_text="11 Freeze").evaluate("it => it.offsetWidth")
        fold.click()
        expect(fold).to_have_count(0)
        assert page.locator(".bar", has_text="11 Freeze").evaluate("it => it.offsetWidth") < tight
        now = page.locator(".timeline .now").evaluate("it => it.getBoundingClientRect().left")
        ends = page.locator(".bar.is-doing").evaluate_all("all => all.map(it => it.getBoundingClientRect().right)")
        assert all(abs(end - now) < 4 for end in ends)
        page.locator(".bar", has_text="11 Freeze").click()
        expect(page.locator(".panel h2")).to_have_text("Freeze the API")
        page.locator(".bar", has_text="npm test").click()
        expect(page.locator("article.job h2")).to_contain_text("npm test")


@pytest.mark.req("U-04")
def test_a_task_that_somebody_begins_gets_its_bar(desk: Desk) -> None:
    command("task", "add", "First")
    with desk.see("timeline") as page:
        expect(page.locator(".who", has_text="dana")).to_have_count(0)
        command("task", "start", "1", "--by", "dana")
        expect(page.locator(".lane .bar.is-doing")).to_have_text("◐1 First")
        command("task", "done", "1", "--by", "dana")
        expect(page.locator(".lane .bar.is-done")).to_have_text("✓1 First")
