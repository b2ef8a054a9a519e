"""Without leave the page only shows; with it, it acts, and a refusal is told in the server's words."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, Route, expect

import taskyard
from support.browser import tab
from support.cli import taskyard as command
from support.desk import Desk
from support.web import WebServer


def state(task: str) -> str:
    with taskyard.open() as yard:
        return yard.tasks.get(task).status.value


def row(page: Page, name: str) -> None:
    page.locator(".jobs .row", has_text=re.compile(name)).click()


@pytest.mark.req("U-04")
def test_a_page_that_may_not_act_has_no_buttons_says_how_and_is_refused(browser: Browser) -> None:
    command("task", "add", "Look only", "--list", "plan")
    with WebServer() as server, tab(browser) as one:
        page = one.see(server)
        expect(page.locator(".side .note")).to_contain_text("--allow-actions")
        page.locator('.card[data-id="1"]').click()
        expect(page.locator(".panel .history")).to_be_visible()
        expect(page.locator(".act:visible")).to_have_count(0)
        refused = page.evaluate(
            """async (token) => {
                 const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
                 const answer = await fetch("/api/tasks/1/done", { method: "POST", headers, body: '{"list": "plan"}' });
                 return [answer.status, (await answer.json()).error.code];
               }""",
            server.token,
        )
        assert refused == [403, "read_only"]
        with taskyard.open(list="plan") as yard:
            assert yard.tasks.get("1").status.value == "pending"


@pytest.mark.req("U-04")
def test_tasks_are_added_taken_done_and_given_back(desk: Desk) -> None:
    with desk.see() as page:
        page.get_by_label("New task").fill("From the browser")
        page.keyboard.press("Enter")
        card = page.locator('.card[data-id="1"]')
        expect(card).to_contain_text("From the browser")
        card.click()
        acts = page.locator(".panel .acts")
        acts.get_by_role("button", name="start").click()
        expect(page.locator('.is-doing .card[data-id="1"]')).to_be_visible()
        acts.get_by_role("button", name="release").click()
        expect(page.locator('.is-ready .card[data-id="1"]')).to_be_visible()
        acts.get_by_role("button", name="done").click()
        expect(page.locator('.is-done .card[data-id="1"]')).to_be_visible()
        assert state("1") == "completed"


@pytest.mark.req("U-04")
def test_what_the_server_refuses_is_told_in_its_words(desk: Desk) -> None:
    def ada_is_faster(route: Route) -> None:
        command("task", "claim", "1", "--by", "ada")
        route.continue_()

    with desk.see() as page:
        page.get_by_label("New task").fill("Contested")
        page.keyboard.press("Enter")
        page.locator('.card[data-id="1"]').click()
        claim = page.locator(".panel .acts").get_by_role("button", name="claim")
        expect(claim).to_be_visible()
        page.route("**/claim", ada_is_faster)
        with page.expect_response(lambda answer: "/claim" in answer.url) as answered:
            claim.click()
        page.unroute("**/claim")
        assert answered.value.status == 409
        message = answered.value.json()["error"]["message"]
        assert "ada" in message
        expect(page.locator(".panel .complaint")).to_have_text(message)


@pytest.mark.req("U-04", "U-01")
def test_a_job_is_paused_resumed_and_stopped_at_the_second_press(desk: Desk) -> None:
    command("run", "-d", "--name", "long rest", "--", "sleep 300")
    with desk.see("background") as page:
        row(page, "long rest")
        acts = page.locator("article .acts")
        acts.get_by_role("button", name="pause").click()
        acts.get_by_role("button", name="resume").click()
        expect(acts.get_by_role("button", name="pause")).to_be_visible()
        stop = acts.get_by_role("button", name="stop")
        stop.click()
        expect(stop).to_have_text("again to stop")
        expect(stop).to_have_text("stop")  # two seconds later it was not meant
        expect(page.locator(".steps")).to_contain_text("running")
        stop.click()
        stop.click()
        expect(page.locator(".steps")).to_contain_text("stopped")
        expect(acts.get_by_role("button")).to_have_text(["dismiss"])


@pytest.mark.req("U-04")
def test_a_question_is_answered_in_its_place(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_STALL_AFTER", "0.2")
    command("run", "-d", "--stdin", "--name", "asks", "--", "printf 'Overwrite? (y/n) '; read -r it; echo \"got $it\"")
    with desk.see("background") as page:
        row(page, "asks")
        expect(page.locator(".question.is-waiting")).to_be_visible()
        page.get_by_label("Answer").fill("yes")
        page.keyboard.press("Enter")
        expect(page.locator(".out").last).to_contain_text("got yes")
        expect(page.locator(".steps")).to_contain_text("✓ done")
        expect(page.locator(".question")).to_be_hidden()


@pytest.mark.req("U-04")
def test_mail_goes_to_who_is_at_work(desk: Desk) -> None:
    with taskyard.open(is_person=True) as yard:
        yard.tasks.create("Busy")
        yard.tasks.start("1", agent="ada")
        yard.mail.open_box("ada")
    with desk.see() as page:
        page.locator(".side .row", has_text="ada").click()
        page.get_by_label("Mail to ada").fill("Lunch at noon?")
        page.keyboard.press("Enter")
        expect(page.get_by_label("Mail to ada")).to_have_value("")
        with taskyard.open(agent="ada") as yard:
            assert [letter.text for letter in yard.mail.take("ada")] == ["Lunch at noon?"]
