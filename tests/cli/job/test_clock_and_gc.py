"""A wall clock that is wrong for one command: automatic collection deletes nothing by it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support.wall_clock import WallClock
from taskyard import config

_DAY = 86_400


def _taskyard(*words: str) -> Any:
    """A command in a process of its own, which has the test's clock; what it answers."""
    done = subprocess.run(
        [sys.executable, "-m", "taskyard", *words], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0 and done.stdout, (words, done.stderr)
    return json.loads(done.stdout)["data"]


def _ran() -> str:
    job_id = str(_taskyard("run", "-d", "--json", "--", "echo done")["id"])
    _taskyard("wait", job_id, "--json")
    notices = [str(each["id"]) for each in _taskyard("notices", "take", "--json")]
    if notices:
        _taskyard("notices", "ack", "--json", *notices)
    return job_id


def _has_output(job_id: str) -> bool:
    return Path(config.home(), "jobs", job_id, "output").exists()


def _age(stamp: Path) -> None:
    """As if the last collection was two hours ago."""
    then = time.time() - 7200
    os.utime(stamp, (then, then))


@pytest.mark.req("O-04")
@pytest.mark.parametrize("with_stamp", [True, False])
def test_a_clock_40_days_ahead_for_one_command_costs_no_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_stamp: bool
) -> None:
    clock = WallClock(tmp_path, monkeypatch)
    before = [_ran(), _ran()]
    stamp = Path(config.home(), "jobs", ".gc-stamp")
    if not with_stamp:
        stamp.unlink()

    clock.jump(40 * _DAY)
    ahead = _ran()
    stamp.touch()
    clock.jump(-40 * _DAY)
    after = _ran()

    assert all(map(_has_output, [*before, ahead, after]))


@pytest.mark.req("O-04")
def test_a_clock_that_runs_on_evenly_is_trusted_and_old_output_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = WallClock(tmp_path, monkeypatch)
    clock.jump(-40 * _DAY)
    old = _ran()
    clock.jump(40 * _DAY)
    stamp = Path(config.home(), "jobs", ".gc-stamp")
    _age(stamp)
    _ran()  # the clock was set since the stamp was written: it is doubted, and nothing goes by age
    assert _has_output(old)
    stamp.unlink()

    _ran()  # the newest job agrees with the clock

    assert not _has_output(old)
