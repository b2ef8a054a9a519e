"""The board shows where every task stands, and moves with them."""

from __future__ import annotations

import os
import re

import pytest
from playwright.sync_api import Browser, Page, expect

import taskyard
from support.browser import tab
from support.cli import taskyard as command
from support.desk import Desk
from support.web import WebServer


@pytest.fixture
def plan(desk: Desk) -> None:
    """Five tasks in every state: 3 waits for 2 and 1; 4 is done."""
    with taskyard.open(is_person=True) as yard:
        for subject in ("Write the notes", "Migrate the schema"):
            yard.tasks.create(subject, active_form=subject.replace("Migrate", "Migrating"))
        yard.tasks.create("Switch readers", blocked_by=["2", "1"], description="Both of them.\nAt once.")
        yard.tasks.create("Freeze the API")
        yard.tasks.claim("2", agent="ada")
        yard.tasks.start("2", agent="ada")
        yard.tasks.complete("4", agent="bob")


def cards(page: Page, state: str) -> list[str]:
    """The ids in a column, from the top."""
    return page.locator(f".column.is-{state} .card .id").all_inner_texts()


def column_of(page: Page, task: str, state: str) -> None:
    expect(page.locator(f'.column.is-{state} .card[data-id="{task}"]')).to_be_visible()


@pytest.mark.req("U-04", "U-03")
def test_each_task_is_in_the_column_of_its_state_with_what_is_known_of_it(desk: Desk, plan: None) -> None:
    with desk.see() as page:
        column_of(page, "1", "ready")
        assert [cards(page, state) for state in ("ready", "doing", "blocked", "done")] == [["1"], ["2"], ["3"], ["4"]]
        expect(page.locator('.card[data-id="2"]')).to_contain_text("@ada")
        expect(page.locator('.card[data-id="2"]')).to_contain_text("Migrating the schema")
        expect(page.locator('.card[data-id="3"]')).to_contain_text("waits for 2, 1")
        expect(page.locator(".share")).to_have_text("1/4")
        expect(page.locator(".side")).to_contain_text("ada")


@pytest.mark.req("U-04", "L-18")
def test_a_task_moved_by_the_command_line_moves_on_the_board_and_keeps_its_focus(desk: Desk, plan: None) -> None:
    with desk.see() as page:
        column_of(page, "1", "ready")
        page.locator('.card[data-id="1"]').focus()
        page.evaluate("window.card = document.querySelector('.card[data-id=\"1\"]')")
        assert command("task", "start", "1", "--by", "bob").code == 0
        column_of(page, "1", "doing")
        assert page.evaluate("window.card === document.querySelector('.card[data-id=\"1\"]')")
        assert page.evaluate("window.card === document.activeElement")
        for task in ("1", "2"):
            command("task", "done", task, "--by", "bob", "--force")
        column_of(page, "3", "ready")


@pytest.mark.req("U-04")
def test_who_points_at_a_card_sees_what_it_waits_for_and_what_waits_for_it(desk: Desk, plan: None) -> None:
    with desk.see() as page:
        page.locator('.card[data-id="3"]').hover()
        expect(page.locator(".card.is-blocker .id")).to_have_text(["1", "2"])
        page.locator('.card[data-id="1"]').focus()
        page.mouse.move(640, 700)
        page.locator('.card[data-id="1"]').hover()
        expect(page.locator(".card.is-waiting .id")).to_have_text(["3"])


@pytest.mark.req("U-04", "U-05")
def test_a_click_opens_all_about_a_task_and_its_edges_lead_on(desk: Desk, plan: None) -> None:
    with desk.see() as page:
        page.locator('.card[data-id="3"]').click()
        panel = page.locator(".panel")
        expect(panel).to_contain_text("Both of them.\nAt once.", use_inner_text=True)
        expect(panel.locator(".history")).to_contain_text("created it")
        expect(panel.locator("dt")).to_have_count(0)  # nobody set a priority
        panel.get_by_role("button", name="Migrate the schema").click()
        expect(panel.locator("h2")).to_have_text("Migrate the schema")
        expect(panel.locator(".history")).to_contain_text("ada claimed it")
        command("task", "done", "2", "--by", "ada")
        expect(panel.locator(".kind")).to_contain_text("done")
        expect(panel.locator(".history")).to_contain_text("ada completed it")
        command("task", "edit", "2", "--priority", "1")
        expect(panel.locator("dl")).to_contain_text("priority1")
        page.keyboard.press("Escape")
        expect(panel).to_be_hidden()


@pytest.mark.req("U-04", "L-20")
def test_of_many_tasks_some_are_shown_and_the_rest_on_demand(desk: Desk) -> None:
    with taskyard.open(is_person=True) as yard:
        for number in range(15):
            yard.tasks.create(f"Task {number}")
            yard.tasks.complete(str(number + 1), agent="ada")
    with desk.see() as page:
        more = page.locator(".column.is-done .more")
        expect(more).to_have_text("7 more")
        assert len(cards(page, "done")) == 8
        more.click()
        expect(more).to_be_hidden()
        assert len(cards(page, "done")) == 15


@pytest.mark.req("U-04", "L-19")
def test_a_list_without_tasks_and_one_that_is_all_done_say_so(desk: Desk) -> None:
    with desk.see() as page:
        expect(page.locator(".board .empty")).to_contain_text("No tasks yet.")
        command("task", "add", "Only one")
        column_of(page, "1", "ready")
        expect(page.locator(".board .empty")).to_be_hidden()
        command("task", "done", "1", "--by", "ada")
        column_of(page, "1", "done")
        expect(page.locator(".board .empty")).to_have_text("The one task is done.")


@pytest.mark.req("U-04")
def test_the_filter_keeps_what_says_the_text_or_with_a_mark_what_does_not(desk: Desk, plan: None) -> None:
    with desk.see() as page:
        column_of(page, "1", "ready")
        page.keyboard.press("/")
        page.keyboard.type("the notes")
        expect(page.locator(".card .id")).to_have_text(["1"])
        page.get_by_label("Filter").fill("!@ada")
        expect(page.locator(".card .id")).to_have_text(["1", "3", "4"])
        page.get_by_label("Filter").fill("nowhere")
        expect(page.locator(".board .empty")).to_have_text("No task fits the filter.")
        page.keyboard.press("Escape")
        expect(page.locator(".card")).to_have_count(4)


@pytest.mark.req("U-04")
def test_every_list_is_in_the_menu_and_another_one_is_shown_at_once(desk: Desk, plan: None) -> None:
    def every_list() -> list[str]:
        with taskyard.open() as yard:
            return sorted(os.listdir(yard.tasks_dir))

    command("task", "add", "Elsewhere", "--list", "other")
    with desk.see() as page:
        expect(page.locator("#lists option")).to_have_text(every_list())
        page.locator("#lists").select_option("other")
        expect(page.locator(".card .subject")).to_have_text(["Elsewhere"])
        assert page.url.endswith("#/board/other")
        page.go_back()
        expect(page.locator(".card")).to_have_count(4)
        command("task", "add", "Third", "--list", "new-one")
        assert {desk.list, "new-one", "other"} <= {*every_list()}
        expect(page.locator("#lists option")).to_have_text(every_list())


@pytest.mark.req("U-04")
def test_the_token_leaves_the_address_and_without_it_nothing_is_shown(browser: Browser, desk: Desk, plan: None) -> None:
    with tab(browser) as one:
        page = one.see(desk.server, f"board/{desk.list}")
        assert desk.server.token not in page.url
        column_of(page, "1", "ready")
        page.evaluate("sessionStorage.clear()")
        page.reload()
        expect(page.locator(".door")).to_contain_text("it carries the token")
        page.get_by_label("Token").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.locator(".complaint")).to_contain_text("Send the token")
        page.get_by_label("Token").fill(desk.server.token)
        page.keyboard.press("Enter")  # from here on the tab keeps it: the page loads anew
        column_of(page, "1", "ready")


@pytest.mark.req("U-04", "U-01")
def test_the_title_counts_what_needs_eyes_until_somebody_looked(browser: Browser) -> None:
    with WebServer() as server, tab(browser) as one:
        page = one.see(server)
        assert command("run", "-d", "--name", "make lint", "--", "exit 3; true").code == 0
        expect(page).to_have_title("(1) taskyard")
        page.locator(".side .row", has_text=re.compile("make lint")).click()
        expect(page.locator(".steps")).to_contain_text("failed (exit 3)")
        expect(page).to_have_title("taskyard")
