"""A job on its way through the database is the same job."""

from __future__ import annotations

import json

import pytest

from support.hosts import Machine
from taskyard.jobs.model import End, Job, JobStatus, end_from_json, job_from_json
from taskyard.postgres.relay import records
from taskyard.postgres.relay.records import encode_job

pytestmark = pytest.mark.req("X-01")

PENDING = Job("b00000001", "local_bash", JobStatus.PENDING, "a line\n\0 and 漢", waits_for="a slot", start_time=5)
RUNNING = Job(
    "a00000002",
    "local_agent",
    JobStatus.RUNNING,
    "",
    command="x",
    start_time=1,
    total_paused_ms=7,
    output_file="/home/ada/output",
    is_backgrounded=False,
    tool_use_id="toolu_1",
    agent_id="ada",
    parent="b00000001",
    depth=2,
    task="release/7",
    takes_input=True,
    needs_input=True,
    is_paused=True,
    pid=4,
    attempt=2,
    retries=3,
    earlier=({"cause": "exited", "exitCode": 1},),
    grace=0.0,
    on_parent_exit="kill",
    facts={"progress": {"toolUseCount": 3}, "costUsd": 0.25},
)
END = End(
    "stopped",
    signal=15,
    proof="partial",
    survivors=(8, 9),
    leftovers=2,
    kept=("b00000003",),
    by="bob",
    at=99,
    duration_ms=90,
    paused_ms=7,
    size=10,
    base=4,
    header=3,
    output_lost="the disk is full",
)


@pytest.mark.parametrize(
    "job",
    [
        PENDING,
        RUNNING,
        RUNNING._replace(status=END.status, end=END, end_time=99, notified=True, needs_input=False, is_paused=False),
        PENDING._replace(status=JobStatus.COMPLETED, waits_for="", end=End("exited", exit_code=0, at=6), end_time=6),
    ],
    ids=lambda job: str(job.status),
)
def test_what_is_stored_of_a_job_makes_the_same_job(job: Job) -> None:
    raw = json.loads(encode_job(job._replace(host_name="forge", is_on_other_host=True)))
    end = end_from_json(raw.get("end") or {})

    assert job_from_json(raw, status=job.status, end=end) == job


def test_facts_that_are_too_large_are_left_out_the_largest_first() -> None:
    job = Job("b00000001", "local_agent", JobStatus.RUNNING, "x", facts={"result": "y" * 40_000, "summary": "short"})

    assert json.loads(encode_job(job))["facts"] == {"summary": "short"}


def test_of_two_machines_that_chance_gave_the_same_id_the_living_one_is_meant(forge: Machine, desk: Machine) -> None:
    put = "SELECT push_jobs(%s, 0, 0, '{}', '{}', '{}', '{}', '{}', %s, %s, %s, %s, 10)"
    for machine, is_final, started in ((forge, True, 2), (desk, False, 1)):
        machine.database.ask("SELECT * FROM greet(%s, %s, 'm', 30000, 0)", [machine.host.id, machine.name])
        end = End("exited", exit_code=0) if is_final else None
        job = Job("b00000001", "local_bash", end.status if end else JobStatus.RUNNING, "x", start_time=started, end=end)
        machine.database.ask(put, [machine.host.id, [job.id], [is_final], [started], [encode_job(job)]])

    found = records.find_job(forge.database, "b00000001")
    assert found is not None and (found.job.host_name, found.job.is_final) == ("desk", False)


def test_what_is_final_in_the_database_stays_as_it_is(forge: Machine) -> None:
    put = "SELECT push_jobs(%s, 0, 0, '{}', '{}', '{}', '{}', '{}', %s, %s, %s, %s, 10)"
    forge.database.ask("SELECT * FROM greet(%s, 'forge', 'm', 30000, 0)", [forge.host.id])
    end = End("exited", exit_code=0)
    over = Job("b00000001", "local_bash", end.status, "x", end=end)
    late = Job("b00000001", "local_bash", JobStatus.RUNNING, "a late word")
    for job in (over, late):
        forge.database.ask(put, [forge.host.id, [job.id], [job.is_final], [0], [encode_job(job)]])

    found = records.find_job(forge.database, "b00000001")
    assert found is not None and found.job.end == end


def test_events_beyond_what_is_kept_go_and_that_is_known(forge: Machine) -> None:
    forge.database.ask("SELECT * FROM greet(%s, 'forge', 'm', 30000, 0)", [forge.host.id])
    push = "SELECT push_jobs(%s, 0, %s, %s, %s, %s, %s, %s, '{}', '{}', '{}', '{}', 500)"
    at = 0
    for _ in range(3):
        ids = list(range(at + 1, at + 501))
        same = [ids, ids, ["task_progress"] * 500, ["b00000001"] * 500, ["{}"] * 500]
        assert forge.database.ask(push, [forge.host.id, at, *same]) == [(True,)]
        assert forge.database.ask(push, [forge.host.id, at, *same]) == [(False,)], "once"
        at = ids[-1]

    assert forge.database.ask("SELECT min(id), max(id) FROM event") == [(501, 1500)]
    assert [event.id for event in forge.events(1498)] == [1499, 1500]
