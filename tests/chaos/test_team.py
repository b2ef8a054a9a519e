"""A team whose members are killed -9 one after the other: everything is done once, in order, and nothing is left."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

import taskyard
from support.cli import Ran, start
from support.crews import noted, nothing_is_left, noting, plan
from support.scale import FULL, scale
from support.wait import until
from taskyard.jobs.job_dir import JobPaths, supervisor_pid

TEAM = "chaos"
MEMBERS = 8 if FULL else 4

#: Seconds between two deaths: of eight members in the full count, of four in a tenth.
EVERY = 2.0 if FULL else 1.0

#: Seconds each task takes.
WORK = 1.5 if FULL else 0.3


def blockers(number: int) -> list[int]:
    """A tree, with another edge here and there."""
    found = [number // 2] if number > 1 else []
    return [*found, number - 3] if number > 5 and number % 5 == 0 and number - 3 not in found else found


def text(count: int) -> str:
    rows = ["tasks:"]
    for number in range(1, count + 1):
        needs = ", ".join(f"t{blocker}" for blocker in blockers(number))
        rows.append(f"  - {{id: t{number}, subject: Task {number}, needs: [{needs}]}}")
    return "\n".join(rows) + "\n"


@pytest.mark.req("M-04", "L-10", "M-01")
@pytest.mark.timeout(900)
def test_members_are_killed_and_replaced_and_all_is_done_once_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_LEASE_LOSSES", "1000")  # bad luck alone sets nothing aside here
    count, side, dice = scale(200), tmp_path / "side", random.Random(11)
    words = ["--plan", plan(tmp_path, text(count)), "--agents", str(MEMBERS), "--replace", "1000"]
    words += ["--command", noting(side, work=f"sleep {WORK}"), "--json"]
    lead = start("team", "up", TEAM, *words)

    killed = 0
    with taskyard.open(list=TEAM, is_person=True) as yard:
        until(lambda: any(task.owner for task in yard.tasks.list()), timeout=60)
        while lead.poll() is None:
            time.sleep(EVERY)  # the pace of the deaths
            killed += kill_one(yard, dice)
        out, err = lead.communicate(timeout=60)
        done = Ran(lead.returncode, out, err)

        assert done.code == 0, done
        assert done.data["tasks"] == {"total": count, "done": count}
        assert killed >= 1
        assert 1 <= done.data["replaced"] <= done.data["died"] <= killed
        check_log(yard, count)
        check_side_effects(noted(side), count, killed)
        assert {job.end.proof for id in done.data["jobs"] if (job := yard.jobs.get(id)).end} <= {
            "proved",
            "best_effort",
        }
    nothing_is_left(TEAM)
    print(f"{count} tasks, {MEMBERS} members, {killed} killed, {done.data['seconds']} s")


def kill_one(yard: taskyard.Yard, dice: random.Random) -> int:
    """Kill a member that works, or its keeper."""
    living = [job for job in yard.jobs.list() if job.type == "in_process_teammate" and job.pid]
    if not living:
        return 0
    job = dice.choice(living)
    pid = job.pid if dice.random() < 0.8 else supervisor_pid(JobPaths(yard.home, job.id))
    if not pid:
        return 0
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return 0
    return 1


def check_log(yard: taskyard.Yard, count: int) -> None:
    """By the event log each task was completed once, and started only after what it waits for."""
    completed: dict[str, list[int]] = {}
    started: dict[str, list[int]] = {}
    subjects = {task.id: int(task.subject.split()[1]) for task in yard.tasks.list()}
    ids = {number: task_id for task_id, number in subjects.items()}
    for change in yard.tasks.log():
        for task_id in change.tasks if not change.aborted else ():
            if task_id in subjects and change.act.cause in ("complete", "start"):
                (completed if change.act.cause == "complete" else started).setdefault(task_id, []).append(change.id)
    assert {task_id: len(found) for task_id, found in completed.items()} == dict.fromkeys(subjects, 1)
    for task_id, number in subjects.items():
        for blocker in blockers(number):
            assert min(started[task_id]) > completed[ids[blocker]][0]


def check_side_effects(lines: list[list[str]], count: int, killed: int) -> None:
    """What was done outside the list: all of it, again only where somebody died in between, and in order."""
    order = [line[0] for line in lines]
    times = Counter(order)
    assert len(times) == count
    assert sum(times.values()) - count <= killed
    first = {task_id: order.index(task_id) for task_id in times}
    by_number = dict(zip(sorted(first, key=int), range(1, count + 1), strict=True))
    ids = {number: task_id for task_id, number in by_number.items()}
    for task_id, number in by_number.items():
        assert all(first[ids[blocker]] < first[task_id] for blocker in blockers(number))
