"""
`taskyard ps --watch`: the jobs, kept in view.

On a terminal the screen is drawn anew when something happened, and every second for the clocks. Elsewhere the rows come
once, then a line for each job that began, ended or changed its state; with `--json`, the whole answer each time. The
kernel tells of changes in the folders of all living jobs.
"""

from __future__ import annotations

import select
import sys
import time

from taskyard.cli.job.ps import lines_of, listed, rows_of, show
from taskyard.cli.output import is_terminal, print_line, style
from taskyard.clock import now_ms
from taskyard.disk.inotify import Inotify
from taskyard.runtime.folder import JobFolder
from taskyard.view.glyphs import painted
from taskyard.view.job_text import ended_line, state
from taskyard.view.pill import pill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from taskyard.cli.command import Args
    from taskyard.runtime.jobs import Jobs
    from taskyard.runtime.model import Job

#: Seconds between two drawings: clocks move each second, and a flood of output must not make us one.
_CLOCK, _LEAST = 1.0, 0.2

#: Where nothing is drawn, a look by ourselves: no file tells of the death of a keeper.
_BLIND_LOOK = 5.0

#: Before there ever was a job there is no folder to follow.
_FIRST_LOOK = 0.5

_CLEAR = "\x1b[H\x1b[2J"


def watch(args: Args, jobs: Jobs) -> int:
    """Show the jobs until interrupted."""
    drawing = is_terminal(sys.stdout) and not args.as_json
    news = _News(jobs.home)
    wrong: list[str] = []
    found = listed(args, jobs, report=lambda error: wrong.append(str(error)))
    if not drawing:
        show(args, jobs, found, wrong)
    while True:
        if drawing:
            _draw(args, jobs, found.jobs)
        sys.stdout.flush()
        news.wait(found.jobs, _CLOCK if drawing else _BLIND_LOOK)
        before, found = found, listed(args, jobs)
        if args.as_json:
            if found != before:
                show(args, jobs, found)
        elif not drawing:
            _tell(args, jobs, {job.id: job for job in before.jobs}, found.jobs)


def _tell(args: Args, jobs: Jobs, before: Mapping[str, Job], found: Sequence[Job]) -> None:
    """A line for each job that is not as it was; those that are gone from the list have ended."""
    here = {job.id for job in found}
    over = [jobs.get(job_id) for job_id in before if job_id not in here]
    for job in (*over, *found):
        was = before.get(job.id)
        if was is None or state(was) != state(job):
            print_line(ended_line(job, style(args)))


def _draw(args: Args, jobs: Jobs, found: Sequence[Job]) -> None:
    room = max(3, _height() - 3)
    look = style(args)
    lines = lines_of(args, rows_of(jobs, found, most=room))
    if len(found) > room:
        lines.append(painted(f"… {len(found) - room} more", "muted", look))
    clock = time.strftime("%H:%M:%S", time.localtime(now_ms() / 1000))
    words = pill(found, now=now_ms()).in_words() or "nothing runs in the background"
    head = painted(f"{clock}  {words}; Ctrl+C ends this view alone", "muted", look)
    sys.stdout.write(_CLEAR + "\n".join([head, *lines]) + "\n")


def _height() -> int:
    import os

    try:
        return os.get_terminal_size(sys.stdout.fileno()).lines or 24
    except (OSError, ValueError):
        return 24


class _News:
    """Sleeps until something happens to a job, or a new one comes."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._events = Inotify()
        self._followed: dict[str, int] = {}
        self._is_on = False

    def wait(self, living: Sequence[Job], seconds: float) -> None:
        """Sleep until there is news of these jobs or of others, at most so long; bursts gather for a moment."""
        self._follow({job.id for job in living if not job.is_final})
        if select.select([self._events.fd], [], [], seconds if self._is_on else min(seconds, _FIRST_LOOK))[0]:
            time.sleep(_LEAST)
            self._events.read()

    def _follow(self, wanted: set[str]) -> None:
        if not self._is_on:
            self._is_on = self._add("", f"{self._home}/jobs")
        for job_id in wanted - self._followed.keys():
            self._add(job_id, JobFolder(self._home, job_id).path)
        for job_id in self._followed.keys() - wanted - {""}:
            self._events.remove(self._followed.pop(job_id))

    def _add(self, name: str, folder: str) -> bool:
        try:
            self._followed[name] = self._events.add(folder)
        except OSError:
            return False  # not there (yet), or no more of them: a look by ourselves will do
        return True
