"""`taskyard demo`: a team does twelve tasks once and in order; a check fails, a job asks, one dies; nothing is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from support.wait import until

COMMAND = [sys.executable, "-m", "taskyard", "demo"]


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


def nothing_is_left(scratch: Path, outside: Path) -> None:
    until(lambda: processes(scratch) == [], what="no process")  # servers of keepers go when they see that nobody asks
    assert os.listdir(scratch) == []
    assert not (outside / "taskyard").exists()
    assert not (outside / ".claude").exists()


@pytest.mark.req("M-04", "L-21", "B-10")
def test_a_team_does_every_task_once_and_in_order_whatever_comes_between(scratch: Path, outside: Path) -> None:
    done = subprocess.run([*COMMAND, "--json"], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)

    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)["data"]
    assert [task["status"] for task in found["tasks"]] == ["completed"] * 12
    assert found["faults"] == []
    assert found["seconds"] < 60
    ends = Counter(job["status"] for job in found["members"])
    assert ends == {"completed": 3, "failed": 1}
    (dead,) = [job for job in found["members"] if job["status"] == "failed"]
    assert (dead["signal"], dead["cause"], dead["proof"]) == (signal.SIGKILL, "signal", "proved")
    assert found["refused"] == ["4"]
    assert found["answered"] == 1
    jobs = Counter((job["description"], job["status"]) for job in found["jobs"])
    assert jobs == {
        ("compile the sources", "completed"): 1,
        ("run every test", "completed"): 1,
        ("build the archive", "completed"): 1,
        ("measure the speed", "completed"): 1,
        ("measure the speed", "killed"): 1,
    }
    nothing_is_left(scratch, outside)


def test_it_tells_line_by_line_and_sums_up(scratch: Path, outside: Path) -> None:
    done = subprocess.run(COMMAND, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)

    assert done.returncode == 0
    assert "The check failed" in done.stdout
    assert 'Background command "build the archive" completed' in done.stdout
    assert "killed by SIGKILL" in done.stdout
    assert "comes back to the pool" in done.stdout
    assert "12 of 12 tasks done" in done.stdout
    assert "\x1b" not in done.stdout
    nothing_is_left(scratch, outside)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_whoever_interrupts_it_finds_nothing_left(scratch: Path, outside: Path, number: int, code: int) -> None:
    process = _with_an_agent_at_work(scratch)

    process.send_signal(number)

    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (code, "")
    nothing_is_left(scratch, outside)


def test_the_team_goes_when_the_demo_is_killed(scratch: Path) -> None:
    process = _with_an_agent_at_work(scratch)

    process.kill()
    process.communicate(timeout=10)

    until(lambda: processes(scratch) == [], timeout=30, what="no process")


def _with_an_agent_at_work(scratch: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    until(lambda: processes(scratch, b"taskyard.cli.demo_agent"), timeout=30, what="an agent at work")
    return process


def test_without_git_it_says_what_it_needs(scratch: Path, outside: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()

    done = subprocess.run(
        COMMAND, capture_output=True, text=True, timeout=30, env={**os.environ, "PATH": str(empty)}, check=False
    )

    assert done.returncode == 2
    assert "git" in done.stderr
    nothing_is_left(scratch, outside)
