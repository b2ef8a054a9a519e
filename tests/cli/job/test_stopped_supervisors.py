"""A supervisor that a signal has stopped: it is reported, and every request to its job resumes it."""

from __future__ import annotations

import os
import signal
import time

import pytest

from support.cli import taskyard
from support.job_cli import ended, is_running, job, started
from support.wait import until
from taskyard import config
from taskyard.core.system import stat_fields
from taskyard.jobs.job_dir import JobPaths, supervisor_pid


def _state(pid: int) -> str:
    return (stat_fields(str(pid)) or ["gone"])[0]


def _stopped_supervisor(*words: str) -> tuple[str, int]:
    job_id = started(*words)
    until(lambda: is_running(job_id))
    supervisor = supervisor_pid(JobPaths(config.home(), job_id))
    assert supervisor
    os.kill(supervisor, signal.SIGSTOP)
    until(lambda: _state(supervisor) == "T")
    return job_id, supervisor


@pytest.mark.req("B-09")
def test_stop_resumes_a_stopped_supervisor_and_ends_its_job() -> None:
    job_id, _ = _stopped_supervisor("--", "sleep", "60")
    began = time.monotonic()

    stopped = taskyard("stop", job_id, "--json").data

    assert (stopped["outcome"], stopped["proof"]) == ("stopped", "proved")
    assert time.monotonic() - began < 3


@pytest.mark.req("B-14")
def test_every_other_request_resumes_it_too() -> None:
    job_id, supervisor = _stopped_supervisor("--", "sleep", "60")

    assert taskyard("pause", job_id).code == 0

    assert job(job_id)["paused"] and _state(supervisor) != "T"


def test_ps_and_wait_say_that_no_limit_is_enforced() -> None:
    job_id, supervisor = _stopped_supervisor("--", "sleep", "60")
    said = f"supervisor (process {supervisor}) is stopped by a signal"

    assert said in taskyard("ps").out
    assert job(job_id)["disconnected"]
    waited = taskyard("wait", job_id, "--timeout", "0")
    assert waited.code == 124 and said in waited.out
    assert f"The supervisor of {job_id} (process {supervisor}) is stopped" in waited.err


@pytest.mark.req("B-08")
def test_the_doctor_names_it_and_resumes_it_so_that_a_lapsed_time_limit_ends_the_job() -> None:
    job_id, supervisor = _stopped_supervisor("--timeout", "0.5s", "--grace", "0.2s", "--", "sleep", "60")
    found = [each for each in taskyard("doctor", "--json").data["findings"] if each["name"] == "stopped-supervisor"]
    assert [each["file"] for each in found] == [f"{config.home()}/jobs/{job_id}"]
    assert str(supervisor) in found[0]["why"]

    repaired = taskyard("doctor", "--fix", "--json").data

    assert [each["name"] for each in repaired["repairs"]] == ["stopped-supervisor"]
    over = ended(job_id)
    assert (over["cause"], over["proof"]) == ("timeout", "proved")
