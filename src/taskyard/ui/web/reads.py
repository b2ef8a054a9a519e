"""Handlers that read: lists, snapshots and their parts, one task, one job, output.

Output is sent as windows of lines, each line as text with style names; never as markup.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

import taskyard
from taskyard.core.system import now_ms
from taskyard.core.text import size
from taskyard.errors import UsageError
from taskyard.jobs.job_text import JobUsage, subtree_usage, total_usage
from taskyard.jobs.model import job_json
from taskyard.jobs.output import Output
from taskyard.jobs.query import find_folder, task_jobs, with_descendants
from taskyard.tasks.model import Task
from taskyard.tasks.text import task_json
from taskyard.ui.jobs import job_views
from taskyard.ui.output import OutputReader, OutputWindow, read_last_line
from taskyard.ui.snapshot import Snapshot, as_json, snapshot_json
from taskyard.ui.tasks import TaskView, task_history
from taskyard.ui.web.site import Site
from taskyard.ui.web.values import Params, Refusal, data_response
from taskyard.yard import Yard

#: Snapshot keys that each view shows.
VIEW_KEYS = {
    "board": ("list", "tasks", "task_order", "counts", "people", "people_order", "headline", "is_panel_shown"),
    "graph": ("list", "tasks", "task_order", "counts"),
    "background": ("list", "jobs", "job_order", "pill", "attention"),
}

#: Most changes of one task in an answer; the latest.
_MOST_CHANGES = 500

#: Fields of the task at the other end of an edge.
_EDGE = ("id", "subject", "state", "glyph", "ascii", "word", "token")


async def about(site: Site, given: Params, request: Request) -> Response:
    """Return what this server is and whether actions are allowed."""
    return data_response(
        {
            "version": taskyard.__version__,
            "allow_actions": site.options.allow_actions,
            "list": site.lists.own,
            "person": site.person,
            "now": now_ms(),
            "server": site.numbers.start,
        }
    )


async def lists(site: Site, given: Params, request: Request) -> Response:
    """Return all lists with their counts."""

    def look() -> list[dict[str, object]]:
        names = site.lists.names()
        names += [] if site.lists.own in names else [site.lists.own]
        found = [site.yard.lists.count(name) for name in names]
        return [{**each._asdict(), "current": each.name == site.lists.own} for each in found]

    return data_response(await site.threads.look(look))


async def snapshot(site: Site, given: Params, request: Request) -> Response:
    """Return the complete snapshot of a list and all jobs."""
    async with site.lists.shown(given.word("list")) as shown:
        now, mark = shown.channel.now()
    return data_response({**await site.threads.look(partial(snapshot_json, now)), "id": mark})


async def view_part(site: Site, given: Params, request: Request) -> Response:
    """Return the part of the snapshot that one view shows."""
    async with site.lists.shown(given.word("list")) as shown:
        now, mark = shown.channel.now()
    found = await site.threads.look(partial(snapshot_json, now))
    keys = VIEW_KEYS[given.text("view")]
    return data_response({**{key: found[key] for key in keys}, "id": mark})


async def timeline(site: Site, given: Params, request: Request) -> Response:
    """Return who did what when."""
    async with site.lists.shown(given.word("list")) as shown:
        found = await site.threads.look(shown.view.timeline)
    return data_response({"list": shown.view.name, **as_json(found)})


async def task(site: Site, given: Params, request: Request) -> Response:
    """Return one task, with its edges, history and usage."""
    async with site.lists.shown(given.word("list")) as shown:
        now, _ = shown.channel.now()
        return data_response(await site.threads.look(partial(_task_detail, shown.view.yard, given.text("id"), now)))


def _task_detail(yard: Yard, task_id: str, now: Snapshot) -> dict[str, object]:
    found = yard.tasks.get(task_id)
    views = {view.id: view for view in now.tasks}
    jobs = list(task_jobs(yard.home, f"{yard.tasks.name}/{found.id}"))
    view = views.get(found.id)
    return {
        "task": task_json(found, open_blockers=view.waits_for if view is not None else None),
        "view": as_json(view) if view is not None else None,
        "description": found.description,
        "edges": _edges_json(found, views),
        "history": task_history(yard.tasks.log(found.id), found.id)[-_MOST_CHANGES:],
        "figures": figures_json(total_usage(jobs, now_ms())),
        "jobs": [job.id for job in jobs],
    }


def _edges_json(found: Task, views: dict[str, TaskView]) -> dict[str, object]:
    def ends(ids: tuple[str, ...]) -> list[dict[str, object]]:
        return [{name: getattr(views[one], name) for name in _EDGE} for one in ids if one in views]

    return {"blocked_by": ends(found.blocked_by), "blocks": ends(found.blocks)}


async def job(site: Site, given: Params, request: Request) -> Response:
    """Return one job, with its usage including all jobs started inside it. Marks its end as seen."""
    return data_response(await site.threads.look(partial(_job_detail, site, given.text("id"))))


def _job_detail(site: Site, job_id: str) -> dict[str, object]:
    found = site.yard.jobs.get(job_id)
    site.live.see(job_id)
    lines = {job_id: read_last_line(site.yard.home, job_id)}
    [shown] = job_views([found], now=now_ms(), last_lines=lines, seen=frozenset({job_id}))
    total = subtree_usage(with_descendants(site.yard.home, [found]), now_ms())[found.id]
    return {
        "view": {**as_json(shown), "total": as_json(total)},
        "record": job_json(found),
        "figures": figures_json(total),
    }


def figures_json(figures: JobUsage) -> dict[str, object]:
    """Return usage in numbers and as text."""
    return {**figures.to_json(), "words": figures.in_words()}


#: Lines of a window if the request does not give a number.
DEFAULT_LINES = 1_000

#: Bytes of one streamed window, and how many bytes a client may lag before the rest is skipped.
_WINDOW_BYTES, _MOST_BEHIND = 200_000, 1_000_000

#: The largest output that can be downloaded, and bytes read at a time.
LARGEST_FILE, _CHUNK_BYTES = 64_000_000, 256 * 1024


async def output(site: Site, given: Params, request: Request) -> Response:
    """Return a window of lines: the last, those before an offset, or those from one on."""
    if len({"tail", "before", "after"} & given.keys()) > 1:
        raise UsageError("Give one of tail, before and after.")

    def look() -> tuple[OutputWindow, bool]:
        reader = open_reader(site, given.text("id"))
        is_over = reader.is_over()
        lines = given.number("lines", DEFAULT_LINES)
        if "before" in given:
            return reader.before(given.number("before"), lines), is_over
        if "after" in given:
            return reader.after(given.number("after"), lines=lines), is_over
        return reader.tail(given.number("tail", lines)), is_over

    window, is_over = await site.threads.look(look)
    return data_response(window_json(window, is_over=is_over))


async def find(site: Site, given: Params, request: Request) -> Response:
    """Return the offset of the next line that contains a text."""

    def look() -> int | None:
        reader = open_reader(site, given.text("id"))
        backwards = bool(given.get("backwards"))
        start = given.number("from", reader.after(0, 0).size if backwards else 0)
        return reader.find(given.text("text"), start, backwards=backwards)

    return data_response({"offset": await site.threads.look(look)})


async def download(site: Site, given: Params, request: Request) -> Response:
    """Return the whole output as a file, unmodified."""
    job_id = given.text("id")

    def look() -> tuple[Output, int]:
        found = Output(find_folder(site.yard.home, job_id))
        return found, found.end()

    found, end = await site.threads.look(look)
    if end > LARGEST_FILE:
        where = found.folder.output
        said = f"This output has {size(end)}; up to {size(LARGEST_FILE)} can be fetched. The file is {where}."
        return Refusal(413, "too_large", said).answer()

    async def pieces() -> AsyncIterator[bytes]:
        at = 0
        while at < end:
            part = await site.threads.look(partial(found.read, at, min(_CHUNK_BYTES, end - at)))
            if not part.text or part.restarted:
                return
            at = part.next_offset
            yield part.text

    headers = {"Content-Disposition": f'attachment; filename="{job_id}.txt"'}
    return StreamingResponse(pieces(), headers=headers, media_type="text/plain; charset=utf-8")


class OutputFollower:
    """Reads one output as it grows, for one client."""

    def __init__(self, reader: OutputReader, start: int | None) -> None:
        """Start at offset `start`; None: with the last lines."""
        self._reader = reader
        self._at = start
        self._last: OutputWindow | None = None
        self._was_over: bool = False
        self.is_behind = True  #: whether more output is available already

    def more(self) -> tuple[OutputWindow | None, bool]:
        """Return new output (None if there is none), and whether the job has ended."""
        is_over = self._reader.is_over()
        window = self._reader.tail(DEFAULT_LINES) if self._at is None else self._reader.after(self._at, _WINDOW_BYTES)
        if window.size - window.end > _MOST_BEHIND:
            newest = self._reader.tail(DEFAULT_LINES)
            window = newest._replace(omitted=newest.start - (self._at or 0))
        is_new = is_over != self._was_over or self._last is None or not _is_unchanged(self._last, window)
        self.is_behind = window.end != self._at and window.end < window.size
        self._at = window.end
        self._was_over = is_over
        self._last = window if is_new else self._last
        return (window if is_new else None), is_over


def _is_unchanged(before: OutputWindow, window: OutputWindow) -> bool:
    """Return whether a window shows nothing new: no lines, or the same unterminated line."""
    lines = window.lines
    return not window.restarted and not window.omitted and lines == before.lines[len(before.lines) - len(lines) :]


def window_json(window: OutputWindow, *, is_over: bool) -> dict[str, object]:
    """Convert a window to JSON values: each line is runs of text, each with its style names."""
    return {
        "start": window.start,
        "end": window.end,
        "size": window.size,
        "omitted": window.omitted,
        "is_over": is_over,
        "partial": window.is_open,
        "restarted": window.restarted,
        "offsets": [line.offset for line in window.lines],
        "lines": [[[run.text, run.pen.words] for run in line.runs] for line in window.lines],
    }


def open_reader(site: Site, job_id: str) -> OutputReader:
    """Open the output of a job. Reads the disk.

    Raises:
        JobNotFound: There never was such a job.
        OutputGone: Its output was removed to free space.
    """
    find_folder(site.yard.home, job_id)
    return OutputReader(site.yard.home, job_id)
