"""Real jobs for tests of what jobs print: each with a keeper of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.wait import until
from taskyard.jobs.job_dir import JobPaths, supervisor_pid
from taskyard.jobs.model import End, end_to_json, new_job_id
from taskyard.jobs.start import start_supervisor
from taskyard.jobs.supervisor.child_jobs import write_control

#: A block of every file system we test on.
BLOCK = 4096


def start_job(home: str | Path, script: str, *, cap: int = 100_000_000, silent: bool = True) -> JobPaths:
    """Start `script` in bash as a job; nobody is told of its end unless it is not `silent`."""
    job_id = new_job_id("b")
    start_supervisor(
        {
            "id": job_id,
            "home": str(home),
            "plan": {"argv": ["bash", "-c", script], "cwd": "/", "env": dict(os.environ), "umask": 0o077},
            "record": {
                "id": job_id,
                "type": "local_bash",
                "description": script[:60],
                "command": script,
                "recipient": "me",
                "silent": silent,
            },
            "output_cap": cap,
            "grace": 0.2,
        }
    )
    return JobPaths(str(home), job_id)


def wait_for_end(folder: JobPaths) -> dict[str, object]:
    """What `end.json` says, as soon as its supervisor is gone too."""
    until(lambda: os.path.exists(folder.end), timeout=30, what=f"the end of {folder.id}")
    until(lambda: supervisor_pid(folder) is None, timeout=30, what=f"the end of the keeper of {folder.id}")
    found: dict[str, object] = json.loads(Path(folder.end).read_bytes())
    return found


@contextmanager
def running_job(home: str | Path, script: str, *, cap: int = 100_000_000) -> Iterator[JobPaths]:
    """A job that is stopped when the block is left."""
    folder = start_job(home, script, cap=cap)
    try:
        yield folder
    finally:
        if supervisor_pid(folder) is not None:
            write_control(folder, {"do": "stop", "by": "the test", "grace": 0})
        until(lambda: supervisor_pid(folder) is None, what="the job to end")


def made_by_hand(home: str | Path, *, kind: str = "local_bash", letter: str = "b") -> JobPaths:
    """The folder of a job that nobody keeps, with a record and without output."""
    folder = JobPaths(str(home), new_job_id(letter))
    os.makedirs(folder.path, mode=0o700)
    record = {"id": folder.id, "type": kind, "description": "made by hand", "startTime": 1}
    Path(folder.record).write_text(json.dumps(record), encoding="utf-8")
    Path(folder.lock).touch(mode=0o600)
    return folder


def ended_by_hand(home: str | Path, *, at: int, size: int = 0, **facts: int) -> JobPaths:
    """A job that ended at `at` (epoch ms) with `size` bytes of output and exit code 0, or what `facts` say."""
    folder = made_by_hand(home)
    Path(folder.output).write_bytes(b"x" * size)
    end = End("exited", 0, at=at, size=size)._replace(**facts)  # type: ignore[arg-type]
    Path(folder.end).write_text(json.dumps(end_to_json(end)), encoding="utf-8")
    return folder
