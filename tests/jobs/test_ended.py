"""What stays known of a job that gc took: what was known before, and never more than that."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.cli import taskyard
from support.jobs import kill_keeper
from support.wait import until
from taskyard import config
from taskyard.core.system import now_ms
from taskyard.jobs import control
from taskyard.jobs.ended_index import append, index_entry, index_path
from taskyard.jobs.gc import collect
from taskyard.jobs.job_text import status_line
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.model import End, Job, JobStatus, job_json
from taskyard.jobs.outbox import mark_delivered
from taskyard.jobs.query import read_job

pytestmark = pytest.mark.req("O-04", "B-06")

#: What goes with the folder, or meant something only while the job lived.
GONE = {"output", "pid", "takes_input"}


def collected(home: str, job_id: str) -> Job:
    mark_delivered(home, job_id)
    until(lambda: collect(home, quota=0, age_limit=0, now=now_ms() + 60_000).removed)  # its keeper may not be gone yet
    return read_job(home, job_id)


def told(job: Job) -> dict[str, object]:
    return {name: value for name, value in job_json(job).items() if name not in GONE}


@pytest.mark.parametrize(
    "wanted",
    [
        Shell("sleep 100 & echo said; exit 3", retries=1, retry_delay=0, tool_use_id="toolu_1"),
        Shell("sleep 0.2; kill -9 $$"),
        Shell("sleep 100", timeout=0.1),
        Shell("no-such-command-anywhere"),
    ],
)
def test_a_job_is_told_of_as_before(tmp_path: Path, wanted: Shell) -> None:
    jobs = Jobs(str(tmp_path), agent="ada")
    job = jobs.wait(jobs.start(wanted).id, timeout=20)
    jobs.close()
    assert job.end is not None and job.end.duration_ms

    after = collected(str(tmp_path), job.id)

    assert told(after) == told(job._replace(notified=True))
    assert status_line(after) == status_line(job)


def test_who_stopped_it_stays_known(jobs: Jobs) -> None:
    job = jobs.start(Shell("sleep 100"))
    control.stop(jobs.home, [job.id], by="bob")

    after = collected(jobs.home, job.id)

    assert after.end is not None and (after.end.by, after.end.proof) == ("bob", "proved")


def test_how_it_was_lost_stays_known_and_for_how_long_it_ran_never_was(jobs: Jobs) -> None:
    job = jobs.start(Shell("sleep 100"))
    kill_keeper(jobs, job)
    lost = jobs.wait(job.id, timeout=20)

    after = collected(jobs.home, job.id)

    assert after.end is not None
    assert (after.end.cause, after.end.error, after.end.proof) == (
        "lost",
        "its supervisor is gone and left no record of how it ended",
        "best_effort",
    )
    assert job_json(lost)["duration_ms"] is None
    assert status_line(lost) == status_line(after)
    assert status_line(lost).endswith("lost: its supervisor is gone and left no record of how it ended")
    assert told(after) == told(lost._replace(notified=True))


def test_of_a_line_that_says_less_nothing_is_made_up() -> None:
    home = config.home()
    Path(home, "jobs").mkdir(mode=0o700, parents=True)
    append(
        home,
        {
            "id": "b00000000",
            "type": "local_bash",
            "description": "Fail it",
            "status": "failed",
            "cause": "exited",
            "exitCode": 3,
            "signal": None,
            "startTime": 1_794_790_547_000,
            "endTime": 1_794_790_549_000,
            "size": 12,
        },
    )

    data = taskyard("wait", "b00000000", "--json").data

    assert (data["started_at"], data["ended_at"]) == (1_794_790_547_000, 1_794_790_549_000)
    assert (data["cause"], data["exit_code"], data["output_size"]) == ("exited", 3, 12)
    unknown = ["proof", "error", "duration_ms", "survivors", "leftovers", "kept", "stopped_by", "command", "agent"]
    unknown += ["output_lost", "paused_ms"]
    assert {name: data[name] for name in unknown} == dict.fromkeys(unknown)
    ran = taskyard("wait", "b00000000")
    assert ran.code == 3
    assert ran.out.endswith("failed: exit code 3\n")


def test_a_line_fits_whatever_was_in_the_record(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    long = "\U0001f600" * 100_000
    end = End("error", error=long, proof="proved", survivors=(1,) * 9999, kept=(long,), by=long, output_lost=long, at=7)
    job = Job("b00000000", long, JobStatus.FAILED, long, long, agent_id=long, tool_use_id=long, facts={"all": long})
    job = job._replace(parent=long, on_parent_exit=long, earlier=({"error": long, "at": [long]},) * 50, end=end)

    append(str(tmp_path), index_entry(job, end))

    assert Path(index_path(str(tmp_path))).stat().st_size < 1 << 14
    after = read_job(str(tmp_path), job.id)
    assert after.end is not None
    assert (after.end.cause, after.end.proof, after.end_time) == ("error", "proved", 7)
    assert job.end is not None and after.end.survivors == job.end.survivors[:100]
    assert json.dumps(job_json(after))
