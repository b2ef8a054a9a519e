"""Every screen and state, as text in `screens/`: what a person sees, reviewed line by line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

from support.tui import (
    DONE,
    LONG_OUTPUT,
    NOW,
    OUTPUT,
    PICTURES,
    Driving,
    Scenery,
    check_screen,
    driven,
    eventually,
    grid,
    home_of,
    in_utc,
    printed,
    scene,
    type_text,
    view_of,
)
from taskyard.core.text import Style
from taskyard.tasks.model import Task
from taskyard.ui.ansi import Run
from taskyard.ui.output import OutputLine, OutputWindow
from taskyard.ui.snapshot import ViewInput
from taskyard.ui.tui import app as tui_app
from taskyard.ui.tui.app import YardApp
from taskyard.ui.tui.output_view import OutputUpdate


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No time passes: neither the clock nor the spinner."""
    monkeypatch.setenv("TZ", "UTC")
    in_utc()
    monkeypatch.setattr(tui_app, "SPIN_EVERY", 3600.0)
    monkeypatch.setattr(tui_app, "STOP_WITHIN", 3600.0)
    yield
    monkeypatch.undo()


def app_of(pilot: Pilot[str]) -> YardApp:
    assert isinstance(pilot.app, YardApp)
    return pilot.app


def keys(*names: str) -> Driving:
    """Press keys, one after the other."""

    async def drive(pilot: Pilot[str]) -> None:
        await pilot.press(*names)

    return drive


def typing(*names: str) -> Driving:
    """Press keys, the last of which opens a line; what is typed into it comes last."""

    async def drive(pilot: Pilot[str]) -> None:
        *before, text = names
        await pilot.press(*before)
        await type_text(pilot, text)

    return drive


async def as_it_is(pilot: Pilot[str]) -> None:
    """Nothing has happened yet."""


async def open_output(pilot: Pilot[str]) -> None:
    """The output of `npm test`, followed."""
    app = app_of(pilot)
    await pilot.press("2")
    app.main.jobs.select("b7k2m3x0q")
    await pilot.press("3")
    await eventually(pilot, lambda: app.front.detail.output.kept.lines, "its output")


async def pause_output(pilot: Pilot[str]) -> None:
    """Scrolled back while lines come."""
    await pilot.press("k")
    detail = app_of(pilot).front.detail
    new = tuple(OutputLine(100_000 + at, (Run(f"line {at}"),)) for at in range(42))
    detail.hear(OutputUpdate("b7k2m3x0q", OutputWindow(new, 100_000, 100_042, size=100_042)))


async def find_text(pilot: Pilot[str]) -> None:
    """A word found in the output."""
    await typing("slash", "unknown")(pilot)
    await pilot.press("enter")
    await eventually(pilot, lambda: app_of(pilot).front.detail.output.found_at is not None, "the word")


async def open_job_details(pilot: Pilot[str]) -> None:
    """Everything about a job that failed."""
    await pilot.press("escape", "2")
    app_of(pilot).main.jobs.select("b5dd81k2j")
    await pilot.press("3", "right_square_bracket")


async def be_refused(pilot: Pilot[str]) -> None:
    """An act that cannot be: the same words as on the command line."""
    app = app_of(pilot)
    app.show_error("Task '12' is already claimed by 'ada'.")
    await eventually(pilot, lambda: "already claimed" in grid(app), "the words")


async def open_palette(pilot: Pilot[str]) -> None:
    """Everything that can be done, narrowed down."""
    await typing("x", "ctrl+p", "claim")(pilot)
    await eventually(pilot, lambda: "Claim the task for yourself" in grid(pilot.app), "what was looked for")


MANY = scene(
    tasks=(
        *(Task(str(at), f"Part {at}", status=DONE, updated_at=NOW - 100_000 * at) for at in range(1, 9)),
        *(Task(str(at), f"Part {at}", blocked_by=("9",)) for at in range(20, 30)),
        *(Task(str(at), f"Part {at}") for at in range(9, 20)),
    )
)
ALL_DONE = scene(
    tasks=(Task("1", "Plan", status=DONE, updated_at=NOW - 60_000), Task("2", "Build", status=DONE, updated_at=NOW)),
    jobs=(),
    done_since=NOW - 6_000,
)

#: Screens that follow from each other: a scene, and what leads from one to the next.
WALKS: dict[str, tuple[ViewInput, dict[str, Driving]]] = {
    "lists": (
        scene(),
        {
            "main": as_it_is,
            "add": typing("a", "Tag it"),
            "filter": typing("escape", "slash", "!blocked"),
            "filtered": keys("enter"),
            "help": keys("escape", "question_mark"),
            "palette": open_palette,
            "background": keys("escape", "2", "j"),
            "stop-asked": keys("x"),
        },
    ),
    "output": (
        scene(),
        {
            "answer": keys("2", "g", "enter"),
            "answer-left": keys("escape", "escape"),
            "output": open_output,
            "output-paused": pause_output,
            "output-found": find_text,
            "output-wrapped-with-times": keys("w", "t"),
        },
    ),
    "details": (
        scene(),
        {
            "details-of-a-task": keys("3"),
            "graph": keys("right_square_bracket", "l"),
            "details-of-a-job": open_job_details,
            "refused": be_refused,
        },
    ),
    "empty": (ViewInput("release-2", now=NOW), {"empty": as_it_is}),
    "all done": (ALL_DONE, {"all-done": as_it_is, "all-done-opened": keys("enter")}),
    "many": (MANY, {"many": as_it_is, "many-last": keys("G")}),
}

#: Those that the documentation shows.
PICTURED = ("main", "output", "details-of-a-task", "graph", "answer", "help")


async def at_rest(pilot: Pilot[str]) -> None:
    """Until nothing is being read any more."""
    app = app_of(pilot)
    await eventually(pilot, lambda: not any(worker.is_running for worker in app.workers), "rest")
    if app.front.detail.display and app.front.detail.job is not None:
        output = app.front.detail.output
        await eventually(pilot, lambda: output.kept.lines or output.note, "an output")
    await pilot.pause()


@pytest.mark.req("U-01", "U-03", "L-20")
@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("walk", WALKS)
@driven
async def test_screens_look_as_they_did(walk: str, size: tuple[int, int], tmp_path: Path) -> None:
    shown, screens = WALKS[walk]
    home = home_of(tmp_path)
    for job in shown.jobs:
        printed(home, job.id, OUTPUT if job.id != "b7k2m3x0q" else LONG_OUTPUT)
    app = view_of(Scenery(shown, home))
    async with app.run_test(size=size, notifications=True) as pilot:
        for name, drive in screens.items():
            await drive(pilot)
            await at_rest(pilot)
            check_screen(app, f"{name}-{size[0]}x{size[1]}", picture=name in PICTURED)


@pytest.mark.req("U-01", "U-02")
@pytest.mark.parametrize("size", [(60, 20), (59, 20), (50, 14), (100, 15)], ids=lambda size: f"{size[0]}x{size[1]}")
@driven
async def test_it_is_usable_where_there_is_little_room(size: tuple[int, int], tmp_path: Path) -> None:
    app = view_of(Scenery(scene(), home_of(tmp_path)))
    async with app.run_test(size=size, notifications=True) as pilot:
        await pilot.pause()
        check_screen(app, f"main-{size[0]}x{size[1]}")


@pytest.mark.req("U-01")
@driven
async def test_with_ascii_alone_no_sign_is_beyond_it(tmp_path: Path) -> None:
    app = view_of(Scenery(scene(), home_of(tmp_path)), style=Style(colour=False, ascii=True))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        check_screen(app, "ascii-120x40")
        assert [line for line in grid(app).splitlines() if not line.replace("× keeps", "").isascii()] == []


def test_the_pictures_of_the_guide_are_there_at_two_sizes_and_small() -> None:
    sizes = {
        f"{name}-{size}": (PICTURES / f"tui-{name}-{size}.svg").stat().st_size
        for name in PICTURED
        for size in ("80x24", "120x40")
    }

    assert {name: size for name, size in sizes.items() if not 1_000 < size < 60_000} == {}
