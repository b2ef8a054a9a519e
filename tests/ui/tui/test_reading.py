"""The thread that draws touches no file; colours go where nobody wants them; clicks lead where keys do."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from support.tui import (
    LONG_OUTPUT,
    Scenery,
    driven,
    eventually,
    grid,
    home_of,
    marks,
    printed,
    scene,
    type_text,
    view_of,
)
from taskyard.jobs.kinds.shell import Shell
from taskyard.tasks.model import DamagedFile
from taskyard.ui.live import LiveView
from taskyard.ui.tui.app import YardApp

_ACTS = ("open", "os.listdir", "os.scandir", "os.rename", "os.remove", "os.mkdir", "os.link")


class Watch:
    """What one thread does to files below some folders; the hook stays, and is deaf in the end."""

    def __init__(self, *folders: str) -> None:
        self.folders: tuple[str, ...] = folders
        self.seen: list[str] = []
        self._thread = threading.get_ident()
        sys.addaudithook(self._heard)

    def _heard(self, event: str, args: tuple[object, ...]) -> None:
        if self.folders and event in _ACTS and threading.get_ident() == self._thread:
            path = str(args[0])
            if path.startswith(self.folders):
                self.seen.append(f"{event} {path}")

    def end(self) -> list[str]:
        self.folders = ()
        return self.seen


@pytest.mark.req("U-01", "U-03")
@driven
async def test_the_thread_that_draws_reads_and_writes_no_file(release: LiveView) -> None:
    release.yard.tasks.create("Build")
    release.yard.jobs.run(Shell("seq 1 9000"))
    watch = Watch(release.yard.home, str(release.yard.tasks_dir))
    app = YardApp(release, me="ada")
    async with app.run_test(size=(120, 30)) as pilot:
        await eventually(pilot, lambda: "seq 1 9000" in grid(app), "the job")
        await pilot.press("s", "d", "a")
        await type_text(pilot, "Another")
        await pilot.press("enter", "2", "3", "k", "g", "G", "slash")
        await type_text(pilot, "777")
        await pilot.press("enter", "n", "right_square_bracket", "right_square_bracket", "1", "c", "b")
        await type_text(pilot, "1")
        await pilot.press("enter", "r")
        await type_text(pilot, "true")
        await pilot.press("enter")
        await eventually(pilot, lambda: len(app.main.snapshot.jobs) == 2, "what was run")

    assert watch.end() == []


@driven
async def test_without_colours_there_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = view_of(Scenery(scene(), home_of(tmp_path)))
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.pause()
        assert set(marks(app)) <= {" ", "\n", "R"}
        assert "R" in marks(app)


@driven
async def test_a_click_on_the_pill_leads_to_the_jobs_and_one_on_a_tab_turns_to_it(tmp_path: Path) -> None:
    home = home_of(tmp_path)
    printed(home, "b7k2m3x0q", LONG_OUTPUT)
    app = view_of(Scenery(scene(), home))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.click("#footer", offset=(5, 0))
        assert app.place == "jobs"
        await pilot.click("#jobs", offset=(5, 2))
        assert app.main.jobs.selected == "b7k2m3x0q"
        await pilot.click("#jobs", offset=(5, 2))
        assert app.place == "output"
        await pilot.click(app.main.detail.frame, offset=(55, 0))
        assert app.main.detail.tab == 2


@driven
async def test_what_cannot_be_read_is_said_in_words(tmp_path: Path) -> None:
    app = view_of(Scenery(scene(damaged=(DamagedFile("7.json", "it is not JSON"),)), home_of(tmp_path)))
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        await eventually(pilot, lambda: "7.json cannot be read: it is not JSON" in grid(app), "the words")
        assert "! 1 unreadable" in grid(app)
