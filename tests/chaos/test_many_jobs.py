"""Ten thousand short jobs from one program: nothing but records stays of them, and looking costs what it did before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from support.cli import process
from support.ended_jobs import end_job
from support.job_chaos import orphans
from support.killing import calls_of
from support.scale import scale
from taskyard.jobs.job_dir import live_folder
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.notices import Outbox

#: How many are on their way at once.
AT_ONCE = 100

#: What memory may differ by, in kB: a page here and there.
A_LITTLE = 1024

#: Starts jobs until none is left, and says after each bunch what it and its server of keepers have.
STARTER = """
import gc, json, os, sys
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.start import read_reply as answered; from taskyard.jobs.start import check_reply as understood

def has(pid):
    fields = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status"))
    return {"memory": int(fields["VmRSS"].split()[0]), "files": len(os.listdir(f"/proc/{pid}/fd"))}

home, count, bunch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
jobs = Jobs(home)
for number in range(0, count, bunch):
    requests = [jobs.request(Shell(["true"])) for _ in range(bunch)]
    for answer in [jobs.ask(request) for request in requests]:
        understood(answered(answer))
    ended = jobs.wait_all([str(request["id"]) for request in requests])
    assert all(job.end and job.end.exit_code == 0 for job in ended)
    del ended, requests
    gc.collect()
    server = jobs._supervisor_server._pid
    print(json.dumps([has(os.getpid()), has(server), os.getpid(), server]), flush=True)
sys.stdin.read()
"""


def children_of(*pids: int) -> list[str]:
    """The states of all children of these processes, zombies included."""
    found = []
    for name in os.listdir("/proc"):
        try:
            state, parent = Path(f"/proc/{name}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[:2]
        except (OSError, IndexError):
            continue
        if int(parent) in pids:
            found.append(f"{name} {state}")
    return found


@pytest.mark.req("B-06", "B-07", "B-05")
@pytest.mark.serial  # memory and time are compared
@pytest.mark.timeout(900)
def test_ten_thousand_short_jobs_leave_nothing_but_their_records(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, count = str(memory / "home"), scale(10_000)
    jobs = Jobs(home)
    words = [sys.executable, "-c", STARTER, home, str(count), str(AT_ONCE)]
    began = time.monotonic()
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        said = [json.loads(starter.stdout.readline()) for _ in range(count // AT_ONCE)]
        took = time.monotonic() - began
        own, server = said[-1][2:]
        assert children_of(own, server) == [f"{server} S"]
        assert orphans(home) == {}
        starter.communicate()
    assert starter.returncode == 0

    early, late = said[len(said) // 10][:2], said[-1][:2]
    assert [each["files"] for each in early] == [each["files"] for each in late]
    for before, after in zip(early, late, strict=True):
        assert after["memory"] - before["memory"] < A_LITTLE, (early, late)
    _check_store(jobs, count)
    rates = f"{count / took:,.0f} a second; RSS {early[0]['memory']:,} → {late[0]['memory']:,} kB"
    print(f"{count:,} jobs, {rates}, server {early[1]['memory']:,} → {late[1]['memory']:,} kB")
    _check_looks(jobs, count, monkeypatch)


def _check_store(jobs: Jobs, count: int) -> None:
    """Each job has its five files and a notice, and nothing else is there."""
    folders = [path for path in Path(jobs.home, "jobs").iterdir() if not path.name.startswith(".")]
    assert len(folders) == count
    assert Counter(name for folder in folders for name in os.listdir(folder)) == dict.fromkeys(
        ("job.json", "end.json", "output", "keeper.lock", "control"), count
    )
    assert os.listdir(live_folder(jobs.home)) == []
    assert len(os.listdir(f"{jobs.home}/outbox/me/new")) == count


def _check_looks(jobs: Jobs, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists of the living and looks at one job cost as much as in a store with a single job."""
    small = Jobs(f"{jobs.home}-small")
    for each in (small, jobs):
        each.run(Shell(["true"]))
        each.start(Shell(["sleep", "60"]))
    try:
        times = {}
        assert len(calls_of(lambda: small.list)) == len(calls_of(lambda: jobs.list))
        few, many = (each.list(ended=True)[-1].id for each in (small, jobs))
        assert len(calls_of(lambda: lambda: small.get(few))) == len(calls_of(lambda: lambda: jobs.get(many)))
        for each in (small, jobs):
            monkeypatch.setenv("TASKYARD_HOME", each.home)
            began = time.monotonic()
            assert len(process("ps", "--json").data) == 1
            times[each.home] = time.monotonic() - began
        before, after = times.values()
        print(
            f"`taskyard ps` takes {before * 1000:.0f} ms beside one ended job, {after * 1000:.0f} ms beside {count:,}"
        )
    finally:
        for each in (small, jobs):
            each.stop(*[job.id for job in each.list()], grace=0)
            each.close()


@pytest.mark.req("B-05", "N-03")
@pytest.mark.serial  # it measures time
@pytest.mark.timeout(300)
def test_ten_thousand_notices_are_received_in_reasonable_time(memory: Path) -> None:
    home, count = str(memory), scale(10_000)
    for _ in range(count):
        end_job(home)
    began = time.monotonic()
    with Outbox(home) as outbox:
        got = [notice.id for notice in outbox]
    took = time.monotonic() - began

    assert len(set(got)) == len(got) == count
    assert took / count < 0.005
    print(f"{count:,} notices received in {took:.1f} s")
