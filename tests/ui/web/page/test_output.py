"""Jobs and what they print, live: followed, held, searched, in files of any size."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from support.browser import tab
from support.cli import taskyard as command
from support.desk import Desk
from support.scale import scale
from support.web import WebServer


def start(script: str, name: str, *more: str) -> str:
    """A job in the background; its id."""
    ran = command("run", "-d", "--json", "--name", name, *more, "--", script)
    found: str = ran.data["id"]
    return found


def row(page: Page, name: str) -> Locator:
    return page.locator(".jobs .row").filter(has=page.get_by_text(name, exact=True))


def opened(page: Page, name: str) -> None:
    row(page, name).click()
    expect(page.locator("article.job h2")).to_contain_text(name)


@pytest.mark.req("U-04", "U-01")
def test_the_output_of_a_job_streams_and_its_state_is_told_step_by_step(desk: Desk, tmp_path: Path) -> None:
    go = tmp_path / "go"
    start(
        f"echo one; until [ -e {go} ]; do sleep 0.05; done; printf '\\033[31mred\\033[0m and '; echo two; exit 4",
        "slow",
    )
    with desk.see("background") as page:
        opened(page, "slow")
        expect(page.locator(".out")).to_have_text(["one"])
        expect(page.locator(".steps .step")).to_have_text(["pending", "◐ running"])
        go.touch()
        expect(page.locator(".out")).to_have_text(["one", "red and two"])
        expect(page.locator(".out .fg1")).to_have_text("red")
        expect(page.locator(".steps .step")).to_have_text(["pending", "running", "✗ failed (exit 4)"])
        expect(row(page, "slow").locator(".word")).to_have_text("exit 4")


@pytest.mark.req("U-04")
def test_who_scrolls_up_is_left_alone_and_told_how_much_is_new(desk: Desk, tmp_path: Path) -> None:
    go = tmp_path / "go"
    start(f"seq 200; until [ -e {go} ]; do sleep 0.05; done; seq 201 242; sleep 60", "counts")
    with desk.see("background") as page:
        opened(page, "counts")
        output = page.locator(".output")
        expect(page.locator(".out").last).to_be_in_viewport()
        output.hover()
        page.mouse.wheel(0, -600)
        expect(page.get_by_role("button", name="follow")).to_have_attribute("aria-pressed", "false")
        where = output.evaluate("it => it.scrollTop")
        go.touch()
        expect(page.locator(".news")).to_have_text("↓ 42 new lines")
        assert output.evaluate("it => it.scrollTop") == where
        page.locator(".news").click()
        expect(page.locator(".out").last).to_have_text("242")
        expect(page.locator(".out").last).to_be_in_viewport()
        expect(page.locator(".news")).to_be_hidden()


@pytest.mark.req("U-04")
def test_a_long_output_is_loaded_as_one_scrolls_and_never_all_of_it(desk: Desk) -> None:
    count = scale(100_000, least=20_000)
    job = start(f"seq -f 'line %g' {count}", "long")
    command("wait", job)
    with desk.see("background") as page:
        opened(page, "long")
        expect(page.locator(".out").last).to_have_text(f"line {count}")
        for _ in range(12):
            first = page.locator(".out").first
            before = first.inner_text()
            page.locator(".output").evaluate("it => { it.scrollTop = 0 }")
            expect(first).not_to_have_text(before)
        shown = page.locator(".out")
        assert shown.count() <= 5_000
        numbers = [int(text.removeprefix("line ")) for text in shown.all_inner_texts()]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert numbers[-1] < count  # what lies below was let go
        page.get_by_role("button", name="follow").click()
        expect(page.locator(".out").last).to_have_text(f"line {count}")


@pytest.mark.req("U-04")
def test_a_text_is_found_in_the_file_not_only_in_what_is_shown(desk: Desk) -> None:
    job = start("echo 'a Needle here'; seq 9000; echo 'another needle'; seq 9000", "hay")
    command("wait", job)
    with desk.see("background") as page:
        opened(page, "hay")
        expect(page.locator(".out").last).to_have_text("9000")
        field = page.get_by_label("Find in the output")
        field.fill("needle")
        for key, found in (("Enter", "a Needle here"), ("Enter", "another needle"), ("Shift+Enter", "a Needle here")):
            field.press(key)
            expect(page.locator(".out.is-found")).to_have_text(found)
            expect(page.locator(".out.is-found")).to_be_in_viewport()
        field.fill("no such thing")
        field.press("Enter")
        expect(page.locator(".find .told")).to_have_text("not found")


@pytest.mark.req("U-04")
def test_an_output_can_be_wrapped_and_saved(desk: Desk) -> None:
    job = start(f"echo {'x' * 600}; echo end", "wide")
    command("wait", job)
    with desk.see("background") as page:
        opened(page, "wide")
        line = page.locator(".out").first
        tall = line.evaluate("it => it.offsetHeight")
        page.get_by_role("button", name="wrap").click()
        assert line.evaluate("it => it.offsetHeight") > 2 * tall
        page.get_by_role("button", name="wrap").click()
        assert line.evaluate("it => it.offsetHeight") == tall
        with page.expect_download() as saving:
            page.get_by_role("button", name="download").click()
        assert saving.value.suggested_filename == f"{job}.txt"
        assert saving.value.path().read_text(encoding="utf-8") == "x" * 600 + "\nend\n"


@pytest.mark.req("U-04", "U-05")
def test_details_of_a_job_say_what_runs_and_what_it_took(desk: Desk) -> None:
    start("sleep 60", "rest")
    with desk.see("background") as page:
        opened(page, "rest")
        page.get_by_role("button", name="details").click()
        expect(page.locator(".facts")).to_contain_text("sleep 60")
        expect(page.locator(".facts")).to_contain_text("1 job")
        page.get_by_role("button", name="details").click()
        expect(page.locator(".facts")).to_be_hidden()


@pytest.mark.req("U-04", "U-01")
def test_without_a_choice_the_first_job_is_shown_and_without_jobs_how_to_start_one(browser: Browser) -> None:
    with WebServer() as server, tab(browser) as one:
        page = one.see(server, "background/plan")
        expect(page.locator(".background .empty").first).to_contain_text("taskyard run -d")
        page.keyboard.press("t")  # nothing was done at any time either
        expect(page.locator(".timeline .empty")).to_be_visible()
        page.keyboard.press("o")
        start("echo shown at once; sleep 60", "first")
        expect(page.locator(".out")).to_have_text(["shown at once"])
        start("echo later; sleep 60", "second")
        expect(page.locator(".jobs .row")).to_have_count(2)
        expect(page.locator("article.job h2")).to_contain_text("first")
