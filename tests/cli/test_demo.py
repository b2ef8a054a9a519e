"""`taskyard demo`: twelve tasks done once and in order by jobs, one that fails, one worker killed, nothing left."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from support.wait import until

COMMAND = [sys.executable, "-m", "taskyard", "demo", "--speed", "5"]

#: On a terminal: home, clear to the end, and the like.
ESCAPE = "\x1b["


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the demo's temporary folders come to be."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def processes(scratch: Path, word: bytes = b"") -> list[int]:
    """Living processes of a demo in `scratch`, with this in their command line: workers, jobs, their keepers."""
    found: list[int] = []
    for name in os.listdir("/proc"):
        try:
            words = Path("/proc", name, "cmdline").read_bytes() if name.isdigit() else b""
            environment = Path("/proc", name, "environ").read_bytes() if words and word in words else b""
        except OSError:
            continue
        if os.fsencode(scratch / "taskyard-demo-") in environment:
            found.append(int(name))
    return found


def workers(scratch: Path) -> list[int]:
    return processes(scratch, b"taskyard.demo.worker")


def nothing_is_left(scratch: Path, outside: Path) -> None:
    until(lambda: processes(scratch) == [], what="no process")  # servers of keepers go when they see that nobody asks
    assert os.listdir(scratch) == []
    assert not (outside / "taskyard").exists()
    assert not (outside / ".claude").exists()


@pytest.mark.req("L-07", "L-08", "B-10")
def test_every_task_is_done_once_in_order_although_a_worker_is_killed(scratch: Path, outside: Path) -> None:
    done = subprocess.run([*COMMAND, "--json"], capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)

    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)["data"]
    assert [task["status"] for task in found["tasks"]] == ["completed"] * 12
    assert found["faults"] == []
    assert found["rescued"] == "7"
    by = {task["id"]: task["done_by"] for task in found["tasks"]}
    assert by["7"] != found["killed"]
    assert found["seconds"] < 20
    jobs = Counter(job["status"] for job in found["jobs"])
    assert jobs == {"completed": 12, "failed": 1, "killed": 1}
    (ended,) = [job for job in found["jobs"] if job["status"] == "killed"]
    assert (ended["agent"], ended["stopped_by"], ended["proof"]) == (found["killed"], "its starter's end", "proved")
    nothing_is_left(scratch, outside)


def test_without_a_terminal_it_tells_line_by_line_and_sums_up(scratch: Path, outside: Path) -> None:
    done = subprocess.run(COMMAND, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)

    assert done.returncode == 0
    assert ESCAPE not in done.stdout
    lines = done.stdout.splitlines()
    assert sum(" completes #" in line for line in lines) == 12
    killed = next(line for line in lines if "kill -9" in line)
    assert "with #7 in hand" in killed
    assert any("#7 Run the integration tests comes back to the pool" in line for line in lines)
    assert any(line.startswith("12 of 12 tasks done in ") for line in lines)
    assert any('is told, and tries again: Background command "Measure the speed" failed' in line for line in lines)
    assert any(line.startswith("14 background jobs: 12 completed, 1 failed") for line in lines)
    assert any(line.startswith("Waits for you, since ") for line in lines)
    assert lines[-1].startswith("By the event log: each was completed exactly once")
    nothing_is_left(scratch, outside)


def test_on_a_terminal_the_table_redraws(scratch: Path, outside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = pty.openpty()
    os.set_blocking(ours, True)
    import fcntl
    import struct
    import termios

    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    process = subprocess.Popen(COMMAND, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    shown = b""
    while piece := read(ours):
        shown += piece
    os.close(ours)

    assert process.wait(timeout=30) == 0
    assert f"{ESCAPE}J".encode() in shown
    assert "dies with #7 in hand" in shown.decode()
    assert "waiting for the test database" in shown.decode()  # what a job printed
    nothing_is_left(scratch, outside)


def read(fd: int) -> bytes:
    try:
        return os.read(fd, 65536)
    except OSError:
        return b""  # how a terminal says that nobody is left on the other side


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_whoever_interrupts_it_finds_nothing_left(scratch: Path, outside: Path, number: int, code: int) -> None:
    process = subprocess.Popen(
        [*COMMAND[:-1], "0.5"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    until(lambda: len(workers(scratch)) == 4, what="four workers")

    process.send_signal(number)

    _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (code, "")
    nothing_is_left(scratch, outside)


def test_workers_go_when_the_demo_is_killed(scratch: Path) -> None:
    process = subprocess.Popen([*COMMAND[:-1], "0.5"], stdout=subprocess.DEVNULL, start_new_session=True)
    until(lambda: len(workers(scratch)) == 4, what="four workers")

    process.kill()
    process.wait(timeout=10)

    until(lambda: processes(scratch) == [], what="no process")


@pytest.mark.parametrize("speed", ["0", "fast", "nan", "21"])
def test_a_speed_that_makes_no_sense_is_refused(speed: str) -> None:
    from taskyard.cli.main import main

    assert main(["demo", "--speed", speed]) == 2
