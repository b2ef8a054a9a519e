"""The rows about background jobs: what a keeper costs, against the bare system call or a plain file."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.folders import scratch
from bench.processes import Failed
from bench.rounds import Sample
from bench.task_list import Ground
from taskyard.jobs.job_dir import JobPaths, supervisor_pid
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.start import check_reply, read_reply

AT_ONCE = 200
GIGABYTE = 1_000_000_000
CAP = 100_000_000
KEEPERS = 100

#: What somebody does who has no notice: look at the clock ten times a second.
_POLL = 0.1


def starts_ours(ground: Ground) -> Sample:
    """Many short jobs at once, from the first request to the last end on disk."""
    count = ground.size(AT_ONCE, 20)
    with scratch(ground.folder) as home:
        jobs = Jobs(home)
        jobs.run(Shell(["true"]))  # so that the server of keepers is there
        began = time.monotonic()
        requests = [jobs.request(Shell(["true"])) for _ in range(count)]
        for answer in [jobs.ask(request) for request in requests]:
            check_reply(read_reply(answer))
        ended = jobs.wait_all([str(request["id"]) for request in requests], timeout=60)
        took = time.monotonic() - began
        jobs.close()
        faults = () if all(job.end and job.end.exit_code == 0 for job in ended) else ("a job did not end well",)
    return Sample(count / took, faults=faults)


def starts_bare(ground: Ground) -> Sample:
    """The same command by posix_spawn and wait."""
    count = ground.size(AT_ONCE, 20)
    began = time.monotonic()
    children = [os.posix_spawn("/bin/true", ["true"], os.environ) for _ in range(count)]
    for child in children:
        os.waitpid(child, 0)
    return Sample(count / (time.monotonic() - began))


def notice_ours(ground: Ground) -> Sample:
    """From a command's last act to the waiter's hands: it writes the time, and we read ours."""
    return _notices(ground, lambda jobs, job_id: jobs.wait(job_id, timeout=30))


def notice_polled(ground: Ground) -> Sample:
    """The same, by somebody who looks ten times a second."""

    def polled(jobs: Jobs, job_id: str) -> None:
        while not os.path.exists(JobPaths(jobs.home, job_id).end):
            time.sleep(_POLL)

    return _notices(ground, polled)


def _notices(ground: Ground, wait: Callable[[Jobs, str], object]) -> Sample:
    with scratch(ground.folder) as home:
        jobs = Jobs(home)
        late: list[float] = []
        for number in range(ground.size(15, 3)):
            pause = 0.15 + 0.0137 * (number % 7)  # not in step with anybody's clock
            script = f"import os, time; time.sleep({pause}); os.write(1, b'%.6f' % time.monotonic()); os._exit(0)"
            job = jobs.start(Shell([sys.executable, "-I", "-S", "-c", script]))
            wait(jobs, job.id)
            now = time.monotonic()
            late.append(now - float(Path(job.output_file).read_text(encoding="utf-8")))
        jobs.close()
    return Sample(statistics.median(late) * 1000)


def output_ours(ground: Ground, *, cap: int | None = None) -> Sample:
    """A gigabyte into a job's output."""
    size = ground.size(GIGABYTE, 20_000_000)
    with scratch(ground.folder) as home:
        jobs = Jobs(home)
        jobs.run(Shell(["true"]))
        _touch_memory(home, size)
        began = time.monotonic()
        job = jobs.run(Shell(_writer(size), output_cap=cap or 4 * size), timeout=120)
        took = time.monotonic() - began
        jobs.close()
        if job.end is None or job.end.size != size:
            raise Failed(f"{job.end} after {size:,} bytes")
    return Sample(size / took / 1e6)


def output_bare(ground: Ground) -> Sample:
    """The same command into a plain file."""
    size = ground.size(GIGABYTE, 20_000_000)
    with scratch(ground.folder) as folder:
        _touch_memory(folder, size)
        began = time.monotonic()
        target = os.open(f"{folder}/out", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        argv = ["bash", "-c", _writer(size)]
        child = os.posix_spawn("/bin/bash", argv, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, target, 1)])
        os.waitpid(child, 0)
        took = time.monotonic() - began
        os.close(target)
    return Sample(size / took / 1e6)


def _touch_memory(folder: str, size: int) -> None:
    """Have the machine find that much memory now: a virtual one asks its host, which takes longer than writing."""
    path = os.path.join(folder, "memory")
    block = b"x" * 1_000_000
    with open(path, "wb", buffering=0) as file:
        for _ in range(size // len(block)):
            file.write(block)
    os.unlink(path)


def _writer(size: int) -> str:
    return f"head -c {size} /dev/zero | tr '\\0' x"


def idle_ours(ground: Ground) -> Sample:
    """Processor time of a hundred running jobs' keepers and a waiter, in percent of one core."""
    seconds = ground.size(10, 1)
    with scratch(ground.folder) as home:
        jobs = Jobs(home)
        started = [jobs.start(Shell(["sleep", "120"])) for _ in range(ground.size(KEEPERS, 10))]
        supervisors = [pid for job in started if (pid := supervisor_pid(JobPaths(home, job.id)))]
        time.sleep(1.0)  # what starting left to do is not idling
        before = sum(map(_processor_time, supervisors)) + time.process_time()
        jobs.wait(started[0].id, timeout=seconds)
        used = sum(map(_processor_time, supervisors)) + time.process_time() - before
        jobs.stop(*[job.id for job in started], grace=0.1)
        jobs.close()
    return Sample(100 * used / seconds)


def memory_ours(ground: Ground, *, alone: bool) -> Sample:
    """The proportional share of memory of a keeper, in MB: one of a hundred from one server, or one on its own."""
    with scratch(ground.folder) as home:
        jobs = Jobs(home, alone=alone)
        started = [jobs.start(Shell(["sleep", "120"])) for _ in range(1 if alone else ground.size(KEEPERS, 10))]
        time.sleep(0.5)
        sizes = [_memory(pid) for job in started if (pid := supervisor_pid(JobPaths(home, job.id)))]
        jobs.stop(*[job.id for job in started], grace=0.1)
        jobs.close()
    return Sample(statistics.mean(sizes))


def _processor_time(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> float:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    return int(text.split("Pss:")[1].split()[0]) / 1000


def at_most(limit: float) -> Callable[[], Sample]:
    """A yardstick that is a number: what the other side must stay below."""
    return lambda: Sample(limit)
