"""So many starts a minute: exact over all processes, whoever dies over it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from taskyard.jobs.supervisor.queue import MINUTE, take_start
from taskyard.storage.locks import RangeLock

pytestmark = pytest.mark.req("B-12")


def test_in_any_minute_there_are_no_more_starts_than_may_be(tmp_path: Path) -> None:
    path = str(tmp_path / "starts")
    times: list[int] = []
    for now in range(0, 10 * MINUTE, 700):
        if take_start(path, 7, now=now) == 0:
            times.append(now)

    assert len(times) == 70
    assert all(later - earlier >= MINUTE for earlier, later in zip(times, times[7:], strict=False))


def test_it_says_how_long_it_is_until_there_may_be_another(tmp_path: Path) -> None:
    path = str(tmp_path / "starts")

    assert [take_start(path, 2, now=now) for now in (0, 10_000, 20_000)] == [0, 0, 40.0]
    assert take_start(path, 2, now=MINUTE - 1) == pytest.approx(0.001)
    assert take_start(path, 2, now=MINUTE) == 0
    assert take_start(path, 3, now=MINUTE) == 0  # somebody who may start more


def test_processes_that_race_get_as_many_starts_as_there_are(tmp_path: Path) -> None:
    path = str(tmp_path / "starts")
    script = "import sys; from taskyard.jobs.supervisor.queue import take_start as ask\n"
    script += "print(sum(ask(sys.argv[1], 500, now=1) == 0 for _ in range(200)))"
    racing = [
        subprocess.Popen([sys.executable, "-c", script, path], stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    got = [int(process.communicate(timeout=60)[0]) for process in racing]

    # Whoever finds the lock taken is told to look again soon, and counts as not started.
    assert sum(got) == os.path.getsize(path) // 8 <= 500


def test_what_a_dead_writer_left_half_written_counts_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "starts"
    take_start(str(path), 2, now=1)
    path.write_bytes(path.read_bytes() + b"\x01\x02\x03")

    assert [take_start(str(path), 2, now=2), take_start(str(path), 2, now=3) > 0] == [0, True]


def test_starts_before_the_machine_was_restarted_do_not_count(tmp_path: Path) -> None:
    path = str(tmp_path / "starts")
    take_start(path, 1, now=1_000_000_000)

    assert take_start(path, 1, now=5) == 0


def test_who_finds_the_lock_taken_looks_again_soon(tmp_path: Path) -> None:
    path = str(tmp_path / "starts")
    with RangeLock(path) as lock:
        assert lock.try_take(1 << 62)
        assert 0 < take_start(path, 5, now=1) < 0.1

    assert take_start(path, 5, now=1) == 0


def test_old_entries_take_no_room(tmp_path: Path) -> None:
    path = tmp_path / "starts"
    for now in range(0, 9_000 * MINUTE, MINUTE):
        assert take_start(str(path), 1, now=now) == 0

    found = path.stat()
    assert found.st_size == 9_000 * 8
    assert found.st_blocks * 512 <= 45_000
