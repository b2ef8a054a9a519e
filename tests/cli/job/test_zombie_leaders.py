"""A process whose main thread has exited is a zombie by its state, and runs on: every command treats it as alive."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from support.cli import taskyard
from support.headless import headless, size
from support.job_cli import ended, job, started
from support.jobs import kill_keeper
from support.wait import until
from taskyard import config
from taskyard.jobs.jobs import Jobs


def _is_zombie_leader(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"


def _grows(written: Path) -> None:
    before = size(written)
    until(lambda: size(written) > before, what=f"{written} grows")


def _is_still(written: Path) -> bool:
    """Whether nothing is written for as long as forty writes take."""
    before = size(written)
    time.sleep(0.2)
    return size(written) == before


@pytest.mark.req("B-09")
@pytest.mark.parametrize("stubborn", [False, True])
def test_stop_ends_a_program_whose_main_thread_has_exited(tmp_path: Path, stubborn: bool) -> None:
    written = tmp_path / "written"
    job_id = started("--grace", "0.2s", "--", f"exec {headless(written, stubborn=stubborn)}")
    _grows(written)
    until(lambda: _is_zombie_leader(job(job_id)["pid"]))

    stopped = taskyard("stop", job_id, "--json").data

    assert (stopped["outcome"], stopped["proof"], stopped["survivors"]) == ("stopped", "proved", [])
    assert _is_still(written)


@pytest.mark.req("B-09")
def test_stop_ends_such_a_program_also_where_it_left_the_session(tmp_path: Path) -> None:
    written = tmp_path / "written"
    job_id = started("--grace", "0.2s", "--", f"setsid {headless(written, stubborn=True)} & exec sleep 60")
    _grows(written)

    stopped = taskyard("stop", job_id, "--json").data

    assert (stopped["outcome"], stopped["proof"]) == ("stopped", "proved")
    assert _is_still(written)


@pytest.mark.req("B-08")
def test_a_leftover_whose_main_thread_has_exited_is_counted_and_killed_at_the_natural_end(tmp_path: Path) -> None:
    written = tmp_path / "written"
    wait_for = f"while [ ! -s {written} ]; do sleep 0.01; done; sleep 0.1"
    job_id = started("--grace", "0.2s", "--", f"setsid {headless(written, stubborn=True)} & {wait_for}; exit 0")

    over = ended(job_id)

    assert (over["exit_code"], over["proof"], over["leftovers"]) == (0, "proved", 1)
    assert _is_still(written)


@pytest.mark.req("B-08")
def test_a_time_limit_ends_a_program_whose_main_thread_has_exited(tmp_path: Path) -> None:
    written = tmp_path / "written"
    job_id = started(
        "--timeout", "1s", "--grace", "0.2s", "--", f"setsid {headless(written, stubborn=True)} & exec sleep 60"
    )

    over = ended(job_id)

    assert (over["cause"], over["proof"]) == ("timeout", "proved")
    assert size(written) and _is_still(written)


@pytest.mark.req("B-14")
def test_pause_and_resume_hold_a_program_whose_main_thread_has_exited(tmp_path: Path) -> None:
    written = tmp_path / "written"
    job_id = started("--", f"exec {headless(written)}")
    _grows(written)
    until(lambda: _is_zombie_leader(job(job_id)["pid"]))

    assert taskyard("pause", job_id).code == 0
    assert _is_still(written)
    assert taskyard("resume", job_id).code == 0

    _grows(written)


@pytest.mark.req("B-08")
def test_a_killed_supervisor_leaves_no_such_program_behind(tmp_path: Path) -> None:
    written = tmp_path / "written"
    job_id = started("--", f"setsid {headless(written, stubborn=True)} & exec sleep 60")
    _grows(written)
    jobs = Jobs(config.home())
    kill_keeper(jobs, jobs.get(job_id))

    over = ended(job_id)
    assert (over["cause"], over["proof"]) == ("lost", "best_effort")
    assert _is_still(written)
