"""
kill -9 between any two system calls of a keeper's life, of whoever repairs, and of a receiver.

Three others look at the job all the while, in every way there is. Afterwards it has one end and one notice, or it never
was; a notice is acknowledged once, and comes again only after its receiver died.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.ended_jobs import end_job, finish, finish_halfway, job_folder
from support.job_chaos import (
    Crowd,
    a_keepers_life,
    faults_of_ends,
    looking_around,
    notices_of_ends,
    orphans,
)
from support.killing import Prepare, killed_before
from support.scale import FULL
from support.wait import until
from taskyard.core.system import now_ms
from taskyard.jobs import event_log
from taskyard.jobs.exit_record import read_json
from taskyard.jobs.job_dir import JobPaths, live_folder
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.model import End
from taskyard.jobs.notice import Notice
from taskyard.jobs.notices import Outbox

#: Fewer places to die than this, and the counting itself is broken.
PLAUSIBLE = {"keeper": 60, "repairer": 10, "receiver": 15}

#: An ordinary run dies at every so many places, other ones in each variant; fewer in a whole life, and where all
#: processes are asked for their parents, a call each.
STRIDE = 1 if FULL else 10
LIFE_STRIDE = 1 if FULL else 16
LONG_LIVES = ("leaves somebody behind", "reaches its time limit")

LIVES = {
    "exits": Shell(["true"]),
    "fails twice": Shell(["false"], retries=1, retry_delay=0.001),
    "leaves somebody behind": Shell("sleep 60 & exit 3", grace=0.01),
    "reaches its time limit": Shell(["sleep", "60"], timeout=0.01, grace=0.01),
    "prints too much": Shell("head -c 3000000 /dev/zero | tr '\\0' x", output_cap=1_000_000),
    "has a terminal": Shell(["echo", "hello"], pty=True),
    "is watched": Shell(["true"]),
}


@pytest.mark.req("B-05", "B-08")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", LIVES)
def test_a_keeper_killed_before_any_call_of_its_life_leaves_one_end_and_one_notice(memory: Path, name: str) -> None:
    is_watched = name == "is watched"
    began, deaths, unborn, died = time.monotonic(), 0, 0, True
    number = 2 * list(LIVES).index(name) % LIFE_STRIDE
    stride = LIFE_STRIDE if FULL or name not in LONG_LIVES else 2 * LIFE_STRIDE
    while died:
        jobs = Jobs(str(memory / str(number)))
        job_id, life = a_keepers_life(jobs, LIVES[name], backgrounded=not is_watched)
        with Crowd(3, looking_around(jobs), memory / f"faults-{number}"):
            died = killed_before(number, life)
        born = os.path.lexists(JobPaths(jobs.home, job_id).path)
        assert [job.id for job in jobs.list(ended=True)] == ([job_id] if born else []), f"before call {number}"
        assert faults_of_ends(jobs, [job_id] if born else [], silent=is_watched) == [], f"before call {number}"
        assert orphans(jobs.home) == {}, f"before call {number}"
        deaths, unborn, number = deaths + died, unborn + (not born), number + stride
    assert number > PLAUSIBLE["keeper"]
    print(f"{name}: {deaths} deaths, {unborn} before birth, in {time.monotonic() - began:.1f} s")


def _begun(home: str) -> JobPaths:
    folder = job_folder(home, host="")
    event_log.log_started(folder, {})
    return folder


def _lost(home: str) -> str:
    return _begun(home).id


def _decided(home: str) -> str:
    folder = _begun(home)
    finish_halfway(folder, End("exited", 0, at=now_ms()))
    os.unlink(folder.end)
    return folder.id


def _unsent(home: str) -> str:
    folder = _begun(home)
    finish_halfway(folder, End("exited", 0, at=now_ms()))
    event_log.log_ended(folder, read_json(folder.notice) or {}, is_new=True)
    return folder.id


def _sent(home: str) -> str:
    folder = _begun(home)
    finish(folder, End("exited", 0, at=now_ms()))
    return folder.id


REMAINS = {"lost": _lost, "decided": _decided, "written, not sent": _unsent, "sent": _sent}


@pytest.mark.req("B-05", "B-08")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("remains", REMAINS)
@pytest.mark.parametrize("way", ["list", "look", "notices"])
def test_whoever_repairs_may_be_killed_before_any_call(memory: Path, remains: str, way: str) -> None:
    deaths, number, died = 0, len(remains + way) % STRIDE, True
    while died:
        jobs = Jobs(str(memory / str(number)))
        job_id = REMAINS[remains](jobs.home)
        os.mkdir(live_folder(jobs.home))
        Path(JobPaths(jobs.home, job_id).living).touch()
        died = killed_before(number, _repair(jobs, job_id, way))
        assert faults_of_ends(jobs, [job_id]) == [], f"before call {number}"
        deaths, number = deaths + died, number + STRIDE
    assert number > PLAUSIBLE["repairer"]
    print(f"{remains}, by {way}: {deaths} deaths")


def _repair(jobs: Jobs, job_id: str, way: str) -> Prepare:
    acts: dict[str, Callable[[], object]] = {
        "list": jobs.list,
        "look": lambda: (jobs.get(job_id), jobs.list()),
        "notices": lambda: Outbox(jobs.home, "ada").waiting(),
    }
    return lambda: acts[way]


@pytest.mark.req("B-05", "N-07")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("way", ["take and ack", "held by the clock", "iterate"])
def test_a_receiver_killed_before_any_call_gets_it_again_unless_it_acknowledged(memory: Path, way: str) -> None:
    stride = 1 if FULL else 2
    deaths, again, number, died = 0, 0, 0, True
    while died:
        home = str(memory / str(number))
        job_id = end_job(home, "ada")
        [notice_id] = notices_of_ends(home)[job_id]
        died = killed_before(number, _receive(home, way))
        was = Outbox(home, None).state(notice_id)
        got = _rest(home, held=way == "held by the clock" and was == "delivered")
        where = f"before call {number}, {was}"
        assert [notice.id for notice in got] == ([] if was == "read" else [notice_id]), where
        assert [notice.redelivered for notice in got] == ([] if was == "read" else [was == "delivered"]), where
        assert Outbox(home, None).state(notice_id) == "read", where
        assert Outbox(home, None).ack([notice_id]) == (), where
        assert dict(notices_of_ends(home)) == {job_id: [notice_id]}, where
        deaths, again, number = deaths + died, again + (was == "delivered"), number + stride
    assert number > PLAUSIBLE["receiver"]
    assert again > 0
    print(f"{way}: {deaths} deaths, {again} delivered again")


def _receive(home: str, way: str) -> Prepare:
    def act() -> None:
        with Outbox(home, "ada") as outbox:
            if way == "iterate":
                list(outbox)
            else:
                taken = outbox.take(hold=0.05 if way == "held by the clock" else None)
                outbox.ack([notice.id for notice in taken])

    return lambda: act


def _rest(home: str, *, held: bool) -> list[Notice]:
    """What the next receiver gets, and acknowledges."""
    with Outbox(home, "ada") as outbox:
        if held:
            until(outbox.waiting, what="the time to be up")
        taken = outbox.take()
        assert list(outbox.ack([notice.id for notice in taken])) == [notice.id for notice in taken]
        return taken
