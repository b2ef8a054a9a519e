"""Handlers outside the API: the page and its files, health and metrics."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from taskyard.errors import StoreAway
from taskyard.ui.snapshot import Snapshot
from taskyard.ui.tasks import Counts
from taskyard.ui.web import metrics as measured
from taskyard.ui.web.metrics import MetricFamily
from taskyard.ui.web.site import Site
from taskyard.ui.web.values import JSON, NOT_FOUND, Params, encode_json

PAGE = "index.html"


async def page(site: Site, given: Params, request: Request) -> Response:
    """Return the page."""
    return _asset_response(site, PAGE, request)


async def static(site: Site, given: Params, request: Request) -> Response:
    """Return a file of the page."""
    return _asset_response(site, str(request.path_params["path"]), request)


def _asset_response(site: Site, name: str, request: Request) -> Response:
    asset = site.assets.get(name)
    if asset is None:
        return NOT_FOUND.answer()
    headers = {"ETag": asset.etag, "Cache-Control": "no-cache"}
    if asset.matches_etag(request.headers.get("if-none-match", "")):
        return Response(status_code=304, headers=headers)
    return Response(asset.body, 200, {**headers, "Content-Type": asset.type})


async def health(site: Site, given: Params, request: Request) -> Response:
    """Return whether the server works and its database can be reached."""
    headers = {"Cache-Control": "no-store"}
    try:
        await site.threads.look(site.yard.lists.names if site.yard.lists.folder is None else list)
    except StoreAway:  # do not reveal which database: this answer needs no token
        return Response(encode_json({"status": StoreAway.code}), 503, headers, JSON)
    return Response(encode_json({"status": "ok"}), media_type=JSON, headers=headers)


async def metrics(site: Site, given: Params, request: Request) -> Response:
    """Return the metrics."""
    async with site.lists.shown(None) as shown:
        now, _ = shown.channel.now()
    open_now = {name: each.channel.now()[0] for name, each in site.lists.open.items()}
    families = [*site.metrics.families(), *await site.threads.look(partial(_count_families, site, now, open_now))]
    return Response(measured.render_metrics(families), headers={"Content-Type": measured.CONTENT_TYPE})


def _count_families(site: Site, now: Snapshot, open_now: dict[str, Snapshot]) -> list[MetricFamily]:
    tasks: list[tuple[str, dict[str, str], float]] = []
    for name in sorted({*site.lists.names(), *open_now}):
        tasks += [("", {"list": name, "state": state}, number) for state, number in _state_counts(site, name, open_now)]
    jobs: dict[tuple[str, str], int] = {}
    for job in now.jobs:
        jobs[job.kind, job.state] = jobs.get((job.kind, job.state), 0) + 1
    return [
        MetricFamily("tasks", "gauge", "Tasks on each list, by their state.", tasks),
        MetricFamily(
            "jobs",
            "gauge",
            "Jobs that are shown, by their kind and state.",
            [("", {"kind": kind, "state": state}, number) for (kind, state), number in sorted(jobs.items())],
        ),
    ]


def _state_counts(site: Site, name: str, open_now: dict[str, Snapshot]) -> Iterator[tuple[str, int]]:
    found = open_now[name].counts if name in open_now else site.yard.lists.count(name)
    for state in Counts._fields:
        yield state, getattr(found, state)
