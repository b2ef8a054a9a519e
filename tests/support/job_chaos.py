"""
Jobs under attack: a keeper's life in a process of the test's own, those who look at jobs all the time, and what must be
true of every job when the dust has settled.
"""

from __future__ import annotations

import json
import os
import random
import signal
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from support.killing import Prepare
from support.racing import fork
from taskyard.core.system import stat_fields
from taskyard.jobs.events import Events
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.model import Job
from taskyard.jobs.start import request_file
from taskyard.jobs.supervisor import server


def a_keepers_life(jobs: Jobs, spec: Shell, *, backgrounded: bool = True) -> tuple[str, Prepare]:
    """The id of a job to be, and a keeper's whole life for it, from the request to the last call."""
    request = jobs.request(spec, backgrounded=backgrounded)

    def prepare() -> Callable[[], object]:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)  # where keepers say that they are there
        wanted = request_file(request)
        return lambda: server._supervise(wanted, answer=1)

    return str(request["id"]), prepare


def started_by_one_who_dies(jobs: Jobs, spec: Shell) -> Job:
    """A job whose starter, a program with a server of keepers, was killed right after."""
    hear, tell = os.pipe()
    pid = fork()
    if not pid:
        os.write(tell, Jobs(jobs.home).start(spec).id.encode())
        os.kill(os.getpid(), signal.SIGKILL)
    os.close(tell)
    os.waitpid(pid, 0)
    with os.fdopen(hear) as pipe:
        return jobs.get(pipe.read())


class Crowd:
    """Processes that do the same again and again, until they are killed at the end of the block; none may fail."""

    def __init__(self, count: int, work: Callable[[], object], faults: Path) -> None:
        faults.mkdir(exist_ok=True)
        self._work = work
        self._faults = faults
        self.pids: list[int] = []
        self.killed = 0
        for _ in range(count):
            self._add()

    def kill_one(self, chance: random.Random) -> None:
        """Kill one of them, and let another take its place."""
        self._kill(chance.choice(self.pids))
        self.killed += 1
        self._add()

    def _add(self) -> None:
        pid = fork()
        if pid:
            self.pids.append(pid)
            return
        try:
            while True:
                self._work()
        except BaseException:
            (self._faults / str(os.getpid())).write_text(traceback.format_exc(), encoding="utf-8")
            while True:
                signal.pause()  # so that whoever kills us kills nobody else
        finally:
            os._exit(1)

    def _kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        self.pids.remove(pid)

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, *_: object) -> None:
        while self.pids:
            self._kill(self.pids[0])
        told = "\n".join(path.read_text(encoding="utf-8") for path in self._faults.iterdir())
        assert not told, told


def looking_around(jobs: Jobs) -> Callable[[], object]:
    """Looks in every way there is; whoever finds a job without a keeper closes its books."""

    def look() -> None:
        jobs.list()
        for job in jobs.list(ended=True):
            jobs.wait_all([job.id], timeout=0)
            jobs.get(job.id)

    return look


def notices_of_ends(home: str) -> Mapping[str, list[str]]:
    """The ids of all notices of ends, by job, wherever they lie."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in (*Path(home, "outbox").rglob("*"), *Path(home, "jobs").glob("*/notice")):
        if path.is_file():
            news = json.loads(path.read_bytes())["news"]
            if news and news.get("status"):
                found[news["taskId"]].append(news["id"])
    return found


def faults_of_ends(jobs: Jobs, started: Collection[str], *, silent: bool = False) -> list[str]:
    """What is wrong, in words, after everybody had a last look: each job over, told once, and out of the way."""
    living = [job.id for job in jobs.list()]
    found = [f"{job_id} still lives" for job_id in living if job_id in started]
    told = notices_of_ends(jobs.home)
    events = Counter((event.task_id, event.subtype) for event in Events(jobs.home))
    for job_id in started:
        job, folder = jobs.get(job_id), JobPaths(jobs.home, job_id)
        if job.end is None:
            found.append(f"{job_id} has no end: {job}")
        if len(told.get(job_id, ())) != (0 if silent else 1):
            found.append(f"{job_id} has the notices {told.get(job_id)}")
        for subtype in ("task_started", "task_notification"):
            if events[job_id, subtype] != 1:
                found.append(f"{job_id} has {events[job_id, subtype]} events {subtype}")
        if os.path.lexists(folder.notice):
            found.append(f"the notice of {job_id} has not left")
        if os.path.lexists(folder.living):
            found.append(f"{job_id} is among the living")
    return found


def orphans(home: str) -> dict[int, str]:
    """Living processes of jobs of this home, by the marks they were born with; keepers have none."""
    found: dict[int, str] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            marks = Path(f"/proc/{name}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        job = [mark[13:].decode() for mark in marks if mark.startswith(b"TASKYARD_JOB=")]
        fields = stat_fields(name)
        if job and f"TASKYARD_HOME={home}".encode() in marks and fields and fields[0] not in ("Z", "X"):
            found[int(name)] = job[0]
    return found


def children_of(pid: int) -> list[int]:
    """The processes whose parent this one is."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()]
    except OSError:
        return []


def kill(pid: int | None) -> bool:
    """Kill a process, if it is there; whether it was."""
    try:
        if pid:
            os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return bool(pid)


def supervisors(home: str) -> dict[int, str]:
    """Living keepers of jobs of this home, by the names they have in `ps`."""
    known = {f"taskyard:{name}"[:15]: name for name in os.listdir(f"{home}/jobs")}
    found: dict[int, str] = {}
    for name in os.listdir("/proc"):
        try:
            called = Path(f"/proc/{name}/comm").read_text(encoding="utf-8").strip() if name.isdigit() else ""
        except OSError:
            continue
        fields = stat_fields(name) if called in known else None
        if fields is not None and fields[0] not in ("Z", "X"):
            found[int(name)] = known[called]
    return found
