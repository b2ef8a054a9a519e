"""Numbers for monitoring, as a strict reader of the format reads them."""

from __future__ import annotations

import re

import anyio.to_thread
import pytest

from support.web import Web, with_web
from support.yards import write_task
from taskyard.config import tasks_dir
from taskyard.jobs.kinds.shell import Shell
from taskyard.ui.web.metrics import BUCKETS, MetricFamily, render_metrics

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
_SAMPLE = re.compile(rf"({_NAME})(?:\{{(.*)\}})? ([0-9.e+-]+|\+Inf|NaN)")

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def parsed(page: str) -> Samples:
    """Every sample; anything that the format does not allow fails."""
    assert page.endswith("\n")
    found: Samples = {}
    types: dict[str, str] = {}
    family = ""
    for line in page[:-1].split("\n"):
        if line.startswith("# HELP "):
            family = line.split(" ")[2]
            assert family not in types, "a family comes once, all of it together"
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == family
            assert kind in ("counter", "gauge", "histogram")
            types[name] = kind
        else:
            match = _SAMPLE.fullmatch(line)
            assert match is not None, line
            base = re.sub("_(bucket|sum|count)$", "", match[1]) if types[family] == "histogram" else match[1]
            assert base == family, line
            labels = match[2] or ""
            pairs = _LABEL.findall(labels)
            assert "".join(f'{name}="{value}",' for name, value in pairs).rstrip(",") == labels, line
            key = (match[1], tuple(sorted(pairs)))
            assert key not in found, "a sample comes once"
            found[key] = float(match[3])
    return found


def value(found: Samples, name: str, **labels: str) -> float | None:
    return found.get((name, tuple(sorted(labels.items()))))


@pytest.mark.req("U-04")
def test_tasks_jobs_streams_and_requests_are_counted() -> None:
    async def body(web: Web) -> None:
        from pathlib import Path

        write_task(Path(tasks_dir()) / "other", "1", status="completed")
        web.yard.tasks.create("First")
        web.yard.tasks.create("Second", blocked_by=["1"])
        await anyio.to_thread.run_sync(lambda: web.yard.jobs.run(Shell("exit 1"), timeout=30))
        await web.get("/api/tasks/99.json")
        async with web.listen("/api/stream") as stream:
            await stream.next("snapshot")
            got = await web.get("/metrics")
        assert got.headers["content-type"].startswith("text/plain; version=0.0.4")
        found = parsed(got.body.decode())
        assert value(found, "taskyard_tasks", list="plan", state="ready") == 1
        assert value(found, "taskyard_tasks", list="plan", state="blocked") == 1
        assert value(found, "taskyard_tasks", list="other", state="done") == 1
        assert value(found, "taskyard_jobs", kind="shell", state="failed") == 1
        assert value(found, "taskyard_web_streams") == 1
        assert value(found, "taskyard_web_requests_total", route="/api/tasks/{id}.json", status="404") == 1
        assert value(found, "taskyard_web_request_seconds_count", route="/api/tasks/{id}.json") == 1
        again = parsed((await web.get("/metrics")).body.decode())
        assert value(again, "taskyard_web_streams") == 0

    with_web(body)


def test_a_histogram_counts_up_to_all() -> None:
    async def body(web: Web) -> None:
        for seconds in (0.001, 0.01, 99.0):
            web.site.metrics.note("/x", 200, seconds)
        found = parsed(render_metrics(web.site.metrics.families()))
        counts = [value(found, "taskyard_web_request_seconds_bucket", route="/x", le=str(each)) for each in BUCKETS]
        assert counts == [1, 2, 2, 2, 2]
        assert value(found, "taskyard_web_request_seconds_bucket", route="/x", le="+Inf") == 3

    with_web(body)


def test_no_label_can_break_out() -> None:
    evil = 'a"} 1\n# HELP x \\'
    found = parsed(render_metrics([MetricFamily("x", "gauge", "X.", [("", {"list": evil}, 1.5)])]))
    assert list(found.values()) == [1.5]
