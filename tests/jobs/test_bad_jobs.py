"""What cannot be: refused in words, by Python and by the command line, and nothing is there that was not before."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.cli import process, taskyard
from support.wait import until
from taskyard.errors import BadJobId, BadText, BadValue, JobNotFound, TaskyardError, UsageError
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.model import JobStatus
from taskyard.jobs.supervisor.child_jobs import write_control

NAN, INF = float("nan"), float("inf")


@pytest.fixture
def jobs(outside: Path) -> Iterator[Jobs]:
    found = Jobs(str(outside / "taskyard"))
    yield found
    found.stop(*[job.id for job in found.list()], grace=0.1)
    found.close()


def everything(home: str) -> list[str]:
    return sorted(str(path) for path in Path(home).rglob("*"))


BAD: list[tuple[str, type[TaskyardError], dict[str, Any]]] = [
    ("no words", BadText, {"command": []}),
    ("an empty word", BadText, {"command": [""]}),
    ("nothing but spaces", BadText, {"command": " \n"}),
    ("a NUL", BadText, {"command": "echo \0"}),
    ("a NUL in a word", BadText, {"command": ["echo", "a\0b"]}),
    ("a lone surrogate", BadText, {"command": ["echo", "\ud800"]}),
    ("a number for a command", BadText, {"command": [1]}),
    ("bytes", BadText, {"command": [b"true"]}),
    ("a name of two lines", BadText, {"name": "two\nlines"}),
    ("a name with an escape code", BadText, {"name": "\x1b[31m"}),
    ("an empty name", BadText, {"name": ""}),
    ("a long name", BadText, {"name": "x" * 201}),
    ("no time at all", BadValue, {"timeout": 0}),
    ("time that runs back", BadValue, {"timeout": -1}),
    ("time that is no number", BadValue, {"timeout": NAN}),
    ("time without end", BadValue, {"timeout": INF}),
    ("time in words", BadValue, {"timeout": "10s"}),
    ("true", BadValue, {"timeout": True}),
    ("a grace that runs back", BadValue, {"grace": -0.1}),
    ("a grace that is no number", BadValue, {"grace": NAN}),
    ("a grace without end", BadValue, {"grace": INF}),
    ("a cap below a block", BadValue, {"output_cap": 4095}),
    ("no cap at all", BadValue, {"output_cap": 0}),
    ("a cap below nothing", BadValue, {"output_cap": -1}),
    ("half a byte", BadValue, {"output_cap": 100_000.5}),
    ("a cap without end", BadValue, {"output_cap": INF}),
    ("fewer tries than none", BadValue, {"retries": -1}),
    ("half a try", BadValue, {"retries": 0.5}),
    ("no folder", BadValue, {"cwd": "/no/such/folder"}),
    ("a file for a folder", BadValue, {"cwd": "/etc/passwd"}),
    ("a folder with a NUL", BadValue, {"cwd": "/tmp\0"}),
    ("a variable with =", BadValue, {"env": {"A=B": "1"}}),
    ("a variable without a name", BadValue, {"env": {"": "1"}}),
    ("a variable with a NUL", BadText, {"env": {"A\0": "1"}}),
    ("a value with a NUL", BadText, {"env": {"A": "\0"}}),
    ("a value that is no text", BadText, {"env": {"A": 1}}),
    ("a fate nobody knows", BadValue, {"on_parent_exit": "haunt"}),
]


@pytest.mark.parametrize(("error", "fields"), [pytest.param(*row[1:], id=row[0]) for row in BAD])
def test_what_cannot_be_run_is_refused_and_leaves_nothing(
    jobs: Jobs, error: type[TaskyardError], fields: dict[str, Any]
) -> None:
    before = everything(jobs.home)

    with pytest.raises(error):
        jobs.start(Shell(**{"command": "true", **fields}))

    assert everything(jobs.home) == before


@pytest.mark.parametrize(
    "words",
    [
        ["--timeout", "nan", "--", "true"],
        ["--timeout", "inf", "--", "true"],
        ["--timeout", "-5s", "--", "true"],
        ["--timeout", "1e9d", "--", "true"],
        ["--grace", "nan", "--", "true"],
        ["--output-cap", "4095", "--", "true"],
        ["--output-cap", "nan", "--", "true"],
        ["--output-cap", "inf", "--", "true"],
        ["--output-cap", "-1MB", "--", "true"],
        ["--retry", "1.5", "--", "true"],
        ["--retry", "99999999999999999999", "--", "true"],
        ["--cwd", "", "--", "true"],
        ["--cwd", "a\0b", "--", "true"],
        ["--name", "", "--", "true"],
        ["--name", "a\rb", "--", "true"],
        ["--on-parent-exit", "haunt", "--", "true"],
        ["--after", "../../x", "--", "true"],
        ["--after", "b\0", "--", "true"],
        ["--", "\ud800"],
    ],
)
def test_the_command_line_refuses_it_too(jobs: Jobs, words: list[str]) -> None:
    before = everything(jobs.home)

    ran = taskyard("run", "-d", "--json", *words)

    assert (ran.code, "error" in ran.out) == (2, True), ran
    assert everything(jobs.home) == before


IDS = [
    "",
    "b",
    "b" * 8,
    "b" * 10,
    "B1234567z",
    "b1234567/",
    "../jobs/b",
    "b\0234567z",
    "b1234567\n",
    "b1234567é",
    "\ud800" * 9,
]


@pytest.mark.req("B-02", "B-09")
@pytest.mark.parametrize("job_id", [*IDS, 123456789, None, b"b12345678"], ids=repr)
@pytest.mark.parametrize(
    "verb",
    [
        lambda jobs, job_id: jobs.get(job_id),
        lambda jobs, job_id: jobs.wait(job_id, timeout=0),
        lambda jobs, job_id: jobs.stop(job_id),
        lambda jobs, job_id: jobs.pause(job_id),
        lambda jobs, job_id: jobs.send(job_id, "x"),
        lambda jobs, job_id: jobs.start(Shell("true"), after=[job_id]),
    ],
    ids=["get", "wait", "stop", "pause", "send", "after"],
)
def test_an_id_that_no_job_can_have_is_refused(jobs: Jobs, verb: Callable[[Jobs, Any], object], job_id: Any) -> None:
    with pytest.raises(BadJobId):
        verb(jobs, job_id)
    assert everything(jobs.home) == []


def test_an_id_that_nobody_issued_is_not_found_and_one_bad_id_stops_no_other(jobs: Jobs) -> None:
    job = jobs.start(Shell("sleep 60"))
    for wrong in ("b00000000", "../../x"):
        with pytest.raises((JobNotFound, UsageError)):
            jobs.stop(job.id, wrong)
    with pytest.raises(JobNotFound):
        jobs.start(Shell("true"), after=[job.id, "b00000000"])

    assert jobs.get(job.id).status is JobStatus.RUNNING
    assert [each.id for each in jobs.list(ended=True)] == [job.id]


@pytest.mark.req("B-09")
@pytest.mark.parametrize("grace", [-1, NAN, INF, 1e9, "1"])
def test_a_stop_with_a_grace_that_cannot_be_stops_nothing(jobs: Jobs, grace: Any) -> None:
    job = jobs.start(Shell("sleep 60"))

    with pytest.raises(BadValue):
        jobs.stop(job.id, grace=grace)
    assert jobs.get(job.id).status is JobStatus.RUNNING


@pytest.mark.req("B-13")
def test_a_wait_may_be_as_long_as_anybody_likes_but_no_nonsense(jobs: Jobs) -> None:
    job = jobs.start(Shell("sleep 0.2"))
    with pytest.raises(BadValue):
        jobs.wait(job.id, timeout=NAN)
    assert jobs.wait(job.id, timeout=-1).status is JobStatus.RUNNING
    assert jobs.wait(job.id, timeout=INF).status is JobStatus.COMPLETED
    assert taskyard("wait", jobs.start(Shell("sleep 0.1")).id, "--timeout", "3000d").code == 0


@pytest.mark.req("B-09", "O-08")
@pytest.mark.parametrize("text", ["x" * 1_000_001, "é" * 500_001, "\ud800"], ids=["x", "wide", "lone"])
def test_input_that_does_not_fit_or_is_no_text_is_refused(jobs: Jobs, text: str) -> None:
    job = jobs.start(Shell("cat", stdin=True))

    with pytest.raises(BadText):
        jobs.send(job.id, text)
    assert jobs.send(job.id, "\x01" * 3000 + "é" * 7000)


@pytest.mark.req("B-08")
def test_a_folder_that_vanishes_before_its_turn_is_named(jobs: Jobs, tmp_path: Path) -> None:
    first = jobs.start(Shell("sleep 60"))
    gone = tmp_path / "gone"
    gone.mkdir()
    second = jobs.start(Shell("true", cwd=str(gone)), after_any=[first.id])
    until(lambda: jobs.get(second.id).status is JobStatus.PENDING)
    gone.rmdir()
    jobs.stop(first.id)

    ended = jobs.wait(second.id, timeout=10)

    assert ended.end is not None
    assert (ended.status, ended.end.cause, ended.end.exit_code) == (JobStatus.FAILED, "error", None)
    assert ended.end.error == f"the folder {str(gone)!r}: No such file or directory"
    ran = taskyard("wait", second.id)
    assert (ran.code, str(gone) in ran.out) == (125, True)


def test_whoever_stands_in_a_folder_that_was_removed_is_told(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    with pytest.raises(BadValue, match="was removed"):
        jobs.start(Shell("true"))
    assert process("run", "-d", "--json", "--", "true").code == 2
    assert everything(jobs.home) == []


WISHES: list[object] = [
    {"do": "answer", "text": "\ud800"},
    {"do": "answer", "text": ["x"]},
    {"do": "stop it"},
    {"do": ["stop"]},
    {"do": "pause", "token": "\ud800" * 100},
    {"do": "resume", "token": ["x"]},
    {"do": 7},
    {},
    [],
    "stop",
    10**4000,
]


@pytest.mark.req("B-08", "B-09")
def test_whatever_comes_through_its_pipe_a_keeper_goes_on(jobs: Jobs) -> None:
    job = jobs.start(Shell("cat", stdin=True))
    folder = JobPaths(jobs.home, job.id)
    pipe = os.open(folder.control, os.O_WRONLY)
    for wish in WISHES:
        write_control(folder, wish)  # type: ignore[arg-type]
    for noise in (b"\0\xff\n", b"\n\n\n", b"{" * 4000 + b"\n", b"x" * 4096, b"y" * 4096, b'\n{"do"'):
        os.write(pipe, noise)
    os.close(pipe)

    assert jobs.send(job.id, "\n")
    assert jobs.send(job.id, "hello\n", close=True)
    ended = jobs.wait(job.id, timeout=10)
    assert (ended.status, "hello" in Path(job.output_file).read_text("utf-8")) == (JobStatus.COMPLETED, True)


@pytest.mark.req("B-09")
@pytest.mark.parametrize("grace", ["NaN", "Infinity", "-1", "1e400", "1" + "0" * 400, '"x"', "null", "[]", "true"])
def test_a_stop_that_came_with_nonsense_is_a_stop(jobs: Jobs, grace: str) -> None:
    job = jobs.start(Shell("exec sleep 60", grace=0.1))
    pipe = os.open(JobPaths(jobs.home, job.id).control, os.O_WRONLY)
    os.write(pipe, b'{"do": "stop", "by": ["x"], "grace": %s}\n' % grace.encode())
    os.close(pipe)
    began = time.monotonic()

    ended = jobs.wait(job.id, timeout=10)

    assert ended.end is not None and time.monotonic() - began < 5
    assert (ended.end.cause, ended.end.signal) == ("stopped", signal.SIGTERM)
