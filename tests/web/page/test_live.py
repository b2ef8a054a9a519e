"""The page stays up to date: through restarts, in many tabs, with one connection for all of them."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

import taskyard
from support.browser import Tab, profile, tab
from support.cli import taskyard as command
from support.scale import scale
from support.web import WebServer


def streams(server: WebServer) -> int:
    """How many streams the server has open."""
    text = server.get("/metrics").body.decode()
    found = re.search(r"^taskyard_web_streams (\d+)", text, re.MULTILINE)
    assert found is not None, text
    return int(found[1])


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
    count = scale(50, least=12)
    command("task", "add", "Seen by all", "--list", "plan")
    with WebServer() as server, profile(browser) as context:
        first = Tab(context)
        first.see(server)
        tabs = [first]
        for _ in range(count - 1):
            other = Tab(context)
            other.page.add_init_script(f"sessionStorage.setItem('taskyard.token', {server.token!r})")
            other.page.goto(server.url, wait_until="commit")
            tabs.append(other)
        for each in tabs:
            expect(each.page.locator('.is-ready .card[data-id="1"]')).to_be_attached()
        assert streams(server) == 1
        command("task", "start", "1", "--by", "ada", "--list", "plan")
        for each in tabs:
            expect(each.page.locator('.is-doing .card[data-id="1"]')).to_be_attached()
        assert [each.wrong for each in tabs] == [[]] * count


@pytest.mark.req("U-04")
def test_without_a_shared_worker_a_tab_listens_by_itself_and_leaves_when_it_closes(browser: Browser) -> None:
    command("task", "add", "Alone", "--list", "plan")
    with WebServer() as server, tab(browser) as one:
        one.page.add_init_script("delete window.SharedWorker")
        page = one.see(server)
        expect(page.locator('.is-ready .card[data-id="1"]')).to_be_visible()
        command("task", "start", "1", "--by", "ada", "--list", "plan")
        expect(page.locator('.is-doing .card[data-id="1"]')).to_be_visible()


@pytest.mark.req("U-04")
def test_more_lists_than_connections_are_all_kept_up_to_date(browser: Browser) -> None:
    names = [f"list-{number}" for number in range(7)]
    for name in names:
        command("task", "add", "Here", "--list", name)
    with WebServer() as server, profile(browser) as context:
        tabs = [Tab(context) for _ in names]
        for name, each in zip(names, tabs):
            each.page.add_init_script(f"sessionStorage.setItem('taskyard.token', {server.token!r})")
            each.page.goto(f"{server.url}#/board/{name}")
            expect(each.page.locator(".card")).to_have_count(1)
        assert streams(server) == 4
        for name, each in zip(names, tabs):
            command("task", "add", "And here", "--list", name)
            expect(each.page.locator(".card")).to_have_count(2)


@pytest.mark.req("U-04")
def test_a_thousand_tasks_and_two_hundred_jobs_are_few_nodes_and_one_row_is_touched_by_a_change(
    browser: Browser,
) -> None:
    with taskyard.open(list="plan", is_person=True) as yard:
        for number in range(1_000):
            yard.tasks.create(f"Task {number + 1}")
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
