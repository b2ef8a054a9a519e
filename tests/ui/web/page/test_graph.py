"""The graph shows what waits for what, and is walked along its lines."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

import taskyard
from support.cli import taskyard as command
from support.desk import Desk


@pytest.fixture
def chain(desk: Desk) -> None:
    """1 is done; 2 waits for it and is done by ada; 3 and 5 wait for 2, 4 waits for 3; 6 stands alone."""
    with taskyard.open(is_person=True) as yard:
        for number, waits_for in enumerate(([], ["1"], ["2"], ["3"], ["2"], []), 1):
            yard.tasks.create(f"Task {number}", blocked_by=waits_for)
        yard.tasks.complete("1", agent="ada")
        yard.tasks.claim("2", agent="ada")
        yard.tasks.start("2", agent="ada")


def node(page: Page, task: str) -> str:
    return f'.node[data-id="{task}"]'


def left(page: Page, task: str) -> int:
    box = page.locator(node(page, task)).bounding_box()
    assert box is not None
    return round(box["x"] / 4) * 4  # a line around it may be thicker


@pytest.mark.req("U-04")
def test_who_waits_stands_right_of_what_it_waits_for_and_the_longest_way_is_thick(desk: Desk, chain: None) -> None:
    with desk.see("graph") as page:
        expect(page.locator(".node")).to_have_count(6)
        assert left(page, "1") < left(page, "2") < left(page, "3") < left(page, "4")
        assert left(page, "3") == left(page, "5")
        expect(page.locator(".edge")).to_have_count(4)
        expect(page.locator(".edge.is-critical")).to_have_count(2)  # 2 to 3, 3 to 4
        expect(page.locator(".node.is-done .id")).to_have_text(["1"])
        command("task", "add", "Late", "--blocked-by", "4")
        expect(page.locator(".edge.is-critical")).to_have_count(3)
        command("task", "done", "2", "--by", "ada")
        expect(page.locator(f"{node(page, '2')}.is-done")).to_be_visible()


@pytest.mark.req("U-04")
def test_arrow_keys_walk_along_the_lines_and_enter_opens(desk: Desk, chain: None) -> None:
    with desk.see("graph") as page:
        page.locator(node(page, "2")).focus()
        for key, task in (("ArrowRight", "3"), ("ArrowDown", "5"), ("ArrowUp", "3"), ("ArrowRight", "4")):
            page.keyboard.press(key)
            expect(page.locator(node(page, task))).to_be_focused()
        page.keyboard.press("ArrowRight")  # nothing waits for it
        expect(page.locator(node(page, "4"))).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator(".panel h2")).to_have_text("Task 4")
        page.keyboard.press("Escape")
        expect(page.locator(node(page, "4"))).to_be_focused()


@pytest.mark.req("U-04")
def test_what_is_in_progress_stays_in_view_until_one_looks_elsewhere(desk: Desk) -> None:
    with taskyard.open(is_person=True) as yard:
        for number in range(14):
            yard.tasks.create(f"Step {number + 1}", blocked_by=[str(number)] if number else [])
    with desk.see("graph") as page:
        last = page.locator(node(page, "12"))
        expect(page.locator(node(page, "1"))).to_be_in_viewport()
        expect(last).not_to_be_in_viewport()
        with taskyard.open(is_person=True) as yard:
            for number in range(1, 12):
                yard.tasks.complete(str(number), agent="ada")
            yard.tasks.claim("12", agent="ada")
            yard.tasks.start("12", agent="ada")
        expect(last).to_be_in_viewport()
        page.locator(".graph .scroll").hover()
        page.mouse.wheel(-4000, 0)
        expect(page.get_by_role("button", name="follow")).to_have_attribute("aria-pressed", "false")
        expect(last).not_to_be_in_viewport()
        page.get_by_role("button", name="follow").click()
        expect(last).to_be_in_viewport()


@pytest.mark.req("U-04")
def test_the_filter_leaves_the_graph_whole_and_dims_the_rest(desk: Desk, chain: None) -> None:
    with desk.see("graph") as page:
        page.keyboard.press("/")
        page.keyboard.type("Task 3")
        expect(page.locator(".node.is-other")).to_have_count(5)
        expect(page.locator(".node")).to_have_count(6)
