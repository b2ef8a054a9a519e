"""Keys that act, on a real list: what they do is done, and what cannot be is said in the words of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from support.tui import driven, eventually, grid, type_text
from support.yards import open_yard
from taskyard.errors import AlreadyClaimed, Cycle
from taskyard.ui.live import LiveView
from taskyard.ui.tui.app import YardApp


def status(view: LiveView, task_id: str) -> tuple[str, str | None]:
    task = view.yard.tasks.get(task_id)
    return task.status.value, task.owner


async def say(pilot: Pilot[str], key: str, *texts: str) -> None:
    """Press a key, and type what is asked for."""
    await pilot.press(key)
    for text in texts:
        await type_text(pilot, text)
        await pilot.press("enter")


@pytest.mark.req("U-03", "L-19")
@driven
async def test_a_task_is_added_with_a_and_the_panel_opens_by_itself(release: LiveView) -> None:
    app = YardApp(release, me="ada")
    async with app.run_test(size=(100, 24)) as pilot:
        await pilot.pause()
        assert "No tasks yet. Press a to add one" in grid(app)
        await say(pilot, "a", "Tag the release")
        await eventually(pilot, lambda: "○ 1 Tag the release" in grid(app), "the new row")

    assert [task.subject for task in release.yard.tasks.list()] == ["Tag the release"]


@pytest.mark.req("L-18", "U-03")
@driven
async def test_what_others_write_appears_by_itself(release: LiveView) -> None:
    app = YardApp(release)
    async with app.run_test(size=(100, 24)) as pilot:
        await pilot.pause()
        with open_yard(Path(release.yard.tasks_dir or ""), "bob", list="release") as other:
            other.tasks.create("Another's")
            await eventually(pilot, lambda: "○ 1 Another's" in grid(app), "the new row")
            other.tasks.claim("1")
            await eventually(pilot, lambda: "@bob" in grid(app), "its owner")


@pytest.mark.req("U-03", "L-05")
@driven
async def test_a_task_is_claimed_started_released_and_done_by_one_key_each(release: LiveView) -> None:
    release.yard.tasks.create("Build")
    app = YardApp(release, me="ada")
    async with app.run_test(size=(80, 24)) as pilot:
        await eventually(pilot, lambda: len(app.main.tasks.items) == 1, "the rows")
        for key, wanted in (
            ("c", ("pending", "ada")),
            ("s", ("in_progress", "ada")),
            ("u", ("pending", None)),
            ("s", ("in_progress", "ada")),
            ("d", ("completed", "ada")),
        ):
            await pilot.press(key)
            await eventually(pilot, lambda: status(release, "1") == wanted, f"{wanted} by {key}")  # noqa: B023


@driven
async def test_who_claims_is_asked_once_where_nobody_said(release: LiveView) -> None:
    release.yard.tasks.create("Build")
    release.yard.tasks.create("Test")
    app = YardApp(release)
    async with app.run_test(size=(80, 24)) as pilot:
        await eventually(pilot, lambda: len(app.main.tasks.items) == 2, "the rows")
        await say(pilot, "c", "grace")
        await eventually(pilot, lambda: status(release, "1") == ("pending", "grace"), "the claim")
        await pilot.press("j", "c")
        await eventually(pilot, lambda: status(release, "2") == ("pending", "grace"), "the next claim")


@driven
async def test_a_task_waits_for_others_and_a_circle_is_refused(release: LiveView) -> None:
    for subject in ("Build", "Test", "Ship"):
        release.yard.tasks.create(subject)
    app = YardApp(release, me="ada")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await eventually(pilot, lambda: len(app.main.tasks.items) == 3, "the rows")
        await pilot.press("G")
        await say(pilot, "b", "1, 2")
        await eventually(pilot, lambda: release.yard.tasks.get("3").blocked_by == ("1", "2"), "its blockers")
        await eventually(pilot, lambda: "waits for 1, 2" in grid(app), "the row")
        await pilot.press("g")
        await say(pilot, "b", "3")
        await eventually(pilot, lambda: "Error: " in grid(app), "the refusal")
        with pytest.raises(Cycle) as refused:
            release.yard.tasks.block("1", by=["3"])
        assert " ".join(str(refused.value).split())[:30] in " ".join(grid(app).split())


@driven
async def test_a_refusal_has_the_words_of_the_command_line(release: LiveView) -> None:
    release.yard.tasks.create("Build")
    release.yard.tasks.claim("1", agent="bob")
    app = YardApp(release, me="ada")
    async with app.run_test(size=(120, 24), notifications=True) as pilot:
        await eventually(pilot, lambda: len(app.main.tasks.items) == 1, "the rows")
        await pilot.press("c")
        await eventually(pilot, lambda: "Error: " in grid(app), "the refusal")
        with pytest.raises(AlreadyClaimed) as refused:
            release.yard.tasks.claim("1", agent="ada")
        assert str(refused.value)[:40] in grid(app)


@driven
async def test_mail_goes_to_whoever_has_the_task(release: LiveView) -> None:
    release.yard.tasks.create("Build")
    release.yard.tasks.claim("1", agent="bob")
    release.yard.mail.open_box("bob")
    app = YardApp(release, me="ada")
    async with app.run_test(size=(80, 24)) as pilot:
        await eventually(pilot, lambda: len(app.main.tasks.items) == 1, "the rows")
        await say(pilot, "m", "How far are you?")
        await eventually(pilot, lambda: release.yard.mail.peek("bob"), "the message")

    (message,) = (one for one in release.yard.mail.peek("bob") if one.type == "message")
    assert (message.sender, message.text) == ("ada", "How far are you?")


@pytest.mark.req("L-19")
@driven
async def test_what_is_all_done_is_hidden_after_a_while_and_opened_by_a_key(
    release: LiveView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taskyard.tasks.text.HIDE_AFTER_MS", 300)
    monkeypatch.setattr("taskyard.ui.snapshot.HIDE_AFTER_MS", 300)
    release.yard.tasks.create("Build")
    app = YardApp(release, me="ada")
    async with app.run_test(size=(80, 24)) as pilot:
        await eventually(pilot, lambda: len(app.main.tasks.items) == 1, "the rows")
        await pilot.press("d")
        await eventually(pilot, lambda: "The task is done. Press enter" in grid(app), "the hidden panel")
        await pilot.press("enter")
        await eventually(pilot, lambda: "✓ 1 Build" in grid(app), "what is done")
        release.yard.tasks.create("Ship")
        await eventually(pilot, lambda: "○ 2 Ship" in grid(app), "the panel, by itself")
