"""Who hears of a job whose starter is gone: the next in line, in the end the person."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from support.ended_jobs import end_job, finish, job_folder
from support.racing import fork
from support.wait import until
from taskyard import config
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.model import End
from taskyard.jobs.notices import Outbox
from taskyard.storage import process_registry

pytestmark = pytest.mark.req("N-07")

ENTER = """
import sys
from taskyard.storage import process_registry as instances
ada = instances.register(sys.argv[1], "ada")
print(ada.id, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def home() -> str:
    return config.home()


def jobs_for(home: str, recipient: str | None) -> dict[str, str | None]:
    """What could be taken by somebody now: jobs, and whom their notices were meant for."""
    return {notice.task_id: notice.orphaned_from for notice in Outbox(home, recipient).waiting()}


@contextmanager
def kept(folder: JobPaths) -> Iterator[None]:
    """A job with a living keeper: another process that holds its lock."""
    ready, done = os.pipe(), os.pipe()
    pid = fork()
    if not pid:
        lock = os.open(folder.lock, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.lockf(lock, fcntl.LOCK_EX)
        os.write(ready[1], b"r")
        os.close(done[1])
        os.read(done[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    try:
        yield
    finally:
        for fd in (*ready, *done):
            os.close(fd)
        os.waitpid(pid, 0)


def test_news_for_a_dead_instance_goes_to_the_person_and_says_for_whom_it_was(home: str) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", ENTER, home], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with child:
        assert child.stdout is not None
        job_id = end_job(home, "ada", instance=child.stdout.readline().strip())
        assert (jobs_for(home, "me"), jobs_for(home, "ada")) == ({}, {job_id: None})
        child.kill()

    assert jobs_for(home, "me") == {job_id: "ada"}


def test_one_who_comes_back_under_the_same_name_gets_the_news_and_the_person_does_not(home: str) -> None:
    with process_registry.register(home, "ada") as before:
        job_id = end_job(home, "ada", instance=before.id)

    with process_registry.register(home, "ada"):
        assert (jobs_for(home, "me"), jobs_for(home, "ada")) == ({}, {job_id: None})


def test_news_for_an_agent_that_ran_in_a_job_goes_to_whoever_started_that_job(home: str) -> None:
    agent = job_folder(home, recipient="lead")
    job_id = end_job(home, "helper", parent=agent.id)
    with kept(agent):
        assert jobs_for(home, "lead") == {}

    assert (jobs_for(home, "lead"), jobs_for(home, "me")) == ({job_id: "helper"}, {})
    with Outbox(home, "lead") as outbox:
        (notice,) = outbox.take()
        assert outbox.ack([notice.id]) == (notice.id,)
    assert jobs_for(home, "helper") == {}


def test_where_the_whole_line_is_gone_the_person_hears_of_it(home: str) -> None:
    with process_registry.register(home, "lead") as lead:
        outer = job_folder(home, recipient="lead", instance=lead.id)
    inner = job_folder(home, recipient="helper", parent=outer.id)
    job_id = end_job(home, "helpers-helper", parent=inner.id)

    assert (jobs_for(home, "helper"), jobs_for(home, "lead")) == ({}, {})
    assert jobs_for(home, "me") == {job_id: "helpers-helper"}


def test_news_waits_for_one_of_whom_no_death_is_known(home: str) -> None:
    job_id = end_job(home, "ada")

    assert (jobs_for(home, "me"), jobs_for(home, "bob")) == ({}, {})
    assert jobs_for(home, "ada") == jobs_for(home, None) == {job_id: None}


def test_the_persons_own_news_goes_to_nobody_else(home: str) -> None:
    outer = job_folder(home, recipient="lead")
    job_id = end_job(home, "me", parent=outer.id)

    assert (jobs_for(home, "lead"), jobs_for(home, "me")) == ({}, {job_id: None})


def test_jobs_that_claim_to_be_inside_each_other_end_with_the_person(home: str) -> None:
    folder = job_folder(home, recipient="ada", parent="b00000000")
    os.makedirs(f"{home}/jobs/b00000000")
    with open(f"{home}/jobs/b00000000/job.json", "w", encoding="utf-8") as file:
        file.write(f'{{"recipient": "bob", "parent": "{folder.id}"}}')
    finish(folder, End("exited", 0, at=1))

    assert jobs_for(home, "me") == {folder.id: "ada"}


def test_news_of_a_job_that_a_dead_program_started_goes_to_the_person(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_HOME", home)
    script = """
import os, taskyard
with taskyard.open(agent="ada") as yard:
    print(yard.jobs.start(taskyard.Shell("true", on_parent_exit="keep")).id, flush=True)
    os.kill(os.getpid(), 9)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=20, check=False)
    job_id = ran.stdout.strip()

    until(lambda: jobs_for(home, "me") == {job_id: "ada"})
