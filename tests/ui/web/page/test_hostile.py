"""Whatever a text says, it stays a text."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

import taskyard
from support.cli import taskyard as command
from support.desk import Desk
from support.yards import write_task

MARKUP = """<img src=x onerror="window.hurt=1"><script>window.hurt=1</script>"""


@pytest.mark.req("U-04")
def test_no_subject_owner_label_description_output_or_name_becomes_markup(desk: Desk) -> None:
    with taskyard.open(is_person=True) as yard:
        yard.tasks.create(MARKUP, description=f"{MARKUP}\n${{7*7}}", active_form=f"Doing {MARKUP}", labels=["<b>l</b>"])
        yard.tasks.create("Waits", blocked_by=["1"])
        folder = Path(yard.tasks_dir or "", desk.list)
    write_task(folder, "3", subject="javascript:alert(1)", status="in_progress", owner=MARKUP)
    write_task(folder, "4", subject="\x1b[31m\u202etxt.exe", status="pending")
    command("run", "-d", "--name", f"job {MARKUP}", "--", f"echo '{MARKUP}'; printf '\\033]0;title\\007\\033[2Jafter'")
    with desk.see() as page:
        expect(page.locator('.card[data-id="1"] .subject')).to_have_text(MARKUP)
        page.locator('.card[data-id="1"]').click()
        expect(page.locator(".panel .text")).to_contain_text("${7*7}")
        page.locator(".side .row").first.click()
        for key in "got":
            page.keyboard.press(key)
            expect(page.locator("main > section:visible")).to_have_count(1)
        page.keyboard.press("o")
        page.locator(".jobs .row", has_text=MARKUP).click()
        expect(page.locator(".out").first).to_have_text(MARKUP)
        expect(page.locator(".out").last).to_have_text("after")
        assert page.locator("img, script:not([type=module]), b").count() == 0
        assert page.evaluate("window.hurt") is None
        assert page.evaluate("document.querySelectorAll('a[href^=javascript]').length") == 0


@pytest.mark.req("U-04")
def test_a_place_in_the_address_is_only_a_name(desk: Desk) -> None:
    command("task", "add", "One")
    with desk.see() as page:
        expect(page.locator(".card")).to_have_count(1)
        page.evaluate("location.hash = '#/board/%3Cimg%20src=x%20onerror=hurt=1%3E/task/%E0%A4%A'")
        expect(page.locator("#lists option").first).to_have_text("<img src=x onerror=hurt=1>")
        assert page.locator("img").count() == 0
        page.locator("#lists").select_option(desk.list)
        expect(page.locator(".card")).to_have_count(1)


@pytest.mark.req("U-04")
def test_the_page_has_no_code_but_its_own_files(desk: Desk) -> None:
    with desk.see() as page:
        tried = page.evaluate(
            """() => {
                 const inline = document.createElement("script");
                 inline.textContent = "window.hurt = 1";
                 document.head.append(inline);
                 const made = () => { try { return new Function("return 'made'")(); } catch { return "refused"; } };
                 return new Promise((tell) => setTimeout(() => tell([made(), window.hurt ?? null])));
               }"""
        )
        assert tried == ["refused", None]
        desk.tab.clear_errors()  # the browser says that it refused


#: Names that every object of the page's language inherits.
INHERITED = ("__proto__", "constructor", "toString", "hasOwnProperty", "valueOf")


@pytest.mark.req("U-04")
def test_agents_owners_labels_and_lists_may_have_names_that_objects_inherit(desk: Desk) -> None:
    for name in INHERITED:
        command("task", "add", f"Of {name}", "--label", name)
        command("task", "add", "Elsewhere", "--list", name)
    with desk.see() as page:
        expect(page.locator(".card")).to_have_count(len(INHERITED))
        for at, name in enumerate(INHERITED, 1):
            command("task", "start", str(at), "--by", name)
            expect(page.locator(f'.card[data-id="{at}"]')).to_contain_text(name)
            expect(page.locator(".side .row", has_text=f"{name}").first).to_be_visible()
        page.reload()
        expect(page.locator(".card")).to_have_count(len(INHERITED))
        for at, name in enumerate(INHERITED, 1):
            row = page.locator(".side .row", has_text=name).first
            row.click()
            expect(page.locator(".panel")).to_contain_text(name)
            command("task", "done", str(at), "--by", name)
        expect(page.locator('.card[data-id="1"]')).to_contain_text("Of __proto__")
        for name in INHERITED:
            page.evaluate("name => { location.hash = `#/board/${name}/task/__proto__` }", name)
            expect(page.locator(".card", has_text="Elsewhere")).to_have_count(1)
        assert page.evaluate("Object.keys(Object.prototype).length") == 0
