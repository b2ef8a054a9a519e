"""What can be looked at: lists, snapshots and their parts, one task, one job."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

import taskyard
from taskyard.app import Yard
from taskyard.clock import now_ms
from taskyard.live.last_line import last_line
from taskyard.runtime.families import of_task, with_all_inside
from taskyard.tasklist.model import Task
from taskyard.view.changes import as_json, whole
from taskyard.view.figures import Figures, together, up_the_tree
from taskyard.view.history import history
from taskyard.view.job_records import job_json
from taskyard.view.job_views import job_views
from taskyard.view.records import task_json
from taskyard.view.snapshot import Snapshot
from taskyard.view.task_views import TaskView
from taskyard.web.answers import data
from taskyard.web.site import Site
from taskyard.web.values import Given

#: Which keys of a snapshot each view shows.
PARTS = {
    "board": ("list", "tasks", "task_order", "counts", "people", "people_order", "headline", "is_panel_shown"),
    "graph": ("list", "tasks", "task_order", "counts"),
    "background": ("list", "jobs", "job_order", "pill", "attention"),
}

#: Changes of one task that are told; of more, the latest.
_MOST_CHANGES = 500

#: What an edge tells of the task at its other end.
_EDGE = ("id", "subject", "state", "glyph", "ascii", "word", "token")


async def about(site: Site, given: Given, request: Request) -> Response:
    """What this server is and may."""
    return data(
        {
            "version": taskyard.__version__,
            "allow_actions": site.options.allow_actions,
            "list": site.lists.own,
            "person": site.person,
            "now": now_ms(),
            "server": site.numbers.start,
        }
    )


async def lists(site: Site, given: Given, request: Request) -> Response:
    """Every list there is."""

    def look() -> list[dict[str, object]]:
        names = site.lists.names()
        names += [] if site.lists.own in names else [site.lists.own]
        found = [site.yard.lists.count(name) for name in names]
        return [{**each._asdict(), "current": each.name == site.lists.own} for each in found]

    return data(await site.threads.look(look))


async def snapshot(site: Site, given: Given, request: Request) -> Response:
    """Everything a screen shows of a list and of all jobs."""
    async with site.lists.shown(given.word("list")) as shown:
        now, mark = shown.channel.now()
    return data({**await site.threads.look(partial(whole, now)), "id": mark})


async def part(site: Site, given: Given, request: Request) -> Response:
    """What one view shows."""
    async with site.lists.shown(given.word("list")) as shown:
        now, mark = shown.channel.now()
    found = await site.threads.look(partial(whole, now))
    keys = PARTS[given.text("view")]
    return data({**{key: found[key] for key in keys}, "id": mark})


async def timeline(site: Site, given: Given, request: Request) -> Response:
    """Who did what when."""
    async with site.lists.shown(given.word("list")) as shown:
        found = await site.threads.look(shown.view.timeline)
    return data({"list": shown.view.name, **as_json(found)})


async def task(site: Site, given: Given, request: Request) -> Response:
    """One task, with its edges, its history and what it took."""
    async with site.lists.shown(given.word("list")) as shown:
        now, _ = shown.channel.now()
        return data(await site.threads.look(partial(_task, shown.view.yard, given.text("id"), now)))


def _task(yard: Yard, task_id: str, now: Snapshot) -> dict[str, object]:
    found = yard.tasks.get(task_id)
    views = {view.id: view for view in now.tasks}
    jobs = list(of_task(yard.home, f"{yard.tasks.name}/{found.id}"))
    view = views.get(found.id)
    return {
        "task": task_json(found, open_blockers=view.waits_for if view is not None else None),
        "view": as_json(view) if view is not None else None,
        "description": found.description,
        "edges": _edges(found, views),
        "history": history(yard.tasks.log(found.id), found.id)[-_MOST_CHANGES:],
        "figures": figures_json(together(jobs, now_ms())),
        "jobs": [job.id for job in jobs],
    }


def _edges(found: Task, views: dict[str, TaskView]) -> dict[str, object]:
    def ends(ids: tuple[str, ...]) -> list[dict[str, object]]:
        return [{name: getattr(views[one], name) for name in _EDGE} for one in ids if one in views]

    return {"blocked_by": ends(found.blocked_by), "blocks": ends(found.blocks)}


async def job(site: Site, given: Given, request: Request) -> Response:
    """One job, and what it took with all that were started inside it. Its end counts as seen."""
    return data(await site.threads.look(partial(_job, site, given.text("id"))))


def _job(site: Site, job_id: str) -> dict[str, object]:
    found = site.yard.jobs.get(job_id)
    site.live.see(job_id)
    lines = {job_id: last_line(site.yard.home, job_id)}
    [shown] = job_views([found], now=now_ms(), last_lines=lines, seen=frozenset({job_id}))
    total = up_the_tree(with_all_inside(site.yard.home, [found]), now_ms())[found.id]
    return {
        "view": {**as_json(shown), "total": as_json(total)},
        "record": job_json(found),
        "figures": figures_json(total),
    }


def figures_json(figures: Figures) -> dict[str, object]:
    """What something took, in numbers and in words."""
    return {**figures.to_json(), "words": figures.in_words()}
