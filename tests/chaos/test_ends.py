"""However a job's end is interrupted, there is one end, and one notice of it."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from support.scale import scale
from taskyard.kinds.shell import Shell
from taskyard.runtime.events import Events
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.jobs import Jobs
from taskyard.runtime.liveness import keeper_of

#: Looks at every job again and again: whoever finds one without a keeper closes its books.
RECONCILER = """
import sys
from taskyard.runtime.jobs import Jobs
jobs = Jobs(sys.argv[1])
print("up", flush=True)
while True:
    jobs.list(ended=True)
"""


def notices(home: str) -> Counter[str]:
    """How many notices there are of each job, wherever they lie."""
    found: Counter[str] = Counter()
    for path in (*Path(home, "outbox").rglob("*"), *Path(home, "jobs").glob("*/notice")):
        if path.is_file():
            found[json.loads(path.read_text(encoding="utf-8"))["news"]["taskId"]] += 1
    return found


@pytest.mark.req("B-05", "B-08", "N-06")
def test_keepers_killed_around_the_end_and_three_who_repair_leave_one_end_and_one_notice_each(tmp_path: Path) -> None:
    chance = random.Random(7)
    jobs = Jobs(str(tmp_path))
    repairers = [
        subprocess.Popen([sys.executable, "-c", RECONCILER, jobs.home], stdout=subprocess.PIPE) for _ in range(3)
    ]
    try:
        for repairer in repairers:
            assert repairer.stdout is not None and repairer.stdout.readline()
        started = []
        for _ in range(scale(200)):
            job = jobs.start(Shell(["true"], on_parent_exit="keep"))
            started.append(job.id)
            keeper = keeper_of(JobFolder(jobs.home, job.id))
            time.sleep(chance.random() * 0.02)  # the moment of death is the point of it
            if keeper:
                try:
                    os.kill(keeper, signal.SIGKILL)
                except ProcessLookupError:
                    pass  # it had ended: that counts too
        ended = jobs.wait_all(started, timeout=30)
    finally:
        for repairer in repairers:
            repairer.kill()
            repairer.communicate()
        jobs.close()

    for job in ended:  # a repairer may have been killed over its work: a last look completes it
        jobs.get(job.id)
    causes = Counter(job.end.cause for job in ended if job.end is not None)
    assert sum(causes.values()) == len(started) and set(causes) <= {"exited", "lost"}, causes
    assert notices(jobs.home) == Counter(started)
    told = Counter((event.subtype, event.task_id) for event in Events(jobs.home))
    assert told == Counter((subtype, job_id) for job_id in started for subtype in ("task_started", "task_notification"))
