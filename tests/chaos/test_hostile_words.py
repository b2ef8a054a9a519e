"""Random bytes and hostile words in every file of a job: never a traceback, never a wrong end, never a stranger."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.cli import taskyard
from support.ended_jobs import end_job, finish_halfway, job_folder
from taskyard.core import files
from taskyard.core.system import now_ms, process_start, this_host
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.model import End
from taskyard.jobs.supervisor.child_jobs import ChildJobs

FILES = ("job.json", "end.json", "notice", "output", "keeper.lock", "control", "children", "children/b00000000")

#: What may be in a home after it.
OURS = {"jobs", "outbox", "events", "notice.key", "sinks.log"}

NAMES = re.findall(
    r"\w+",
    """
    id type status description command startTime endTime totalPausedMs outputFile isBackgrounded toolUseId agentId
    parent depth waitsFor needsInput isPaused pid pidStart host attempt onParentExit facts recipient priority silent
    answers cause exitCode signal error proof survivors leftovers kept by at durationMs pausedMs size base header
    outputLost end news taskId summary check takesInput instance
    """,
)

WORDS = st.sampled_from(
    ["", "kill", "keep", "exited", "stopped", "../../x", "\x1b[31m", "a\nb", "me", "b00000000", "1"]
)
PLAIN = st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats() | st.text(max_size=20) | WORDS
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
OBJECTS = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=12)
GARBAGE = st.binary(max_size=200) | st.just(b"[" * 20_000) | OBJECTS.map(lambda value: json.dumps(value).encode())


@pytest.fixture
def home(outside: Path) -> str:
    return str(outside / "taskyard")


@pytest.fixture
def stranger() -> Iterator[int]:
    """A process that is nobody's business."""
    pid = os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "60")
    yield pid
    assert os.waitpid(pid, os.WNOHANG) == (0, 0)
    os.kill(pid, 9)
    os.waitpid(pid, 0)


def emptied(home: str) -> None:
    shutil.rmtree(home, ignore_errors=True)


def put(folder: JobPaths, name: str, data: bytes) -> None:
    path = Path(folder.path, name)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_bytes(data)


def every_verb(job_id: str) -> None:
    """Each answers, in words and in JSON, with a code that people are told of."""
    for words in (
        ["ps", "--all"],
        ["wait", job_id, "--timeout", "0.01s"],
        ["stop", job_id, "--grace", "0.01s"],
        ["logs", job_id],
        ["pause", job_id],
        ["send", job_id, "x"],
        ["notices"],
        ["gc", "--older-than", "0.001s", "--dry-run"],
    ):
        for more in ([], ["--json"]):
            ran = taskyard(*words, *more)
            assert 0 <= ran.code < 256, (words, ran)
            if more and words[0] != "logs":
                json.loads(ran.out)


@pytest.mark.req("B-08", "O-02")
@given(name=st.sampled_from(FILES), data=GARBAGE)
def test_garbage_beside_an_end_does_not_change_it_and_in_its_place_makes_no_other(
    home: str, name: str, data: bytes
) -> None:
    emptied(home)
    folder = JobPaths(home, end_job(home, exit_code=3))
    put(folder, name, data)

    every_verb(folder.id)

    ran = taskyard("wait", folder.id, "--json")
    if name != "end.json":
        assert (ran.code, ran.data["exit_code"], ran.data["cause"]) == (3, 3, "exited")
    else:
        assert ran.data["status"] != "running"


@pytest.mark.req("B-08", "B-05")
@given(name=st.sampled_from(["job.json", "notice", "children/b00000000"]), data=GARBAGE)
def test_of_a_job_nobody_keeps_garbage_makes_no_end_but_lost(home: str, stranger: int, name: str, data: bytes) -> None:
    emptied(home)
    forged = {"host": this_host(), "pid": stranger, "pidStart": process_start(stranger) + 1}
    folder = job_folder(home, recipient="me", **forged)
    files.create(folder.lock, b"")
    put(folder, name, data)

    every_verb(folder.id)

    ran = taskyard("wait", folder.id, "--json")
    if "data" in json.loads(ran.out):
        assert ran.data["cause"] == "lost" or (name == "notice" and b"cause" in data)
    assert len(os.listdir(f"{home}/outbox/me/new")) <= 1 if os.path.isdir(f"{home}/outbox/me/new") else True
    assert set(os.listdir(home)) <= OURS


@pytest.mark.req("B-05")
@given(news=OBJECTS)
@example(news={"recipient": "../../x"})
@example(news={"recipient": 7})
@example(news={"id": "../../../../x"})
@example(news={"id": "x"})
@example(news={"taskId": "b00000000"})
def test_news_that_lead_out_of_an_outbox_are_not_sent(home: str, news: dict[str, object]) -> None:
    emptied(home)
    folder = job_folder(home, recipient="me")
    files.create(folder.lock, b"")
    finish_halfway(folder, End("exited", 0, at=now_ms()))
    body = json.loads(Path(folder.notice).read_bytes())
    Path(folder.notice).write_text(json.dumps({"end": body["end"], "news": {**body["news"], **news}}), encoding="utf-8")

    every_verb(folder.id)

    assert set(os.listdir(home)) <= OURS
    assert {len(path.relative_to(home).parts) for path in Path(home, "outbox").rglob("new/*")} <= {4}
    assert os.listdir(os.path.dirname(home)) == ["taskyard"]


@pytest.mark.req("B-09")
def test_a_name_among_the_children_makes_nobody_elses_job_a_child(home: str) -> None:
    parent, other = job_folder(home), job_folder(home, parent="b11111111", onParentExit="kill")
    put(parent, f"children/{other.id}", b"")
    files.create(other.lock, b"")
    os.mkfifo(other.control)
    lock, pipe = os.open(other.lock, os.O_RDWR), os.open(other.control, os.O_RDWR | os.O_NONBLOCK)
    child = os.fork()
    if child == 0:
        import fcntl
        import time

        fcntl.lockf(lock, fcntl.LOCK_EX)
        time.sleep(60)
        os._exit(0)
    try:
        from support.wait import until
        from taskyard.jobs.job_dir import supervisor_pid

        until(lambda: supervisor_pid(other) == child)
        others = ChildJobs(parent)
        others.stop_children(by="ada", grace=0.0)

        assert (others.all_settled(stopping=True), others.kept(), others.survivors()) == (True, [], [])
        with pytest.raises(BlockingIOError):
            os.read(pipe, 1)  # it was told nothing
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(lock)
        os.close(pipe)
