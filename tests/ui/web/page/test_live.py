"""The page stays up to date: through restarts, in many tabs, with one connection for all of them."""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

import taskyard
from support.browser import Tab, profile, tab
from support.cli import taskyard as command
from support.ended_jobs import end_job
from support.scale import FULL
from support.wait import until
from support.web import WebServer
from taskyard.core.system import now_ms

#: Tabs at which nobody looks need no room.
SMALL = (320, 240)


def streams(server: WebServer) -> int:
    """How many streams the server has open."""
    text = server.get("/metrics").body.decode()
    found = re.search(r"^taskyard_web_streams (\d+)", text, re.MULTILINE)
    assert found is not None, text
    return int(found[1])


def page_of(server: WebServer, context: BrowserContext, list: str = "plan") -> Tab:
    """One more tab that shows the page."""
    found = Tab(context)
    found.page.add_init_script(f"sessionStorage.setItem('taskyard.token', {server.token!r})")
    found.page.goto(f"{server.url}#/board/{list}", wait_until="commit")
    return found


class Listeners:
    """Tabs with nothing to show, each at the worker that all tabs share: all of a tab but its page."""

    def __init__(self, page: Page, server: WebServer, lists: list[str]) -> None:
        self._page = page
        page.evaluate(
            """([lists, token]) => {
                 window.listeners = lists.map((list) => {
                   const tab = window.open("about:blank");
                   const { port } = new tab.SharedWorker("/static/js/worker.js", { type: "module", name: "taskyard" });
                   const tasks = {};
                   port.onmessage = ({ data }) => Object.assign(tasks, data.data?.tasks);
                   port.postMessage({ type: "listen", key: 0, topic: { list }, token });
                   return { tab, port, tasks };
                 });
               }""",
            [lists, server.token],
        )

    def all_heard(self, task: int, state: str) -> None:
        """Wait until each of them knows that a task is in this state."""
        self._page.wait_for_function(
            "([task, state]) => listeners.every(({ tasks }) => tasks[task]?.state === state)", arg=[task, state]
        )


@pytest.mark.req("U-04")
def test_after_a_restart_nothing_is_missed_and_nothing_doubled(browser: Browser) -> None:
    command("task", "add", "Before", "--list", "plan")
    job = command(
        "run", "-d", "--json", "--name", "counts", "--", "for n in $(seq 200); do echo $n; sleep 0.03; done"
    ).data
    with tab(browser) as one:
        with WebServer() as server:
            page = one.see(server, f"background/plan/job/{job['id']}")
            expect(page.locator(".out").nth(3)).to_be_visible()
        expect(page.locator(".line .state")).to_have_text("reconnecting")
        for subject in ("While it was away", "And another"):
            command("task", "add", subject, "--list", "plan")
        command("task", "done", "1", "--by", "ada", "--list", "plan")
        with WebServer(port=str(urlsplit(server.url).port)):
            expect(page.locator(".line .state")).to_have_text("live")
            expect(page.locator(".share")).to_have_text("1/3")
            expect(page.locator(".steps")).to_contain_text("✓ done")
            expect(page.locator(".out").last).to_have_text("200")
            assert page.locator(".out").all_inner_texts() == [str(number) for number in range(1, 201)]
            page.keyboard.press("b")
            expect(page.locator(".card .subject")).to_have_text(["While it was away", "And another", "Before"])
            command("task", "add", "After", "--list", "plan")
            expect(page.locator(".card .subject", has_text="After")).to_have_count(1)


@pytest.mark.req("U-04")
def test_a_page_that_heard_nothing_for_long_says_for_how_long(browser: Browser) -> None:
    with tab(browser) as one:
        one.page.clock.install()
        with WebServer() as server:
            page = one.see(server)
        expect(page.locator(".line .state")).to_have_text("reconnecting")
        page.clock.fast_forward(45_000)
        expect(page.locator(".line .state")).to_have_text(re.compile(r"^stale 4\ds$"))


@pytest.mark.req("U-04")
def test_fifty_tabs_share_one_connection_and_all_hear_of_a_change(browser: Browser) -> None:
    whole = 50 if FULL else 2  # these show the page; to load it fifty times takes most of a minute
    command("task", "add", "Seen by all", "--list", "plan")
    with WebServer() as server, profile(browser, SMALL) as context:
        first = Tab(context)
        first.see(server)
        tabs = [first, *(page_of(server, context) for _ in range(whole - 1))]
        listening = Listeners(first.page, server, ["plan"] * (50 - whole))
        card = '.card[data-id="1"]'
        for each in tabs:
            expect(each.page.locator(f".is-ready {card}")).to_be_attached()
        listening.all_heard(1, "ready")
        assert len(context.pages) == 50
        assert streams(server) == 1
        command("task", "start", "1", "--by", "ada", "--list", "plan")
        for each in tabs:
            expect(each.page.locator(f".is-doing {card}")).to_be_attached()
        listening.all_heard(1, "doing")
        assert [each.wrong for each in tabs] == [[]] * whole


@pytest.mark.req("U-04")
def test_without_a_shared_worker_a_tab_listens_by_itself_and_leaves_when_it_closes(browser: Browser) -> None:
    command("task", "add", "Alone", "--list", "plan")
    with WebServer() as server:
        with tab(browser) as one:
            one.page.add_init_script("delete window.SharedWorker")
            page = one.see(server)
            expect(page.locator('.is-ready .card[data-id="1"]')).to_be_visible()
            command("task", "start", "1", "--by", "ada", "--list", "plan")
            expect(page.locator('.is-doing .card[data-id="1"]')).to_be_visible()
            assert streams(server) == 1
        until(lambda: streams(server) == 0, timeout=20)


@pytest.mark.req("U-04")
def test_more_lists_than_connections_are_all_kept_up_to_date(browser: Browser) -> None:
    names = [f"list-{number}" for number in range(7)]
    for name in names:
        command("task", "add", "Here", "--list", name)
    with WebServer() as server, profile(browser, SMALL) as context:
        first = page_of(server, context, names[0])
        expect(first.page.locator(".card")).to_have_count(1)
        between = Listeners(first.page, server, names[1:-1])
        between.all_heard(1, "ready")
        last = page_of(server, context, names[-1])  # no stream is left for it: it asks again and again
        expect(last.page.locator(".card")).to_have_count(1)
        assert streams(server) == 4
        for name in names:
            command("task", "add", "And here", "--list", name)
        for each in (first, last):
            expect(each.page.locator(".card")).to_have_count(2)
        between.all_heard(2, "ready")
        assert first.wrong == last.wrong == []


@pytest.mark.req("U-04")
def test_a_thousand_tasks_and_two_hundred_jobs_are_few_nodes_and_one_row_is_touched_by_a_change(
    browser: Browser,
) -> None:
    with taskyard.open(list="plan", is_person=True) as yard:
        for number in range(1_000):
            yard.tasks.create(f"Task {number + 1}")
    for number in range(200):
        end_job(os.environ["TASKYARD_HOME"], description=f"Job {number + 1}", startTime=now_ms())
    with WebServer() as server, tab(browser) as one:
        page = one.see(server)
        expect(page.locator(".column.is-ready .count")).to_have_text("1000")
        expect(page.locator(".card")).to_have_count(60)
        page.evaluate(
            """() => {
                 window.touched = new Set();
                 const note = (records) => {
                   for (const { target } of records) {
                     const card = (target.closest ? target : target.parentElement)?.closest(".card");
                     if (card) window.touched.add(card.dataset.id);
                   }
                 };
                 const board = document.querySelector(".columns");
                 new MutationObserver(note).observe(board, { subtree: true, characterData: true, childList: true });
               }"""
        )
        command("task", "edit", "7", "--subject", "Another name", "--list", "plan")
        expect(page.locator('.card[data-id="7"]')).to_contain_text("Another name")
        assert page.evaluate("[...window.touched]") == ["7"]
        page.keyboard.press("o")
        expect(page.locator(".jobs .row")).to_have_count(200)
        assert page.locator("*").count() < 5_000
