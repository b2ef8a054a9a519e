"""What is not the API's: the page and its files, health, metrics, the API's description and a page that shows it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from taskyard.errors import StoreAway
from taskyard.view.snapshot import Snapshot
from taskyard.view.task_views import Counts
from taskyard.web import metrics as measured
from taskyard.web.answers import JSON, NO_PAGE, dumped
from taskyard.web.metrics import Family
from taskyard.web.site import Site
from taskyard.web.values import Given

PAGE = "index.html"


async def page(site: Site, given: Given, request: Request) -> Response:
    """The page."""
    return _asset(site, PAGE, request)


async def static(site: Site, given: Given, request: Request) -> Response:
    """A file of the page."""
    return _asset(site, str(request.path_params["path"]), request)


def _asset(site: Site, name: str, request: Request) -> Response:
    asset = site.assets.get(name)
    if asset is None:
        return NO_PAGE.answer()
    headers = {"ETag": asset.etag, "Cache-Control": "no-cache"}
    if asset.is_known_as(request.headers.get("if-none-match", "")):
        return Response(status_code=304, headers=headers)
    return Response(asset.body, 200, {**headers, "Content-Type": asset.type})


async def health(site: Site, given: Given, request: Request) -> Response:
    """Whether a server lives here, and whether its database does."""
    headers = {"Cache-Control": "no-store"}
    try:
        await site.threads.look(site.yard.lists.names if site.yard.lists.folder is None else list)
    except StoreAway:  # which database concerns nobody without the token
        return Response(dumped({"status": StoreAway.code}), 503, headers, JSON)
    return Response(dumped({"status": "ok"}), media_type=JSON, headers=headers)


async def metrics(site: Site, given: Given, request: Request) -> Response:
    """What monitoring wants to know."""
    async with site.lists.shown(None) as shown:
        now, _ = shown.channel.now()
    open_now = {name: each.channel.now()[0] for name, each in site.lists.open.items()}
    families = [*site.metrics.families(), *await site.threads.look(partial(_counted, site, now, open_now))]
    return Response(measured.text(families), headers={"Content-Type": measured.TYPE})


def _counted(site: Site, now: Snapshot, open_now: dict[str, Snapshot]) -> list[Family]:
    tasks: list[tuple[str, dict[str, str], float]] = []
    for name in sorted({*site.lists.names(), *open_now}):
        tasks += [("", {"list": name, "state": state}, number) for state, number in _states(site, name, open_now)]
    jobs: dict[tuple[str, str], int] = {}
    for job in now.jobs:
        jobs[job.kind, job.state] = jobs.get((job.kind, job.state), 0) + 1
    return [
        Family("tasks", "gauge", "Tasks on each list, by their state.", tasks),
        Family(
            "jobs",
            "gauge",
            "Jobs that are shown, by their kind and state.",
            [("", {"kind": kind, "state": state}, number) for (kind, state), number in sorted(jobs.items())],
        ),
    ]


def _states(site: Site, name: str, open_now: dict[str, Snapshot]) -> Iterator[tuple[str, int]]:
    found = open_now[name].counts if name in open_now else site.yard.lists.count(name)
    for state in Counts._fields:
        yield state, getattr(found, state)
