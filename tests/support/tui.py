"""The terminal view for tests: scenes made by hand, a clock that stands, and screens as text that people can read."""

from __future__ import annotations

import asyncio
import difflib
import functools
import json
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from textual.pilot import Pilot
from textual.widgets import Input

from support.repo import ROOT, TESTS
from taskyard.core import files
from taskyard.core.text import Style
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.model import End, Job, JobStatus
from taskyard.tasks.model import Act, Change, Task, TaskStatus
from taskyard.ui.snapshot import Snapshot, ViewInput, build_snapshot
from taskyard.ui.tui.app import YardApp
from taskyard.yard import Yard

#: 2025-10-09 14:02:33 UTC.
NOW = 1_760_018_553_000

PENDING, DOING, DONE = TaskStatus
SCREENS = TESTS / "ui" / "tui" / "screens"
PICTURES = ROOT / "docs" / "images"
WRITES = os.environ.get("TASKYARD_WRITE_SCREENS", "") not in ("", "0")
os.environ.pop("TASKYARD_WRITE_SCREENS", None)

_MARKS = {4: "a", 2: "p", 3: "w", 1: "f", 8: "m"}
_LEGEND = "-- colours: a accent, p pass, w warn, f fail, m muted, x another; capitals and R are reversed --"

Driving = Callable[[Pilot[str]], Awaitable[None]]


def driven(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run a test that awaits."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(cast("Any", test(*args, **kwargs)))

    return run


async def eventually(pilot: Pilot[Any], condition: Callable[[], object], what: str = "") -> None:
    """Let the view work until something is so; at most twenty seconds."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, f"it never came: {what}\n{grid(pilot.app)}"
        await pilot.pause(0.02)
    await pilot.pause()


async def type_text(pilot: Pilot[Any], text: str) -> None:
    """Type into the line that has the focus, as fast as a paste."""
    await eventually(pilot, lambda: isinstance(pilot.app.focused, Input), "a line to type into")
    assert isinstance(pilot.app.focused, Input)
    pilot.app.focused.value = text
    await pilot.pause()


# -- scenes ----------------------------------------------------------------------------------

RELEASE = (
    Task("9", "Write the release notes"),
    Task("11", "Freeze the API", owner="ada", status=DONE, blocks=("12",), updated_at=NOW - 125_000),
    Task(
        "12",
        "Migrate the schema",
        "Move every table to the new schema.\nKeep the old one until readers have switched.",
        owner="ada",
        status=DOING,
        active_form="Migrating the schema",
        blocks=("13", "16", "17"),
        blocked_by=("11",),
        updated_at=NOW - 185_000,
    ),
    Task("13", "Switch readers", blocks=("16",), blocked_by=("12",)),
    Task("14", "Port the importer", owner="bob", status=DOING, updated_at=NOW - 41_000),
    Task("15", "Update the README"),
    Task("16", "Drop the old table", blocked_by=("12", "13")),
    Task("17", "Backfill", blocked_by=("12",)),
)
JOBS = (
    Job(
        "b9qx4t7za",
        "local_bash",
        JobStatus.RUNNING,
        "npm init",
        "npm init",
        NOW - 65_000,
        needs_input=True,
        takes_input=True,
        pid=4711,
        output_file="/home/ada/.local/state/taskyard/jobs/b9qx4t7za/output",
        facts={"question": "package name: (app)"},
    ),
    Job(
        "b7k2m3x0q",
        "local_bash",
        JobStatus.RUNNING,
        "npm test",
        "npm test",
        NOW - 38_000,
        pid=4712,
        task="release-2/14",
        agent_id="bob",
        output_file="/home/ada/.local/state/taskyard/jobs/b7k2m3x0q/output",
    ),
    Job(
        "a3f0c9d1e",
        "local_agent",
        JobStatus.RUNNING,
        "review the importer",
        start_time=NOW - 122_000,
        facts={"costUsd": 0.42, "summary": "Reading src/importer.py"},
    ),
    Job(
        "b5dd81k2j",
        "local_bash",
        JobStatus.FAILED,
        "make lint",
        "make lint",
        NOW - 300_000,
        NOW - 240_000,
        notified=True,
        parent="a3f0c9d1e",
        end=End("exited", 2, proof="proved", at=NOW - 240_000, duration_ms=60_000),
        output_file="/home/ada/.local/state/taskyard/jobs/b5dd81k2j/output",
    ),
)
LAST_LINES = {"b7k2m3x0q": "× keeps unknown columns 12ms", "b9qx4t7za": "package name: (app)"}
OUTPUT = (
    b"\n> pkg@2.1.0 test\n> vitest run\n\n \x1b[32m\xe2\x9c\x93\x1b[0m parser.test.ts (18)\n"
    b" \x1b[32m\xe2\x9c\x93\x1b[0m importer.test.ts (7)\n \x1b[31m\xe2\x9d\xaf\x1b[0m schema.test.ts (22)\n"
    b"   \x1b[31m\xc3\x97\x1b[0m keeps unknown columns 12ms\n"
)
LONG_OUTPUT = b"".join(b"setup %d: linked\n" % at for at in range(1, 1_197)) + OUTPUT


def scene(**changes: object) -> ViewInput:
    """A release half done, with jobs of every kind."""
    whole = ViewInput("release-2", RELEASE, jobs=JOBS, last_lines=LAST_LINES, me="ada", now=NOW, lists=("release-2",))
    return whole._replace(**cast("Any", changes))


class Scenery:
    """A feed of snapshots made by hand; what is read beyond them is fixed too."""

    def __init__(self, shown: ViewInput, home: str) -> None:
        self.snapshot: Snapshot = build_snapshot(shown)
        self.seen: list[str] = []
        self._listeners: list[Callable[[Snapshot], None]] = []
        tasks = {task.id: task for task in shown.tasks}
        self.yard = cast(
            "Yard", SimpleNamespace(home=home, tasks=SimpleNamespace(get=tasks.__getitem__, name=shown.list))
        )

    def turn(self, shown: ViewInput) -> None:
        """Something happened."""
        self.snapshot = build_snapshot(shown)
        for listener in self._listeners:
            listener(self.snapshot)

    def listen(self, listener: Callable[[Snapshot], None], /) -> Callable[[], None]:
        self._listeners.append(listener)
        return self._listeners.clear

    def see(self, job_id: str, /) -> None:
        self.seen.append(job_id)

    is_everywhere = False

    def show_all_projects(self, everywhere: bool, /) -> None:
        self.is_everywhere = everywhere

    def history(self, task_id: str, /) -> Sequence[Change]:
        task = Task(task_id, "Migrate the schema")
        return (
            Change(1, NOW - 600_000, Act("lead", "create"), {task_id: task}),
            Change(2, NOW - 185_000, Act("ada", "start"), {task_id: task}),
        )

    def close(self) -> None:
        """Nothing to let go of."""


def printed(home: str, job_id: str, text: bytes) -> JobPaths:
    """A job that is over, of which there is an output to read."""
    folder = JobPaths(home, job_id)
    files.make_private_folder(folder.path)
    record = {"id": job_id, "type": "local_bash", "description": "x", "cwd": "/home/ada/app", "recipient": "me"}
    files.create(folder.record, json.dumps(record).encode())
    files.create(folder.output, text)
    end = {"cause": "exited", "exitCode": 0, "proof": "proved", "at": NOW, "size": len(text)}
    files.create(folder.end, json.dumps(end).encode())
    return folder


def view_of(feed: Scenery, **how: Any) -> YardApp:
    """The view of a scene, at a moment that does not pass."""
    return YardApp(feed, **{"now": lambda: NOW, "style": Style(colour=True), "me": "ada", **how})


# -- screens ---------------------------------------------------------------------------------


def grid(app: Any) -> str:
    """What is on the screen, as text."""
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in _strips(app))


def _strips(app: Any) -> list[Any]:
    """The screen line by line, what lies over it included: the one place that knows Textual's inside."""
    update = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
    return [[segment for strip in line for segment in strip] for line in update.strips]


def marks(app: Any) -> str:
    """The colours of every cell."""
    lines: list[str] = []
    for strip in _strips(app):
        line = ""
        for segment in strip:
            style = segment.style
            colour = style.color.number if style is not None and style.color is not None else None
            mark = " " if colour is None else _MARKS.get(colour, "x")
            if style is not None and style.reverse:
                mark = "R" if mark == " " else mark.upper()
            line += mark * segment.cell_length
        lines.append(line.rstrip())
    return "\n".join(lines)


def check_screen(app: YardApp, name: str, *, picture: bool = False) -> None:
    """Compare what is on the screen with the file of this name; TASKYARD_WRITE_SCREENS=1 writes it."""
    path = SCREENS / f"{name}.txt"
    found = f"{grid(app)}\n{_LEGEND}\n{marks(app)}\n"
    if WRITES:
        path.parent.mkdir(exist_ok=True)
        path.write_text(found, encoding="utf-8")
        if picture:
            _write_picture(app, name)
    wanted = path.read_text(encoding="utf-8") if path.exists() else ""
    if found != wanted:
        shown = difflib.unified_diff(wanted.splitlines(), found.splitlines(), "wanted", "found", lineterm="", n=1)
        raise AssertionError(f"{path.name} shows something else:\n" + "\n".join(shown))


def _write_picture(app: YardApp, name: str) -> None:
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / f"tui-{name}.svg").write_text(picture_of(app), encoding="utf-8")


def picture_of(app: YardApp) -> str:
    """The screen as SVG, with the fonts that are there."""
    import re

    svg = app.export_screenshot(title="taskyard tui", simplify=True)
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"terminal-\d+-", "t-", svg)
    return svg.replace("Fira Code", "DejaVu Sans Mono, monospace")


def in_utc() -> None:
    """Times of day as in Greenwich."""
    os.environ["TZ"] = "UTC"
    time.tzset()


def home_of(tmp_path: Path) -> str:
    """A home of the test's own."""
    return str(tmp_path / "state")
