"""Snapshots as JSON, and what became of one since another."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from taskyard.jobs.model import Job, JobStatus
from taskyard.tasks.model import Task, TaskStatus
from taskyard.ui.snapshot import Snapshot, ViewInput, build_snapshot, snapshot_diff, snapshot_json

NOW = 10_000_000


def made(tasks: dict[str, str], jobs: dict[str, bool]) -> Snapshot:
    return build_snapshot(
        ViewInput(
            "release",
            tuple(Task(one, f"Task {one}", status=TaskStatus(status), owner="ada") for one, status in tasks.items()),
            jobs=tuple(
                Job(f"b0000000{one}", "local_bash", JobStatus.RUNNING, "x", start_time=1, needs_input=asks)
                for one, asks in jobs.items()
            ),
            now=NOW,
        )
    )


def applied(shown: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """As a page does it."""
    after = {**shown, **{key: value for key, value in change.items() if key not in ("tasks", "jobs", "people")}}
    for key in ("tasks", "jobs", "people"):
        rows = {**shown[key], **change.get(key, {})}
        after[key] = {one: row for one, row in rows.items() if row is not None}
    return after


def plain(value: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(value))
    return found


statuses = st.dictionaries(st.sampled_from("12345"), st.sampled_from([status.value for status in TaskStatus]))
running = st.dictionaries(st.sampled_from("123"), st.booleans())


@given(statuses, running, statuses, running)
def test_a_screen_that_applies_each_difference_shows_the_whole(
    before: dict[str, str], jobs: dict[str, bool], after: dict[str, str], then: dict[str, bool]
) -> None:
    first, second = made(before, jobs), made(after, then)

    assert applied(plain(snapshot_json(first)), plain(snapshot_diff(first, second))) == plain(snapshot_json(second))


def test_what_did_not_change_is_not_sent() -> None:
    first = made({"1": "pending", "2": "pending"}, {"1": False})
    second = made({"1": "pending", "2": "in_progress"}, {"1": False})
    change = snapshot_diff(first, second)

    assert snapshot_diff(first, first) == {}
    assert set(change) == {"tasks", "task_order", "counts", "headline", "people", "people_order"}
    assert list(change["tasks"]) == ["2"]  # type: ignore[call-overload]
