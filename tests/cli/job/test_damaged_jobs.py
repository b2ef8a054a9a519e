"""Jobs whose folders cannot be read: every command says so, none takes them for running, and none hides the others."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from support.cli import taskyard
from support.ended_jobs import end_job, job_folder
from support.job_outputs import ended_by_hand
from taskyard import config
from taskyard.core.system import now_ms, this_host
from taskyard.errors import Damaged
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.jobs import Jobs

pytestmark = pytest.mark.req("B-06")

TORN = b'{"id": "b0000'


def damaged(*, output: bytes = b"") -> JobPaths:
    """A job that nobody keeps, that has no end, and that does not say what it is."""
    folder = job_folder(config.home())
    Path(folder.record).write_bytes(TORN)
    Path(folder.output).write_bytes(output)
    return folder


def nameless() -> JobPaths:
    """A job that is over, and does not say what it was."""
    folder = JobPaths(config.home(), end_job(config.home()))
    Path(folder.record).write_bytes(TORN)
    return folder


def test_ps_shows_the_others_and_warns_of_each() -> None:
    first, second, fine = damaged(), damaged(), end_job(config.home())

    shown, answered = taskyard("ps", "--all"), taskyard("ps", "--all", "--json")

    assert fine in shown.out and [job["id"] for job in answered.data] == [fine]
    warnings = json.loads(answered.out)["warnings"]
    for folder in (first, second):
        assert f"Warning: {folder.record} cannot be read" in shown.err
        assert any(folder.record in warning for warning in warnings)


def test_ps_says_not_that_there_was_never_a_job() -> None:
    damaged()

    ran = taskyard("ps", "--all")

    assert "Warning: " in ran.err and "No job" not in ran.err


def test_python_is_told_too(tmp_path: Path) -> None:
    folder = damaged()
    found: list[str] = []

    assert Jobs(folder.home).list(ended=True, report=lambda error: found.append(type(error).__name__)) == []
    assert found == [Damaged.__name__]


def test_an_age_that_nobody_knows_is_none() -> None:
    folder = nameless()

    assert " ?  (its record cannot be read)" in taskyard("ps", "--all").out
    (data,) = taskyard("ps", "--all", "--json").data
    assert (data["id"], data["started_at"]) == (folder.id, None)


def test_logs_says_that_it_is_damaged_as_wait_does() -> None:
    folder = damaged()

    ran = taskyard("logs", folder.id, "--json")

    assert ran.code == 1 and ran.error["code"] == taskyard("wait", folder.id, "--json").error["code"] == "damaged"
    assert "so far" not in taskyard("logs", folder.id).err


def test_logs_shows_what_there_is_and_warns() -> None:
    folder = damaged(output=b"said\n")

    ran = taskyard("logs", folder.id)

    assert (ran.code, ran.out) == (0, "said\n")
    assert f"Warning: {folder.record} cannot be read" in ran.err


def test_gc_counts_nothing_as_running_that_does_not_run() -> None:
    damaged()
    nameless()
    job_folder(config.home(), host=this_host())  # lost, and nobody has found out yet

    data = taskyard("gc", "--dry-run", "--json").data

    assert (data["running"], data["not_understood"], data["unread"]) == (0, 2, 1)


def test_gc_removes_what_is_old_beside_them() -> None:
    folder = damaged()
    old = ended_by_hand(Path(config.home()), at=now_ms() - 90 * 86_400_000, size=1000)

    ran = taskyard("gc")

    assert "0 running" in ran.out and "1 unreadable" in ran.out
    assert os.path.exists(folder.path) and not os.path.exists(old.path)


def test_the_doctor_names_each_and_changes_nothing() -> None:
    first, second, torn = damaged(), nameless(), JobPaths(config.home(), end_job(config.home()))
    Path(torn.end).write_bytes(TORN)
    lost = job_folder(config.home(), host=this_host())

    ran = taskyard("doctor", "--json")

    assert ran.code == 1
    found = sorted(one["file"] for one in ran.data["findings"] if one["name"] == "damaged-job")
    assert found == sorted([first.record, second.record, torn.end])
    assert not os.path.exists(lost.end)
